"""``df.writeStream.format("lakewright")``: every micro-batch is one commit, written once.

Spark makes a new sink for the commit, in another process, and tells it the number of the batch
alone: whose batch it is comes with the messages of the tasks, which Spark tells both.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row, datasource
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.rows import ArrowRows
from lakewright.actions.write.staging import clear_staged, stage, staging_folder
from lakewright.actions.write.stream_batch import StreamBatch
from lakewright.engine.spark.schema import from_spark_schema, worker_form
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.interfaces.spark_source.merging import forget_staged, merge_staged
from lakewright.interfaces.spark_source.messages import StagedMessage, all_said, attempt
from lakewright.interfaces.spark_source.write_options import WriteOptions
from lakewright.interfaces.spark_source.writer import check_table
from lakewright.model.errors import LakewrightError, Unsupported
from lakewright.table.state import open_state

if TYPE_CHECKING:
    _Base = DataSourceStreamWriter
else:
    # Spark 4.0 hands rows to a stream's writer one by one, later ones in Arrow batches.
    _Base = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"
#: Rows of Spark 4.0 in a batch.
_ROWS = 10_000
#: How often a batch runs again after conflicts with other writers, unless ``retry`` says.
_RETRY = 5


class StreamSink(_Base):
    """Stages the rows of a micro-batch in tasks; the commit merges them, unless they are there."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        request: WriteRequest[ArrowRows] = WriteRequest(options.operation, options=options.settings)
        check_table(open_state(options.open_storage()), request, schema)
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch] | Iterator[Row]) -> WriterCommitMessage:
        """Put the rows of one task aside."""
        options, whose = self._options, _whose()
        batches = _batches(iterator, self._schema)
        storage, name = options.open_storage(), attempt().token
        file = stage(storage, _folder(whose), name, batches, options.staged_bytes)
        return StagedMessage(file, whose.stream, whose.number)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Write the batch, unless an earlier run of the query did."""
        said = [m for m in all_said(messages) if isinstance(m, StagedMessage)]
        if not said:
            return
        batch = StreamBatch(said[0].stream, batchId)
        staged = [message.file for message in said if message.file is not None]
        options = self._options
        storage = options.open_storage()
        if staged:
            request: WriteRequest[ArrowRows] = WriteRequest(
                options.operation,
                options=options.settings,
                metadata=batch.metadata,
                retry=options.retry or _RETRY,
                check=batch.check,
                guard=batch.guard,
            )
            try:
                batch.begin(open_state(storage))
                result = merge_staged(storage, options, staged, request)
            except LakewrightError:
                if not batch.is_in(open_state(storage)):
                    raise
            else:
                if result.instant is not None:
                    batch.done(storage, result.instant)
        forget_staged(storage, _folder(batch))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Delete what was put aside: no commit names such files."""
        said = [m for m in messages if isinstance(m, StagedMessage)]
        if said:
            folder = _folder(StreamBatch(said[0].stream, batchId))
            clear_staged(self._options.open_storage(), folder)


def _folder(batch: StreamBatch) -> str:
    return staging_folder(f"{batch.stream}-{batch.number}")


def _whose() -> StreamBatch:
    """Return the batch that a task of a streaming query works for."""
    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty(_QUERY)
    number = None if context is None else context.getLocalProperty(_BATCH)
    if not told or not number:
        raise Unsupported(
            "Spark does not tell its tasks which query and batch they work for, so that the batch "
            "could be written twice.",
            next_step="Use df.writeStream.foreachBatch(table.stream_writer(checkpoint=…)).",
        )
    return StreamBatch(told, int(number))


def _batches(
    rows: Iterable[pa.RecordBatch] | Iterable[Row], schema: StructType
) -> Iterator[pa.RecordBatch]:
    target = to_arrow_schema(worker_form(from_spark_schema(schema)))
    pending: list[dict[str, object]] = []
    for row in rows:
        if isinstance(row, pa.RecordBatch):
            yield row
            continue
        pending.append(row.asDict(recursive=True))
        if len(pending) == _ROWS:
            yield pa.RecordBatch.from_pylist(pending, target)
            pending = []
    if pending:
        yield pa.RecordBatch.from_pylist(pending, target)
