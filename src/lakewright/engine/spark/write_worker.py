"""What runs inside Spark's Python workers while a table is written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from lakewright.actions.executor import Attempt, Route
from lakewright.engine.spark.carrying import (
    answer_batches,
    error_text,
    unpack_items,
    unpack_job,
)
from lakewright.engine.spark.fence import check_in_time
from lakewright.engine.spark.worker import settle
from lakewright.model.errors import LakewrightError

#: The column in which workers hand over the number of a row.
ROUTE_NUMBER = "_lakewright_route"


class TaskError(RuntimeError):
    """An error of ours on its way through Spark, which keeps nothing of it but the text."""


@dataclass(frozen=True, slots=True)
class ItemsJob:
    """A function over items, and what all of them share."""

    function: Any
    shared: Any


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A function over rows, what its tasks share, and the columns that it is given."""

    function: Any
    shared: Any
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class RouteJob:
    """A number for each row; ``schema`` holds the columns that it is computed from."""

    route: Route
    schema: pa.Schema


def run_carried(
    job: bytes, bundles: Sequence[bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run a packed job over the bundles whose numbers the batches hold."""
    settle()
    numbers = (n for batch in batches for n in batch.column(0).to_pylist())
    return answer_batches(_items(job, (bundles[number] for number in numbers)))


def run_items(job: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a packed job over bundles of items, one in each row."""
    settle()
    bundles = (bundle.as_py() for batch in batches for bundle in batch.column(0))
    return answer_batches(_items(job, bundles))


def _items(job: bytes, bundles: Iterable[bytes]) -> Iterator[object]:
    work = cast("ItemsJob", unpack_job(job))
    stage, run = here()[1:]
    for bundle in bundles:
        for number, item in unpack_items(bundle):
            try:
                made = work.function(work.shared, item, Attempt(number, stage, run))
                check_in_time(work.shared, made)
                yield made
            except LakewrightError as error:
                raise TaskError(error_text(error)) from error


def run_stream(job: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a packed job over the rows of one Spark partition."""
    settle()
    return answer_batches(_stream(job, batches))


def _stream(job: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[object]:
    work = cast("StreamJob", unpack_job(job))
    rows = (conformed(batch, work.schema) for batch in batches if batch.num_rows)
    try:
        for made in work.function(work.shared, rows, Attempt(*here())):
            check_in_time(work.shared, made)
            yield made
    except LakewrightError as error:
        raise TaskError(error_text(error)) from error


def add_route(job: bytes, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the number of each row as the last column of batches."""
    settle()
    work = cast("RouteJob", unpack_job(job))
    for batch in batches:
        try:
            numbers = work.route(conformed(batch, work.schema))
        except LakewrightError as error:
            raise TaskError(error_text(error)) from error
        column = pa.array(np.asarray(numbers, np.int64))
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, column], names=[*batch.schema.names, ROUTE_NUMBER]
        )


def pass_few(limit: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand batches over as IPC bytes while all of them stay within a limit; else no bytes."""
    settle()
    seen = 0
    for batch in batches:
        seen += batch.nbytes
        if seen > limit:
            yield _bytes(b"")
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield _bytes(sink.getvalue().to_pybytes())


def _bytes(data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["data"])


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch of Spark's the types that the table's schema has for its columns.

    Columns are taken by position; of those behind the schema's last none is kept.
    """
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=False)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def here() -> tuple[int, int, int]:
    """Return partition, stage, and the number of this run, which Spark gives to no other."""
    context = TaskContext.get()
    if context is None:
        return 0, 0, 0
    return context.partitionId(), context.stageId(), context.taskAttemptId()
