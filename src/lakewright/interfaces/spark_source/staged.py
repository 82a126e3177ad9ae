"""Writes whose rows are staged by Spark's tasks and merged where the write commits.

Spark gives a data source rows in whatever division they have. Where a write needs the rows of a
file group together, tasks put them aside, and the commit, in a process beside the driver, merges
them.
"""

from collections.abc import Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.rows import ArrowRows
from lakewright.actions.write.staging import clear_staged, stage, staging_folder
from lakewright.interfaces.spark_source.merging import forget_staged, merge_staged
from lakewright.interfaces.spark_source.messages import StagedMessage, all_said, attempt
from lakewright.interfaces.spark_source.write_options import WriteOptions


class StagedWriter(DataSourceArrowWriter):
    """Puts rows aside in tasks; the instant begins and ends in ``commit``."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._folder = staging_folder(uuid4().hex)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Put the rows of one task aside, under a name that no other attempt has."""
        options = self._options
        name = attempt().token
        return StagedMessage(
            stage(options.open_storage(), self._folder, name, iterator, options.staged_bytes)
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Merge what all tasks put aside, in one commit."""
        options = self._options
        said = [m for m in all_said(messages) if isinstance(m, StagedMessage)]
        staged = [message.file for message in said if message.file is not None]
        request: WriteRequest[ArrowRows] = WriteRequest(
            options.operation, options=options.settings, retry=options.retry
        )
        storage = options.open_storage()
        merge_staged(storage, options, staged, request)
        forget_staged(storage, self._folder)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what was put aside: no commit names such files, whatever became of it."""
        clear_staged(self._options.open_storage(), self._folder)
