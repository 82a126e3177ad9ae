"""Rows of some groups go into the buckets of their keys; of rows with one key, one stays.

A task reads each of its slices once and puts the rows on its own disk, by the bucket that they
belong into; then it makes one bucket after the other.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.cluster_files import NewGroups
from lakewright.actions.tasks.compact import rewritten_columns, sized, slice_reader
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_new import base_spec
from lakewright.actions.tasks.write_settings import SPILL_BYTES
from lakewright.format.hudi.base_write import write_base
from lakewright.format.hudi.bucket_hash import key_hashes
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.files import FileSlice
from lakewright.model.schema import COMMIT_TIME, RECORD_KEY
from lakewright.table.merge.combine import combined, ordering_columns, winning_places
from lakewright.table.merge.policy import MergePolicy

#: About how many bytes a byte of a base file takes in memory.
_UNPACKED = 5
#: Files on a task's disk at the same time.
_MOST_FILES = 64

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RepairWork:
    """Slices of a partition, and the buckets whose rows a task takes out of them.

    ``buckets`` is the number that the partition has. Other tasks may take other buckets out of the
    same slices.
    """

    partition: str
    slices: tuple[FileSlice, ...]
    buckets: int
    taken: tuple[int, ...]
    hash_fields: tuple[str, ...]

    @property
    def size(self) -> int:
        """About how many bytes are read and written."""
        return 2 * sum(max(piece.size, 0) for piece in self.slices)


@dataclass(frozen=True, slots=True)
class Repaired:
    """New groups of a partition; ``dropped`` rows had the key of another one that won."""

    partition: str
    stats: tuple[WriteStat, ...]
    rows: int
    dropped: int


def repair_partition(spec: ServiceSpec, work: RepairWork, attempt: Attempt) -> Repaired:
    """Write the buckets of a task; a row keeps what Hudi's columns say of it."""
    storage = spec.open_storage()
    pieces = sorted(
        (sized(piece, storage) for piece in work.slices), key=lambda piece: piece.base_instant
    )
    policy = MergePolicy.of(spec.config)
    stats: list[WriteStat] = []
    dropped = 0
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="lakewright-repair-")
        shelf = _Shelf(spec, work, pieces, Path(stack.enter_context(made)))
        for bucket, tables in shelf.buckets():
            counted = _Counted(policy, tables)
            place = NewGroups(spec, work.partition, attempt, bucket)
            stats.append(place.write(partial(_fill, spec, place, counted)))
            dropped += counted.dropped
    rows = sum(stat.num_writes for stat in stats)
    return Repaired(work.partition, tuple(stats), rows, dropped)


def _fill(
    spec: ServiceSpec, place: NewGroups, tables: "_Counted", sink: IO[bytes], name: str
) -> int:
    file = base_spec(spec, place.partition, name, place.attempt.task, None)
    return write_base(sink, tables.batches(), file).rows


@dataclass(slots=True)
class _Counted:
    """The rows of a bucket, one per key."""

    policy: MergePolicy
    tables: Callable[[], Iterator[pa.Table]]
    dropped: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        for table in self.tables():
            kept = newest_rows(table, self.policy)
            self.dropped += table.num_rows - kept.num_rows
            yield from kept.combine_chunks().to_batches()


def newest_rows(rows: pa.Table, policy: MergePolicy) -> pa.Table:
    """Return one row per key, as the table merges: by ordering values, else by commit time.

    On a tie of ordering values the later commit wins. The rows keep their order.
    """
    keys = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    if len(keys.dictionary) == len(keys):
        return rows
    ordering = policy.ordering if policy.event_time else ()
    if policy.by_column:
        return combined(rows.sort_by(COMMIT_TIME), policy, ordering)
    codes = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    columns = (*ordering_columns(rows, ordering), *ordering_columns(rows, (COMMIT_TIME,)))
    return rows.take(pa.array(winning_places(codes, columns)))


