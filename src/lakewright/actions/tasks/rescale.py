"""Rows of some buckets move to the buckets of another number: one task, one class of buckets.

With N buckets before and M after, a row's old and new bucket are equal modulo their greatest
common divisor. So the buckets that are equal modulo it are worked on apart from all others, and
no row travels between tasks.
"""

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.cluster_copy import copied
from lakewright.actions.tasks.cluster_files import NewGroups
from lakewright.actions.tasks.compact import rewritten_columns, sized, slice_reader
from lakewright.actions.tasks.service_spec import ServiceSpec
from lakewright.actions.tasks.write_new import base_spec
from lakewright.actions.tasks.write_settings import SPILL_BYTES
from lakewright.actions.tasks.written_keys import mentioned_keys
from lakewright.format.hudi.base_file import open_base
from lakewright.format.hudi.base_write import write_base
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.model.errors import Corrupt
from lakewright.model.files import FileSlice
from lakewright.model.schema import RECORD_KEY
from lakewright.table.reader.keys import record_keys

Places: TypeAlias = npt.NDArray[np.int64]

#: Rows that lie together in a file on the task's own disk.
_BATCH = 16 << 10
#: A task makes so many files at most, where reading its rows once more is cheap.
_MOST_FILES = 2_000
#: Slices of a class up to this size are read by several tasks, each for a part of the new buckets.
_READ_AGAIN = 64 << 20


@dataclass(frozen=True, slots=True)
class RescaleWork:
    """The slices of one class of buckets of a partition, and the new buckets that are written.

    ``fields`` are the hash fields, ``after`` is the new number of buckets. ``buckets`` are those
    of the class that this task writes, all of them or a part; its step is what the classes are
    counted by. ``size`` is about how many bytes are read and written. ``over`` are further slices
    of the class, with the new number already: their rows are written along, and a row of
    ``slices`` whose key they hold stays out. So does one whose key ``since`` mention, slices with
    files that were superseded; of their logs the blocks of ``instants`` count.
    """

    slices: tuple[FileSlice, ...]
    fields: tuple[str, ...]
    after: int
    buckets: range
    size: int
    over: tuple[FileSlice, ...] = ()
    since: tuple[FileSlice, ...] = ()
    instants: frozenset[str] = frozenset()

    @property
    def partition(self) -> str:
        """The partition that the slices are of."""
        return self.slices[0].group.partition


@dataclass(frozen=True, slots=True)
class Rescaled:
    """What became of the rows of a class that belong to some new buckets.

    ``first`` says that the buckets are the first ones of their class: of all tasks of a class
    one counts what was read. ``rows_read`` are the rows that go on, ``rows_over`` those of
    them that came from the slices over the others, and ``kept_out`` the rows of the others that
    stay out because a newer one has their key; ``deleted`` rows because theirs was deleted.
    """

    partition: str
    stats: tuple[WriteStat, ...]
    files_read: int
    bytes_read: int
    rows_read: int
    first: bool
    rows_over: int = 0
    kept_out: int = 0
    deleted: int = 0


