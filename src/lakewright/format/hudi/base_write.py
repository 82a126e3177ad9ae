"""Writing base files: rows with Hudi's columns before them, and a footer that Hudi trusts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.arrow.texts import texts_of
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.base_footer import (
    AVRO_SCHEMA,
    BLOOM,
    BLOOM_KIND,
    KEY_COLUMN,
    MAX_KEY,
    MIN_KEY,
)
from lakewright.format.hudi.base_pruning import java_order
from lakewright.format.hudi.bloom import DYNAMIC, BloomBuilder, Shaping, cheap_shape
from lakewright.format.hudi.parquet_writing import ParquetFile, repeating_columns
from lakewright.model.errors import Invalid
from lakewright.model.schema import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    META_FIELDS,
    PARTITION_PATH,
    RECORD_KEY,
    Struct,
)

#: A row group is closed once it holds so many bytes, counted in memory.
ROW_GROUP_BYTES = 128 << 20
#: The least first byte of a letter that UTF-16 writes in two units.
_ASTRAL = 0xF0
_ZERO = ord("0")
#: Digits of sequence numbers that are copied from one thousand to the next.
_COPIED = 3
_CONSTANT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class BaseFileSpec:
    """What a base file is, besides its rows.

    ``schema`` is the table's without meta columns; ``name`` and ``namespace`` those of its Avro
    record. ``task`` is the first number of the write token, which sequence numbers repeat;
    rows that have none count from ``first``. ``keys`` are the columns that make up the record
    key. ``bloom`` is the kind and text of a filter that knows every key of the file already,
    ``bounds`` a range that holds them all, ``repeating`` the columns that get a dictionary;
    each is found out where it is None.
    Without ``meta`` the file has no meta columns, no key range and no bloom filter.
    """

    schema: Struct
    name: str
    namespace: str
    file_name: str
    partition: str
    instant: str
    task: int = 0
    keys: tuple[str, ...] = ()
    meta: bool = True
    bloom_kind: str = DYNAMIC
    bloom_shape: Shaping = cheap_shape
    bloom: tuple[str, str] | None = None
    row_group_bytes: int = ROW_GROUP_BYTES
    first: int = 0
    repeating: frozenset[str] | None = None
    bounds: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class WrittenBase:
    """What was written; keys are None for a file without rows or without meta columns."""

    rows: int
    min_key: str | None
    max_key: str | None


def write_base(
    sink: IO[bytes], batches: Iterable[pa.RecordBatch], spec: BaseFileSpec
) -> WrittenBase:
    """Write a base file from batches of rows, holding one row group in memory.

    Columns are found by name and conform to the schema. Rows need ``_hoodie_record_key``; a
    ``_hoodie_commit_time`` or ``_hoodie_commit_seqno`` that is absent or null is filled in, so
    that rows carried over from an older file keep theirs. Partition and file name are the file's.
    """
    file = _BaseFile(sink, spec)
    for batch in batches:
        file.add(batch)
    return file.finish()


class _BaseFile:
    """One base file in the making."""

    def __init__(self, sink: IO[bytes], spec: BaseFileSpec) -> None:
        self._sink = sink
        self._spec = spec
        self._data = to_arrow_schema(spec.schema)
        self._writer: ParquetFile | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._rows = 0
        self._numbered = spec.first
        self._bloom = BloomBuilder(shape=spec.bloom_shape)
        self._bounds: tuple[str, str] | None = spec.bounds
        meta = [pa.field(name, _META_TYPES[name]) for name in META_COLUMNS] if spec.meta else []
        self._schema = pa.schema([*meta, *self._data])

    def add(self, batch: pa.RecordBatch) -> None:
        data = conform(batch, self._data)
        for field, column in zip(self._data, data.columns, strict=True):
            if column.null_count and not field.nullable:
                raise Invalid(
                    f"column {field.name!r} holds nulls and may not be null.",
                    next_step="Fill them in, or leave those rows out.",
                )
        columns = [*self._meta(batch), *data.columns]
        made = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._rows += batch.num_rows
        self._pending.append(made)
        self._pending_bytes += made.nbytes
        if self._pending_bytes >= self._spec.row_group_bytes:
            self._flush()

    def finish(self) -> WrittenBase:
        writer = self._writer
        if self._pending or writer is None:
            writer = self._flush()
        writer.close(self._footer(writer))
        low, high = self._bounds or (None, None)
        return WrittenBase(self._rows, low, high)

    def _flush(self) -> ParquetFile:
        table = pa.Table.from_batches(self._pending, self._schema)
        if self._writer is None:
            keys = {COMMIT_SEQNO, RECORD_KEY, *self._spec.keys}
            repeating = self._spec.repeating
            if repeating is None:
                repeating = repeating_columns(table, keys)
            self._writer = ParquetFile(self._sink, self._schema, keys, repeating)
        self._writer.write(table)
        self._pending, self._pending_bytes = [], 0
        return self._writer

    def _meta(self, batch: pa.RecordBatch) -> list[pa.Array]:
        if not self._spec.meta:
            return []
        rows = batch.num_rows
        if RECORD_KEY not in batch.schema.names:
            raise Invalid(
                f"the rows have no column {RECORD_KEY}.",
                next_step="Please report it: this is a fault of Lakewright.",
            )
        keys = batch.column(RECORD_KEY).cast(pa.string())
        if keys.null_count:
            raise Invalid(
                f"{keys.null_count} rows have no record key.", next_step="Give every row a key."
            )
        if self._spec.bloom is None:
            self._bloom.add(keys)
        if self._spec.bounds is None:
            self._bounds = wider_bounds(self._bounds, key_bounds(keys))
        return [
            self._commit_times(batch),
            self._sequence(batch),
            keys,
            constant(self._spec.partition, rows),
            constant(self._spec.file_name, rows),
        ]

    def _commit_times(self, batch: pa.RecordBatch) -> pa.Array:
        if COMMIT_TIME not in batch.schema.names:
            return constant(self._spec.instant, batch.num_rows)
        times = batch.column(COMMIT_TIME).cast(pa.string())
        if times.null_count:
            times = pc.fill_null(times, self._spec.instant)
        return times.dictionary_encode()

    def _sequence(self, batch: pa.RecordBatch) -> pa.Array:
        old = None
        if COMMIT_SEQNO in batch.schema.names:
            old = batch.column(COMMIT_SEQNO).cast(pa.string())
            if not old.null_count:
                return old
        count, first = batch.num_rows, self._numbered
        self._numbered += count
        new = sequence_numbers(self._spec.instant, self._spec.task, first, count)
        return new if old is None else pc.coalesce(old, new)

    def _footer(self, writer: ParquetFile) -> dict[str, str]:
        spec = self._spec
        struct = Struct((*META_FIELDS, *spec.schema.fields)) if spec.meta else spec.schema
        footer = {
            AVRO_SCHEMA: to_avro_schema(struct, spec.name, spec.namespace),
            "writer.model.name": "avro",
        }
        if spec.meta and spec.bloom is not None:
            footer |= {BLOOM_KIND: spec.bloom[0], BLOOM: spec.bloom[1]}
        elif spec.meta:
            bloom = self._bloom.build(spec.bloom_kind)
            footer |= {BLOOM_KIND: bloom.kind, BLOOM: bloom.encode()}
        if self._bounds is not None:
            footer |= {MIN_KEY: self._bounds[0], MAX_KEY: self._bounds[1]}
        for column, other in writer.same():
            if column == RECORD_KEY:
                footer[KEY_COLUMN] = other
        return footer


_META_TYPES = {
    COMMIT_TIME: _CONSTANT,
    COMMIT_SEQNO: pa.string(),
    RECORD_KEY: pa.string(),
    PARTITION_PATH: _CONSTANT,
    FILE_NAME: _CONSTANT,
}


def sequence_numbers(instant: str, task: int, first: int, count: int) -> pa.Array:
    """Return the sequence numbers of so many new rows of a task."""
    prefix = np.frombuffer(f"{instant}_{task}_".encode(), np.uint8)
    parts: list[pa.Array] = []
    start, end = first, first + count
    while start < end:
        stop = min(end, 10 ** len(str(start)))
        parts.append(_numbered(prefix, start, stop))
        start = stop
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _numbered(prefix: npt.NDArray[np.uint8], start: int, stop: int) -> pa.Array:
    """Return the texts of numbers of equally many digits: a matrix of letters, made by columns.

    The last digits of a thousand numbers are those of every other thousand, and are copied; the
    others are the same in all of it. That takes a tenth of the time of casting numbers to text
    and joining the texts.
    """
    count, size = stop - start, len(prefix) + len(str(start))
    last = min(_COPIED, size - len(prefix))
    step = 10**last
    first, beyond = start // step, -(-stop // step)
    letters = np.empty((beyond - first, step, size), np.uint8)
    pattern = np.empty((step, size), np.uint8)
    pattern[:, : len(prefix)] = prefix
    _put_digits(pattern, np.arange(step), size - last, size)
    letters[:] = pattern
    _put_digits(letters, np.arange(first, beyond)[:, None], len(prefix), size - last)
    used = letters.reshape(-1, size)[start - first * step :][:count]
    ends = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(used))


def _put_digits(
    letters: npt.NDArray[np.uint8], numbers: npt.NDArray[np.int64], begin: int, end: int
) -> None:
    """Write numbers of so many digits into columns of a matrix of letters."""
    rest = numbers
    for column in range(end - 1, begin - 1, -1):
        rest, digits = np.divmod(rest, 10)
        letters[..., column] = digits + _ZERO


def constant(value: str, rows: int) -> pa.Array:
    """Return a column of one value that takes no room."""
    indices = pa.array(np.zeros(rows, np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


def key_bounds(keys: pa.Array) -> tuple[str, str] | None:
    """Return the least and the greatest key in Java's string order; None without keys."""
    if not len(keys):
        return None
    if texts_of(keys).used.max(initial=0) >= _ASTRAL:
        # Java sorts by UTF-16 units: there letters beyond the sixteenth bit come before the
        # last ones below it.
        values = keys.to_pylist()
        return min(values, key=java_order), max(values, key=java_order)
    found = pc.min_max(keys).as_py()
    return found["min"], found["max"]


def wider_bounds(
    one: tuple[str, str] | None, other: tuple[str, str] | None
) -> tuple[str, str] | None:
    """Return the range that holds two ranges of keys."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0], key=java_order), max(one[1], other[1], key=java_order)
