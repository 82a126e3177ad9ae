"""What runs inside Spark's Python workers: packed tasks in, Arrow batches out."""

import pickle
import zlib
from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa

from lakewright.actions.tasks.read import ReadSpec, Task, run_task
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.schema import Struct


def pack(value: object) -> bytes:
    """Return a value as few bytes; plans travel to every executor."""
    return zlib.compress(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), 1)


def unpack(data: bytes) -> object:
    """Return the value behind packed bytes."""
    value: object = pickle.loads(zlib.decompress(data))
    return value


def read_packed(shared: bytes, packed: bytes) -> Iterator[pa.RecordBatch]:
    """Stream the rows of packed tasks in the form that Spark takes."""
    spec, shape = cast("tuple[ReadSpec, Struct]", unpack(shared))
    yield from read_tasks(spec, cast("Sequence[Task]", unpack(packed)), shape)


def read_tasks(spec: ReadSpec, tasks: Sequence[Task], shape: Struct) -> Iterator[pa.RecordBatch]:
    """Stream the rows of tasks as batches of exactly the columns and types of ``shape``."""
    pa.set_cpu_count(1)  # Spark runs one task per core; threads beside them only contend
    target = to_arrow_schema(shape)
    for task in tasks:
        for batch in run_task(spec, task):
            yield shaped(batch, target)


def shaped(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the target's types; Spark reads batches by their position."""
    return batch if batch.schema.equals(target) else batch.cast(target)
