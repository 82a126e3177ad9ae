"""From the rows of a user to rows with keys and partitions, split by where they go."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_ordering import check_ordering
from lakewright.actions.tasks.write_spec import (
    ROUTE_DELETE,
    ROUTE_GROUP,
    ROUTE_PARTITION,
    ROUTE_POSITION,
    KeysToDelete,
    WriteSpec,
    looks_up,
)
from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.arrow.shared_columns import taken
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.index.bucket_routing import route_to_buckets, widest
from lakewright.model.schema import PARTITION_PATH, RECORD_KEY
from lakewright.model.writing import Operation

#: A partition and what divides it: a bucket (eight digits), a file id, or nothing yet.
Place: TypeAlias = tuple[str, str]

#: The place of all rows of a table whose keys are unique over its partitions.
EVERYWHERE: Place = ("", "")

#: Numbers below this sort in one pass.
_NARROW = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _Division:
    """What divides partitions: a number below ``width`` for each row.

    ``names`` are the names of the numbers; without them they are buckets.
    """

    width: int = 1
    codes: npt.NDArray[np.int32] | None = None
    names: Sequence[str] | None = ("",)

    def name(self, number: int) -> str:
        return f"{number:08d}" if self.names is None else self.names[number]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows that go to one place; deletes and known positions are columns of them.

    ``nbytes`` is about what they take: counting a slice exactly costs more than it is worth.
    """

    place: Place
    rows: pa.RecordBatch
    nbytes: int


class Preparer:
    """Prepares the batches of one task; may be used from several threads."""

    def __init__(self, spec: WriteSpec, task: int) -> None:
        self._spec = spec
        self._task = task
        self._keys = KeyMaker.of(spec.config, spec.schema)
        self._target = to_arrow_schema(spec.schema)
        self._only_keys = spec.operation is Operation.DELETE
        self._everywhere = spec.layout.kind.is_global and looks_up(spec)
        self._lock = Lock()
        self._made = 0

    def pieces(self, batch: pa.RecordBatch) -> list[Piece]:
        """Return the rows of a batch by place, each with key, columns and marks."""
        rows, partitions = self._prepare(batch)
        routed = ROUTE_GROUP in batch.schema.names
        if self._everywhere and not routed:
            placed = rows.append_column(PARTITION_PATH, partitions)
            return [Piece(EVERYWHERE, placed, placed.nbytes)]
        if routed:
            groups = _coded(batch.column(ROUTE_GROUP))
            names = groups.dictionary.to_pylist()
            codes = groups.indices.to_numpy(zero_copy_only=False)
            return list(_split(rows, partitions, _Division(len(names), codes, names)))
        return list(_split(rows, partitions, self._division(rows, partitions)))

    def deletes(self, gone: KeysToDelete) -> list[Piece]:
        """Return keys to delete by place."""
        rows = pa.RecordBatch.from_pydict({RECORD_KEY: gone.keys.cast(pa.string())})
        if self._everywhere:
            return [Piece(EVERYWHERE, rows, rows.nbytes)]
        partitions = _coded(gone.partitions)
        return list(_split(rows, partitions, self._division(rows, partitions)))

    def _division(self, rows: pa.RecordBatch, partitions: pa.DictionaryArray) -> _Division:
        layout = self._spec.layout
        if layout.buckets is None:
            return _Division()
        fields = layout.hash_fields or self._spec.config.record_key
        buckets = route_to_buckets(rows.column(RECORD_KEY), partitions, fields, layout.buckets)
        return _Division(widest(partitions, layout.buckets), buckets, None)

    def _prepare(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.DictionaryArray]:
        names = batch.schema.names
        data = self._conformed(batch)
        path = ROUTE_PARTITION if ROUTE_PARTITION in names else PARTITION_PATH
        partitions = _coded(batch.column(path)) if path in names else self._keys.partitions(data)
        if RECORD_KEY in names:
            keys = batch.column(RECORD_KEY).cast(pa.string())
            if self._keys.generated and keys.null_count:
                # Rows of a merge: those that it adds have no key and no partition yet.
                made = self._generated(len(batch))
                keys, paths = self._keys.completed(data, keys, partitions, made)
                partitions = _coded(paths)
        elif self._keys.generated:
            keys = self._generated(len(batch))
        else:
            keys = self._keys.keys(data)
        columns = {RECORD_KEY: keys}
        if not self._only_keys:
            columns |= dict(zip(data.schema.names, data.columns, strict=True))
        for mark in (ROUTE_DELETE, ROUTE_POSITION):
            if mark in names:
                columns[mark] = batch.column(mark)
        rows = pa.RecordBatch.from_pydict(columns)
        if not self._only_keys:
            check_ordering(rows, self._spec.config)
        return rows, partitions

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        target = self._target
        if self._only_keys:
            target = pa.schema([f for f in target if f.name in batch.schema.names])
        return conform(batch, target)

    def _generated(self, rows: int) -> pa.Array:
        with self._lock:
            first = self._made
            self._made += rows
        return self._keys.generated_keys(self._spec.instant, self._task, first, rows)


def _coded(column: pa.Array) -> pa.DictionaryArray:
    if pa.types.is_dictionary(column.type):
        return column
    return column.cast(pa.string()).dictionary_encode()


def _split(
    rows: pa.RecordBatch, partitions: pa.DictionaryArray, division: _Division
) -> Iterator[Piece]:
    """Cut rows by small numbers: one stable sort and one copy of the batch, then slices of it."""
    if not rows.num_rows:
        return
    paths = partitions.dictionary.to_pylist()
    numbers = partitions.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    width = division.width
    if division.codes is not None:
        numbers = numbers * width + division.codes
    wide = len(paths) * width
    if wide <= _NARROW:
        counts = np.bincount(numbers, minlength=wide)
        present = np.flatnonzero(counts)
        sizes = counts[present]
        order = np.argsort(numbers.astype(np.uint16), kind="stable") if len(present) > 1 else None
    else:
        order = np.argsort(numbers, kind="stable")
        ranked = numbers[order]
        starts = np.concatenate(([0], np.flatnonzero(ranked[1:] != ranked[:-1]) + 1))
        present, sizes = ranked[starts], np.diff(starts, append=len(ranked))
    if order is not None and len(present) > 1:
        rows = taken(rows, pa.array(order))
    per_row = rows.nbytes / rows.num_rows
    start = 0
    for number, size in zip(present.tolist(), sizes.tolist(), strict=True):
        place = (paths[number // width], division.name(number % width))
        yield Piece(place, rows.slice(start, size), int(size * per_row))
        start += size


def marked(rows: pa.Table) -> tuple[pa.Table, pa.Array | None]:
    """Take rows that delete their key out of the others; return both, keys for the deletes."""
    if ROUTE_DELETE not in rows.schema.names:
        return rows, None
    flags = pc.fill_null(rows.column(ROUTE_DELETE), False)
    rest = rows.drop_columns([ROUTE_DELETE])
    if not pc.any(flags).as_py():
        return rest, None
    gone = rest.column(RECORD_KEY).filter(flags).combine_chunks().unique()
    return rest.filter(pc.invert(flags)), gone
