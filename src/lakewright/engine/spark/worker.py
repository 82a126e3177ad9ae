"""What runs inside Spark's Python workers: packed tasks in, Arrow batches out."""

import gc
import pickle
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.actions.tasks.read import ReadSpec, ReadTask, Task, run_task
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.base_footer import read_footer
from lakewright.model.schema import LONG, Field, List, Struct
from lakewright.table.merge.winners import Flags

#: What workers tell about a base file: its number, and a bit for each row that is taken away.
FILE_BITS = Struct((Field("_lakewright_file", LONG), Field("_lakewright_bits", List(LONG))))


def pack(value: object) -> bytes:
    """Return a value as few bytes; plans travel to every executor."""
    return zlib.compress(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), 1)


def unpack(data: bytes) -> object:
    """Return the value behind packed bytes."""
    value: object = pickle.loads(zlib.decompress(data))
    return value


def read_packed(shared: bytes, packed: bytes) -> Iterator[pa.RecordBatch]:
    """Stream the rows of packed tasks in the form that Spark takes."""
    _settle()
    spec, shape = cast("tuple[ReadSpec, Struct]", unpack(shared))
    yield from read_tasks(spec, cast("Sequence[Task]", unpack(packed)), shape)


def read_tasks(spec: ReadSpec, tasks: Sequence[Task], shape: Struct) -> Iterator[pa.RecordBatch]:
    """Stream the rows of tasks as batches of exactly the columns and types of ``shape``."""
    target = to_arrow_schema(shape)
    for task in tasks:
        for batch in run_task(spec, task):
            yield shaped(batch, target)


@cache
def _settle() -> None:
    """Make this worker process quick: once, since Spark uses it again for later tasks."""
    pa.set_cpu_count(1)  # Spark runs one task per core; threads beside them only contend
    # Spark collects garbage after every task, and would look at every imported module anew.
    gc.collect()
    gc.freeze()


def shaped(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the target's types; Spark reads batches by their position."""
    return batch if batch.schema.equals(target) else batch.cast(target)


def read_replaced(shared: bytes, packed: bytes) -> Iterator[pa.RecordBatch]:
    """Tell which rows of the base files of packed slices are taken away by their logs."""
    _settle()
    spec, _ = cast("tuple[ReadSpec, None]", unpack(shared))
    reader = spec.reader()
    target = to_arrow_schema(FILE_BITS)
    for task in cast("Sequence[ReadTask]", unpack(packed)):
        base = task.slice.base
        if base is None:
            continue
        with reader.overlay(task.slice, with_rows=False) as overlay:
            if overlay is None:
                gone = np.ones(base_rows(spec, task), dtype=bool)
            else:
                gone = overlay.replaced()
        columns = [[crc32(base.name.encode())], [words(gone)]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, target, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=target)


def read_replacing(shared: bytes, packed: bytes) -> Iterator[pa.RecordBatch]:
    """Stream the rows that the logs of packed slices put in the place of base rows."""
    _settle()
    spec, shape = cast("tuple[ReadSpec, Struct]", unpack(shared))
    reader = spec.reader()
    target = to_arrow_schema(shape)
    for task in cast("Sequence[ReadTask]", unpack(packed)):
        with reader.overlay(task.slice) as overlay:
            batches = reader.open(task.slice) if overlay is None else overlay.rows()
            for batch in batches:
                yield shaped(batch, target)


def base_rows(spec: ReadSpec, task: ReadTask) -> int:
    """Return the number of rows of a slice's base file."""
    base = task.slice.base
    return 0 if base is None else read_footer(spec.open_storage(), base.path, base.size).num_rows


def words(flags: Flags) -> npt.NDArray[np.int64]:
    """Return flags as 64-bit words, the first flag in the lowest bit of the first word."""
    padded = np.zeros(-(-len(flags) // 64) * 64, dtype=bool)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view("<i8")
