"""Writes whose files Spark's tasks write themselves: inserts into tables without buckets.

The instant begins in one process beside the driver, tasks write files and markers and keep its
heartbeat alive, another process publishes it. What travels between them is the begun write.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lakewright.actions.services.inline import serve_after
from lakewright.actions.tasks.write import write_stream
from lakewright.actions.write.begun import BegunWrite, abandoned_on_error, finish_write
from lakewright.actions.write.overwrite import outcome_of
from lakewright.actions.write.progress import Silence
from lakewright.engine.local.executor import LocalExecutor
from lakewright.engine.spark.fence import check_in_time
from lakewright.interfaces.spark_source.messages import FilesMessage, all_said, attempt
from lakewright.lifecycle.tending import wishes_after_write
from lakewright.timeline.heartbeats import beat
from lakewright.timeline.pulse import Pulse
from lakewright.timeline.storage_committer import StorageCommitter

#: Seconds between the beats of a task; a write counts as dead after a multiple of it.
BEAT = 20.0


class DirectWriter(DataSourceArrowWriter):
    """Writes new file groups from the executors."""

    def __init__(self, begun: BegunWrite, settings: dict[str, str]) -> None:
        self._begun = begun
        self._settings = settings

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task into file groups of their own.

        A task that still runs when its write is over takes its files back.
        """
        spec = self._begun.spec
        storage, instant = spec.open_storage(), spec.instant
        pulse = Pulse("heartbeat", lambda: beat(storage, instant), BEAT)
        files = []
        try:
            for file in write_stream(spec, iterator, attempt()):
                check_in_time(spec, file)
                files.append(file)
            return FilesMessage(tuple(files))
        finally:
            pulse.stop()

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the files of all tasks; those of other attempts are deleted before."""
        begun, committer = self._begun, self._committer()
        with abandoned_on_error(committer, begun.ticket):
            said = [m for m in all_said(messages) if isinstance(m, FilesMessage)]
            files = tuple(file for message in said for file in message.files)
            outcome = outcome_of(begun.spec, files)
        result = finish_write(begun, outcome, committer)
        state = begun.state
        options = {**state.storage.options, **state.config.properties, **self._settings}
        executor = LocalExecutor(options)
        name = state.config.name
        serve_after(name, state, executor, options, Silence(), result, wishes_after_write)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Take the write back, unless it took effect or may have: Spark aborts then, too."""
        self._committer().abandon(self._begun.ticket)

    def _committer(self) -> StorageCommitter:
        spec = self._begun.spec
        return StorageCommitter(spec.open_storage(), spec.config, self._settings)