class _Shelf:
    """Rows on disk, so that those of a bucket, or of a part of one, are read together."""

    def __init__(
        self, spec: ServiceSpec, work: RepairWork, pieces: Sequence[FileSlice], folder: Path
    ) -> None:
        self._folder = folder
        self._taken = np.array(sorted(work.taken), np.int64)
        unpacked = _UNPACKED * sum(piece.size for piece in pieces)
        classes = -(-unpacked // max(SPILL_BYTES.read(spec.settings), 1))
        classes = max(1, min(classes, _MOST_FILES))
        # Many buckets share a file; one that is large has several.
        self._parts = max(1, -(-classes // len(self._taken)))
        self._files = len(self._taken) if self._parts > 1 else min(classes, len(self._taken))
        self._buckets = work.buckets
        self._fields = work.hash_fields
        self._schema: pa.Schema | None = None
        with ExitStack() as stack:
            writers: dict[int, pa.RecordBatchStreamWriter] = {}
            reader = slice_reader(spec).project(rewritten_columns(spec))
            for piece in pieces:
                for batch in reader.open(piece):
                    self._put(batch, writers, stack)

    def _put(
        self,
        batch: pa.RecordBatch,
        writers: dict[int, pa.RecordBatchStreamWriter],
        stack: ExitStack,
    ) -> None:
        ranks, parts = self._placed(batch)
        if self._schema is None:
            self._schema = batch.schema
        numbers = np.where(ranks < 0, -1, self._class_of(ranks) * self._parts + parts)
        for number in np.unique(numbers[numbers >= 0]).tolist():
            if number not in writers:
                sink = stack.enter_context(pa.OSFile(str(self._path(number)), "wb"))
                made = pa.ipc.new_stream(sink, batch.schema)
                writers[number] = stack.enter_context(made)
            rows = np.flatnonzero(numbers == number)
            whole = len(rows) == batch.num_rows
            writers[number].write_batch(batch if whole else batch.take(pa.array(rows)))

    def _placed(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
        """Return the rank of each row's bucket among those taken, -1 for others, and its part."""
        keys = batch.column(batch.schema.get_field_index(RECORD_KEY))
        hashes = (key_hashes(keys, self._fields) & np.uint32(0x7FFFFFFF)).astype(np.int64)
        buckets = hashes % self._buckets
        ranks = np.searchsorted(self._taken, buckets)
        ranks = np.minimum(ranks, len(self._taken) - 1)
        found: Numbers = np.where(self._taken[ranks] == buckets, ranks, -1)
        parts: Numbers = (hashes // self._buckets) % self._parts
        return found, parts

    def _class_of(self, ranks: Numbers) -> Numbers:
        found: Numbers = ranks * self._files // len(self._taken)
        return found

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.arrow"

    def buckets(self) -> Iterator[tuple[int, Callable[[], Iterator[pa.Table]]]]:
        """Stream the buckets that have rows, each with a function that reads them."""
        if self._schema is None:
            return
        if self._parts > 1:
            for rank, bucket in enumerate(self._taken.tolist()):
                numbers = [rank * self._parts + part for part in range(self._parts)]
                there = [number for number in numbers if self._path(number).exists()]
                if there:
                    yield bucket, partial(self._read_all, there)
            return
        for number in range(self._files):
            if not self._path(number).exists():
                continue
            table = self._read(number)
            ranks, _ = self._placed(_one_batch(table))
            for rank in np.unique(ranks).tolist():
                rows = table.take(pa.array(np.flatnonzero(ranks == rank)))
                yield int(self._taken[rank]), partial(iter, [rows])

    def _read_all(self, numbers: Sequence[int]) -> Iterator[pa.Table]:
        for number in numbers:
            yield self._read(number)

    def _read(self, number: int) -> pa.Table:
        with pa.OSFile(str(self._path(number)), "rb") as source, pa.ipc.open_stream(source) as rows:
            return rows.read_all()


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    keys = table.column(RECORD_KEY).combine_chunks()
    return pa.RecordBatch.from_arrays([keys], names=[RECORD_KEY])
