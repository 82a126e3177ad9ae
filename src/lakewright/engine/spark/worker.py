"""What runs inside Spark's Python workers: packed tasks in, Arrow batches out."""

import gc
import pickle
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import cloudpickle

from lakewright.actions.tasks.read import ReadSpec, ReadTask, Task, run_task
from lakewright.engine.spark.lists import as_lists, list_form
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.base_footer import read_footer
from lakewright.model.files import BaseFile
from lakewright.model.schema import INT, LONG, Field, List, Struct
from lakewright.table.merge.winners import Flags
from lakewright.table.standing import files_standing

#: What workers tell about a base file: its number; then, as words, how many of them follow for its
#: rows, a bit for each row that is taken away, and a bit for each log record that counts. They are
#: one column, and never null, so that those who need different parts of them ask for the same.
FILE_BITS = Struct(
    (
        Field("_lakewright_file", LONG, nullable=False),
        Field("_lakewright_bits", List(LONG, element_nullable=False), nullable=False),
    )
)
#: The column in which workers hand over the number of the partition.
NUMBER = Field("_lakewright_partition", INT)


def pack(value: object) -> bytes:
    """Return a value as few bytes; plans travel to every executor."""
    return zlib.compress(_pickled(value), 1)


def _pickled(value: object) -> bytes:
    if isinstance(value, Shared) and value.spec.merger is not None:
        # The merger is the caller's own, perhaps of a notebook: its class travels with it.
        travelling: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
        return travelling
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> object:
    """Return the value behind packed bytes."""
    value: object = pickle.loads(zlib.decompress(data))
    return value


@dataclass(frozen=True, slots=True)
class Shared:
    """What all bundles of a job share: the scan, the columns to hand over, partition numbers.

    With ``numbers`` (by partition path) the last column of every batch, beside those of ``shape``,
    is the number. With ``lists`` rows travel as lists.
    """

    spec: ReadSpec
    shape: Struct
    numbers: Mapping[str, int] | None = None
    lists: bool = False

    @property
    def constant(self) -> Field | None:
        """What all rows of a slice share."""
        return None if self.numbers is None else NUMBER

    @property
    def handed_over(self) -> Struct:
        """The columns of the batches that Spark gets."""
        if self.lists:
            return list_form(self.shape, self.constant)
        return self.shape if self.numbers is None else Struct((*self.shape.fields, NUMBER))


def run_bundles(
    function: str, shared: bytes, bundles: Sequence[bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run a function of this module over the bundles whose numbers the batches hold."""
    run = globals()[function]
    for batch in batches:
        for number in batch.column(0).to_pylist():
            with files_standing():
                yield from run(shared, bundles[number])


def read_packed(shared: bytes, packed: bytes) -> Iterator[pa.RecordBatch]:
    """Stream the rows of packed tasks in the form that Spark takes."""
    job, tasks = _unpacked(shared, packed)
    for task in tasks:
        yield from _handed_over(job, task, run_task(job.spec, task, in_codes=job.lists))


def _unpacked(shared: bytes, packed: bytes) -> tuple[Shared, Sequence[Task]]:
    settle()
    return cast("Shared", unpack(shared)), cast("Sequence[Task]", unpack(packed))


def _handed_over(
    job: Shared, task: Task, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Give batches exactly the columns and types that Spark was told; it goes by position."""
    number = None
    if job.numbers is not None and isinstance(task, ReadTask):
        number = job.numbers[task.partition.path]
    if job.lists:
        constant = None if number is None else (NUMBER, number)
        for batch in batches:
            if batch.num_rows:
                yield as_lists(batch, job.shape, constant)
        return
    plain, target = to_arrow_schema(job.shape), to_arrow_schema(job.handed_over)
    for batch in batches:
        made = batch if batch.schema.equals(plain) else batch.cast(plain)
        if number is not None:
            columns = [*made.columns, pa.repeat(pa.scalar(number, target[-1].type), len(made))]
            made = pa.RecordBatch.from_arrays(columns, schema=target)
        yield made


@cache
def settle() -> None:
    """Make this worker process quick: once, since Spark uses it again for later tasks."""
    pa.set_cpu_count(1)  # Spark runs one task per core; threads beside them only contend
    # Spark collects garbage after every task, and would look at every imported module anew.
    gc.collect()
    gc.freeze()


def read_verdicts(shared: bytes, packed: bytes) -> Iterator[pa.RecordBatch]:
    """Tell which rows of the base files of packed slices go, and which log records count."""
    job, tasks = _unpacked(shared, packed)
    reader = job.spec.reader()
    target = to_arrow_schema(FILE_BITS)
    for task in _slices(tasks):
        base = task.slice.base
        if base is None:
            continue
        with reader.overlay(task.slice, with_rows=False) as overlay:
            if overlay is None:
                gone = words(np.ones(base_rows(job.spec, base), dtype=bool))
                chosen = words(np.zeros(0, dtype=bool))
            else:
                verdict = overlay.verdict()
                gone, chosen = words(verdict.replaced), words(verdict.chosen)
        told = np.concatenate([np.array([len(gone)], dtype=np.int64), gone, chosen])
        columns = [[crc32(base.name.encode())], [told]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, target, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=target)


def read_chosen(
    shared: bytes,
    bundles: Sequence[bytes],
    starts: Sequence[int],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Stream the log records that count, of the slices whose numbers the batches hold.

    ``starts`` are the numbers of the first slices of the bundles. Beside the number of a slice
    stand the bits of its log records.
    """
    settle()
    job = cast("Shared", unpack(shared))
    opened: tuple[int, Sequence[Task]] = -1, ()
    reader = job.spec.reader()
    for batch in batches:
        for number, told in zip(*batch.columns, strict=True):
            place = bisect_right(starts, number.as_py()) - 1
            if place != opened[0]:
                opened = place, cast("Sequence[Task]", unpack(bundles[place]))
            task = opened[1][number.as_py() - starts[place]]
            if not isinstance(task, ReadTask):
                continue
            with reader.overlay(task.slice) as overlay:
                if overlay is None:
                    rows = reader.open(task.slice)
                else:
                    rows = overlay.rows(flags(told.values.to_numpy()))
                yield from _handed_over(job, task, rows)


def _slices(tasks: Iterable[Task]) -> Iterator[ReadTask]:
    return (task for task in tasks if isinstance(task, ReadTask))


def base_rows(spec: ReadSpec, base: BaseFile) -> int:
    """Return the number of rows of a base file."""
    return read_footer(spec.open_storage(), base.path, base.size).num_rows


def words(marks: Flags) -> npt.NDArray[np.int64]:
    """Return flags as 64-bit words, the first flag in the lowest bit of the first word."""
    padded = np.zeros(-(-len(marks) // 64) * 64, dtype=bool)
    padded[: len(marks)] = marks
    return np.packbits(padded, bitorder="little").view("<i8")


def flags(held: npt.NDArray[np.int64]) -> Flags:
    """Return the flags of words; those that fill the last word up are not set."""
    return np.unpackbits(held.astype("<i8").view(np.uint8), bitorder="little").astype(bool)
