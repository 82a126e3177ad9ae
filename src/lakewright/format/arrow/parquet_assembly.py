"""A parquet file put together from column chunks, of which some need no encoding.

Arrow encodes most columns of a row group. Two kinds cost next to nothing: a column that holds
the same texts as another one gets a copy of its pages, and a column of one text in all rows gets
a few bytes. In a Hudi table these are the record key beside the column that it is made of, and
the columns that hold a partition, a file name or a commit time.

A small row group is encoded in memory, all of it at once, since each call of Arrow's costs time
too. Of a large one the pages go to the file as they are made, but for those that are copied:
memory that nobody used before costs more than the calls.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.parquet_footer import (
    MAGIC,
    MOST_ORDINALS,
    SUMMED,
    ChunkField,
    ColumnField,
    FileField,
    GroupField,
    add,
    extent,
    footer_parts,
    move,
)
from lakewright.format.arrow.parquet_nan import columns_with_nan, leaf_count, without_bounds
from lakewright.format.arrow.parquet_one_value import one_value_chunk
from lakewright.format.arrow.parquet_pages import PageStream
from lakewright.format.arrow.thrift_compact import (
    BINARY,
    I16,
    I64,
    LIST,
    STRUCT,
    Fields,
    binary,
    join,
    join_list,
    list_head,
    packed,
    split,
    split_at,
    unpacked,
    value_at,
)

#: Bytes of rows, counted in memory, from which on pages go to the file as they are made.
_LARGE = 16 << 20


class Encoding(NamedTuple):
    """Two ways to make a parquet file of some rows, in one row group."""

    whole: Callable[[pa.Table], pa.Buffer]
    stream: Callable[[pa.Table, PageStream], None]


def description(file: pa.Buffer) -> Fields:
    """Return the description of a parquet file of ours, its fields apart."""
    return split(_footer(file))


def _described(file: pa.Buffer, unbounded: Collection[int]) -> Iterator[tuple[Fields, Fields]]:
    """Stream the descriptions of the column chunks of a file that has one row group.

    They are gone through once: a write has many files, and this is Python. Those of the columns
    ``unbounded`` tell no bounds.
    """
    data = _footer(file)
    _, _, group = list_head(data, value_at(data, 0, FileField.GROUPS))
    count, _, at = list_head(data, value_at(data, group, GroupField.COLUMNS))
    for number in range(count):
        chunk, column, at = split_at(data, at, ChunkField.META)
        yield chunk, without_bounds(column) if number in unbounded else column


def _footer(file: pa.Buffer) -> bytes:
    size = int.from_bytes(file[-8:-4], "little")
    return bytes(file[-8 - size : -8].to_pybytes())


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column chunk: where it says that it lies, what it holds, and its pages."""

    chunk: Fields
    column: Fields
    pages: bytes | pa.Buffer

    def named(self, name: str) -> "_Chunk":
        """Return the chunk of another top-level column that holds the same."""
        path = LIST, join_list(BINARY, [binary(name.encode())])
        return _Chunk(self.chunk, {**self.column, ColumnField.PATH: path}, self.pages)

    def at(self, place: int) -> tuple[Fields, Fields]:
        """Return its description as it is once its pages lie at a place."""
        chunk, column = dict(self.chunk), dict(self.column)
        move(chunk, column, place - extent(column)[0])
        return chunk, column