def rescale_works(
    slices: Sequence[FileSlice], fields: tuple[str, ...], before: int, after: int, filled: int
) -> Iterator[RescaleWork]:
    """Divide the slices of a partition, each the only one of its bucket, into classes.

    ``filled`` is about how many of the new buckets get rows. A class that fills very many, from
    few small files, is divided further: each task reads all of it, and writes some.
    """
    step = math.gcd(before, after)
    classes: dict[int, list[FileSlice]] = {}
    for piece in slices:
        number = bucket_number(piece.group.file_id)
        assert number is not None
        classes.setdefault(number % step, []).append(piece)
    buckets = after // step
    files = -(-min(filled, after) // step)
    for first, pieces in sorted(classes.items()):
        size = sum(piece.size for piece in pieces)
        parts = 1
        if size <= _READ_AGAIN:
            parts = min(-(-files // _MOST_FILES), max(1, files // (4 * len(pieces))))
        share = -(-buckets // max(parts, 1))
        for begin in range(0, buckets, share):
            end = min(begin + share, buckets)
            mine = range(first + begin * step, first + end * step, step)
            yield RescaleWork(tuple(pieces), fields, after, mine, 2 * size)


def rescale_class(spec: ServiceSpec, work: RescaleWork, attempt: Attempt) -> Rescaled:
    """Write the rows of a class into new file groups; what Hudi's columns say of them stays.

    Buckets without rows get no file. ``Corrupt`` where a row lies in a bucket that is not its
    own: it would be lost.
    """
    storage = spec.open_storage()
    pieces = [sized(piece, storage) for piece in work.slices]
    reading = _Reading(spec, work, pieces)
    if len(work.buckets) == 1 and work.buckets.step == work.after:
        stats = _joined(reading, work, attempt)
    else:
        with _Shelves(SPILL_BYTES.read(spec.settings)) as shelves:
            for batch, places in reading.rows():
                shelves.add(batch, places)
            stats = tuple(
                stat
                for place in shelves.places()
                for stat in _written(spec, work, attempt, place, shelves.rows(place))
            )
    return Rescaled(
        partition=work.partition,
        stats=stats,
        files_read=sum(len(piece.paths) for piece in pieces),
        bytes_read=sum(piece.size for piece in pieces),
        rows_read=reading.count,
        first=work.buckets.start < work.buckets.step,
        rows_over=reading.rows_over,
        kept_out=reading.kept_out,
        deleted=reading.deleted,
    )


def _joined(reading: "_Reading", work: RescaleWork, attempt: Attempt) -> tuple[WriteStat, ...]:
    """Write all rows into one bucket, in the order in which they lie; unread where that works."""
    spec = reading.spec
    place = NewGroups(spec, work.partition, attempt, work.buckets[0])
    stats = None if work.over or work.since else copied(place, reading.pieces, 1)
    if stats is None:
        return tuple(_written(spec, work, attempt, 0, (batch for batch, _ in reading.rows())))
    reading.check_keys()
    return stats


def _written(
    spec: ServiceSpec,
    work: RescaleWork,
    attempt: Attempt,
    place: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[WriteStat]:
    """Write the file of a bucket; none where there are no rows."""
    # The first rows of the first file decide which columns get a dictionary, in all of them.
    first = list(islice((batch for batch in batches if batch.num_rows), 1))
    if not first:
        return

    def fill(sink: IO[bytes], name: str) -> int:
        seen = pa.Table.from_batches(first)
        file = base_spec(spec, work.partition, name, attempt.task, seen)
        return write_base(sink, chain(first, batches), file).rows

    yield NewGroups(spec, work.partition, attempt, work.buckets[place]).write(fill)


class _Reading:
    """Reads the rows of a class, and finds the new bucket of each."""

    def __init__(self, spec: ServiceSpec, work: RescaleWork, pieces: Sequence[FileSlice]) -> None:
        self.spec = spec
        self.pieces = pieces
        self._work = work
        self._reader = slice_reader(spec).project(rewritten_columns(spec))
        self.count = 0
        self.rows_over = 0
        self.kept_out = 0
        self.deleted = 0

    def rows(self) -> Iterator[tuple[pa.RecordBatch, Places]]:
        """Stream the rows that are written here, each with its place among the new buckets."""
        storage = self.spec.open_storage()
        newer: list[pa.Array] = []
        for piece in (sized(piece, storage) for piece in self._work.over):
            for batch in self._reader.open(piece):
                keys = record_keys(batch, self.spec.config, str(piece.group))
                newer.append(keys)
                self.rows_over += batch.num_rows
                yield from self._mine(piece, batch, keys)
        taken = pa.chunked_array(newer, pa.string()).combine_chunks() if newer else None
        written = self._written()
        for piece in self.pieces:
            for batch in self._reader.open(piece):
                keys = record_keys(batch, self.spec.config, str(piece.group))
                if taken is not None:
                    free = pc.invert(pc.is_in(keys, value_set=taken))
                    self.kept_out += batch.num_rows - (pc.sum(free).as_py() or 0)
                    batch, keys = batch.filter(free), keys.filter(free)
                if written is not None:
                    free = pc.invert(pc.is_in(keys, value_set=written))
                    self.deleted += batch.num_rows - (pc.sum(free).as_py() or 0)
                    batch, keys = batch.filter(free), keys.filter(free)
                yield from self._mine(piece, batch, keys)

    def _written(self) -> pa.Array | None:
        """Return the keys that were written since; None where there are none."""
        since = self._work.since
        if not since:
            return None
        parts = [mentioned_keys(self.spec, piece, self._work.instants) for piece in since]
        return pa.chunked_array(parts, pa.string()).unique()

    def _mine(
        self, piece: FileSlice, batch: pa.RecordBatch, keys: pa.Array
    ) -> Iterator[tuple[pa.RecordBatch, Places]]:
        """Count rows, and return those that are written here with their places."""
        self.count += batch.num_rows
        places = self._places(piece, keys)
        mine = (places >= 0) & (places < len(self._work.buckets))
        if mine.all():
            yield batch, places
        elif mine.any():
            yield batch.filter(pa.array(mine)), places[mine]

    def check_keys(self) -> None:
        """Read the keys of base files alone, and count them: they must lie in their buckets."""
        storage = self.spec.open_storage()
        for piece in self.pieces:
            if piece.base is None:
                continue
            with open_base(storage, piece.base.path, piece.base.size) as opened:
                for batch in opened.iter_batches([RECORD_KEY]):
                    self.count += batch.num_rows
                    self._places(piece, batch.column(0))

    def _places(self, piece: FileSlice, keys: pa.Array) -> Places:
        work, step = self._work, self._work.buckets.step
        found = bucket_of(keys, work.fields, work.after).astype(np.int64)
        strange = np.flatnonzero(found % step != work.buckets.start % step)
        if len(strange):
            key = keys[int(strange[0])].as_py()
            raise Corrupt(
                f"the row with the key {key!r} lies in {piece.group}, and its hash belongs to "
                "another bucket.",
                next_step="Let buckets.check() look at the table, and buckets.repair() mend it.",
                group=str(piece.group),
                key=str(key),
            )
        return (found - work.buckets.start) // step


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows in the order of their places, and where those of each place begin."""

    batches: pa.ipc.RecordBatchFileReader | None
    table: pa.Table | None
    places: Places
    starts: Places
    ends: Places

    def rows(self, place: int) -> Iterator[pa.RecordBatch]:
        """Stream the rows of one place."""
        at = int(np.searchsorted(self.places, place))
        if at == len(self.places) or self.places[at] != place:
            return
        start, end = int(self.starts[at]), int(self.ends[at])
        if self.table is not None:
            yield from self.table.slice(start, end - start).to_batches()
        elif self.batches is not None:
            for number in range(start // _BATCH, -(-end // _BATCH)):
                batch = self.batches.get_batch(number)
                low = max(start - number * _BATCH, 0)
                yield batch.slice(low, min(end - number * _BATCH, batch.num_rows) - low)


class _Shelves:
    """Puts rows by for their places: in memory up to a limit, beyond it on the task's disk.

    A run is what fits into memory, ordered by place. Nothing is merged: the rows of a place are
    those of all runs, one after the other.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: list[tuple[pa.RecordBatch, Places]] = []
        self._size = 0
        self._runs: list[_Run] = []
        self._folder: Path | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "_Shelves":
        return self

    def __exit__(self, *error: object) -> None:
        self._runs.clear()
        self._stack.close()

    def add(self, batch: pa.RecordBatch, places: Places) -> None:
        """Take rows in."""
        self._held.append((batch, places))
        self._size += batch.nbytes
        if self._size >= self._limit:
            self._put_by(on_disk=True)

    def places(self) -> Iterator[int]:
        """Stream the places that have rows, in order; nothing is added afterwards."""
        if self._held:
            self._put_by(on_disk=False)
        if self._runs:
            found = np.unique(np.concatenate([run.places for run in self._runs]))
            yield from (int(place) for place in found)

    def rows(self, place: int) -> Iterator[pa.RecordBatch]:
        """Stream the rows of a place, in the order in which they came."""
        for run in self._runs:
            yield from run.rows(place)

    def _put_by(self, *, on_disk: bool) -> None:
        table = pa.Table.from_batches([batch for batch, _ in self._held])
        each = np.concatenate([places for _, places in self._held])
        self._held, self._size = [], 0
        order = np.argsort(each, kind="stable")
        each = each[order]
        table = table.take(pa.array(order)).combine_chunks()
        places, starts = np.unique(each, return_index=True)
        ends = np.append(starts[1:], len(each))
        stored = self._stored(table) if on_disk else None
        kept = None if on_disk else table
        self._runs.append(_Run(stored, kept, places, starts.astype(np.int64), ends))

    def _stored(self, table: pa.Table) -> pa.ipc.RecordBatchFileReader:
        if self._folder is None:
            made = tempfile.TemporaryDirectory(prefix="lakewright-rescale-")
            self._folder = Path(self._stack.enter_context(made))
        path = self._folder / f"{len(self._runs)}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            for start in range(0, table.num_rows, _BATCH):
                # Rows are found again by the size of a batch, however the table is cut.
                writer.write_table(table.slice(start, _BATCH).combine_chunks())
        return pa.ipc.open_file(self._stack.enter_context(pa.memory_map(str(path))))