class Assembly:
    """A parquet file in the making; the sink stays open.

    ``empty`` describes a file of this schema without rows. Among the columns ``texts`` such are
    looked for that hold the same texts.
    """

    def __init__(
        self,
        sink: IO[bytes],
        schema: pa.Schema,
        empty: Fields,
        encoding: Encoding,
        texts: Sequence[str] = (),
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._empty = empty
        self._encoding = encoding
        self._texts = [name for name in texts if pa.types.is_string(schema.field(name).type)]
        self._groups: list[bytes] = []
        self._same: set[tuple[str, str]] | None = None
        self._at = 0
        self._rows = 0
        self._write(MAGIC)

    def add(self, rows: pa.Table) -> None:
        """Write rows, of which there are some, as one row group."""
        start, sums = self._at, dict.fromkeys(SUMMED.values(), 0)
        chunks = []
        for chunk, column in self._chunks(rows):
            for number, summed in SUMMED.items():
                sums[summed] += unpacked(column[number][1])
            chunks.append(join(chunk))
        group: Fields = {
            GroupField.COLUMNS: (LIST, join_list(STRUCT, chunks)),
            GroupField.ROWS: (I64, packed(rows.num_rows)),
            GroupField.OFFSET: (I64, packed(start)),
            **{number: (I64, packed(value)) for number, value in sums.items()},
        }
        if len(self._groups) < MOST_ORDINALS:
            group[GroupField.ORDINAL] = I16, packed(len(self._groups))
        self._groups.append(join(group))
        self._rows += rows.num_rows

    def close(self, values: Mapping[str, bytes]) -> None:
        """Write the footer, with these key-values in it."""
        file = dict(self._empty)
        file[FileField.ROWS] = I64, packed(self._rows)
        file[FileField.GROUPS] = LIST, join_list(STRUCT, self._groups)
        for part in footer_parts(file, values):
            self._write(part)

    def same(self) -> frozenset[tuple[str, str]]:
        """Return the pairs of columns that hold the same texts in all rows so far."""
        return frozenset(self._same or ())

    def _chunks(self, rows: pa.Table) -> Iterator[tuple[Fields, Fields]]:
        """Write the chunks of a row group in the order of its columns; stream their descriptions.

        These say where the pages lie.
        """
        twins = self._twins(rows)
        self._same = set(twins.items()) & (set(twins.items()) if self._same is None else self._same)
        ones = {
            field.name: value
            for field, column in zip(self._schema, rows.columns, strict=True)
            if field.name not in self._texts and (value := one_text(column)) is not None
        }
        plain = rows.drop_columns([*twins, *ones])
        held = plain.column_names if plain.nbytes < _LARGE else sorted({*twins.values()})
        encoded = self._encoded(plain.select(held))
        passed = frozenset(plain.column_names) - frozenset(held)
        for passes, fields in groupby(self._schema, lambda field: field.name in passed):
            if passes:
                yield from self._streamed(plain.select([field.name for field in fields]))
                continue
            for field in fields:
                if field.name in twins:
                    yield self._put(encoded[twins[field.name]][0].named(field.name))
                elif field.name in ones:
                    yield self._put(_one_value(field, ones[field.name], rows.num_rows))
                else:
                    for made in encoded[field.name]:
                        yield self._put(made)

    def _twins(self, rows: pa.Table) -> dict[str, str]:
        """Return the columns that hold the same texts as one that is encoded, and which one.

        Of several that hold the same the last is encoded. One that may be null has no twin that
        may not.
        """
        found: dict[str, str] = {}
        encoded: list[str] = []
        for name in reversed(self._texts):
            field, column = self._schema.field(name), rows.column(name)
            for other in encoded:
                alike = self._schema.field(other).nullable == field.nullable
                if alike and column.equals(rows.column(other)):
                    found[name] = other
                    break
            else:
                encoded.append(name)
        return found

    def _encoded(self, rows: pa.Table) -> dict[str, list[_Chunk]]:
        """Return the chunks that Arrow makes of columns, by the names of the columns."""
        if not rows.num_columns:
            return {}
        file = self._encoding.whole(rows)
        made = []
        for chunk, column in _described(file, columns_with_nan(rows)):
            start, size = extent(column)
            made.append(_Chunk(chunk, column, file.slice(start, size)))
        found: dict[str, list[_Chunk]] = {}
        for field in rows.schema:
            count = leaf_count(field.type)
            found[field.name], made = made[:count], made[count:]
        return found

    def _streamed(self, rows: pa.Table) -> Iterator[tuple[Fields, Fields]]:
        """Let Arrow write columns to the file; stream the descriptions of their chunks."""
        stream = PageStream(self._sink)
        self._encoding.stream(rows, stream)
        footer = stream.footer()
        moved = self._at - len(MAGIC)
        self._at += stream.passed
        for chunk, column in _described(footer, columns_with_nan(rows)):
            move(chunk, column, moved)
            yield chunk, column

    def _put(self, made: _Chunk) -> tuple[Fields, Fields]:
        """Write a chunk; return its description."""
        placed = made.at(self._at)
        self._write(made.pages)
        return placed

    def _write(self, data: bytes | pa.Buffer) -> None:
        self._sink.write(data)
        self._at += len(data)


def one_text(column: pa.ChunkedArray) -> str | None:
    """Return the text that all rows of a column have; None where it is no such column."""
    if column.null_count or not len(column):
        return None
    if pa.types.is_dictionary(column.type):
        if not pa.types.is_string(column.type.value_type):
            return None
        values = {value for chunk in column.chunks for value in _few(chunk.dictionary)}
        return values.pop() if len(values) == 1 else None
    if not pa.types.is_string(column.type):
        return None
    first = column[0]
    if any(column[place] != first for place in (len(column) - 1, len(column) // 2)):
        return None
    return str(first) if pc.all(pc.equal(column, first)).as_py() else None


def _few(dictionary: pa.Array) -> list[str | None]:
    """Return the values of a dictionary; of a long one two, which is too many already."""
    return list(dictionary.slice(0, 2).to_pylist())


def _one_value(field: pa.Field, value: str, rows: int) -> _Chunk:
    made = one_value_chunk(field.name, value, rows, optional=field.nullable)
    for number in (ColumnField.PAGES, ColumnField.DICTIONARY):
        # No page lies at the very beginning: a place of 0 would say that there is none.
        add(made.meta, number, len(MAGIC))
    return _Chunk({ChunkField.OFFSET: (I64, packed(0))}, made.meta, made.pages)
