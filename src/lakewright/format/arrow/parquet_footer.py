"""The description at the end of a parquet file, by the numbers of its fields.

What takes files apart and puts them together shares these: where a column chunk lies, how its
place changes, and how a footer with large key-values is written without copying them.
"""

from collections.abc import Iterator, Mapping

from lakewright.format.arrow.thrift_compact import (
    BINARY,
    LIST,
    STRUCT,
    Fields,
    binary,
    join,
    length_of,
    list_start,
    packed,
    unpacked,
)

MAGIC = b"PAR1"
#: Row groups that have a number of their own: it has 16 bits.
MOST_ORDINALS = 1 << 15


class FileField:
    """Numbers of the fields of a file's description."""

    SCHEMA, ROWS, GROUPS, VALUES, CREATED_BY, ORDERS, ENCRYPTION = 2, 3, 4, 5, 6, 7, 8


class GroupField:
    """Those of a row group's."""

    COLUMNS, BYTES, ROWS, OFFSET, COMPRESSED, ORDINAL = 1, 2, 3, 5, 6, 7


class ChunkField:
    """Those of a column chunk's, which says where the chunk and its page indexes lie."""

    FILE, OFFSET, META, CRYPTO = 1, 2, 3, 8
    OFFSET_INDEX, OFFSET_INDEX_SIZE, COLUMN_INDEX, COLUMN_INDEX_SIZE = 4, 5, 6, 7


class ColumnField:
    """Those of what a column chunk holds."""

    PATH, UNCOMPRESSED, COMPRESSED, PAGES, INDEX_PAGE, DICTIONARY = 3, 6, 7, 9, 10, 11
    STATISTICS, BLOOM, BLOOM_SIZE = 12, 14, 15


#: Sizes of a column chunk, and the fields of a row group that sum them.
SUMMED = {
    ColumnField.UNCOMPRESSED: GroupField.BYTES,
    ColumnField.COMPRESSED: GroupField.COMPRESSED,
}
_PLACES = (ColumnField.PAGES, ColumnField.INDEX_PAGE, ColumnField.DICTIONARY)


def add(fields: Fields, number: int, change: int) -> None:
    """Change a number, where the field is there."""
    if number in fields:
        kind, raw = fields[number]
        fields[number] = kind, packed(unpacked(raw) + change)


def extent(column: Fields) -> tuple[int, int]:
    """Return where the pages of a column chunk begin, and how many bytes they are."""
    start = unpacked(column[ColumnField.PAGES][1])
    if ColumnField.DICTIONARY in column:
        dictionary = unpacked(column[ColumnField.DICTIONARY][1])
        start = min(start, dictionary) if dictionary > 0 else start
    return start, unpacked(column[ColumnField.COMPRESSED][1])


def move(chunk: Fields, column: Fields, by: int) -> None:
    """Change the places that a column chunk names; ``column`` is what it holds, taken apart.

    Parquet's own bloom filters are left out: they lie elsewhere, and are not moved.
    """
    for number in _PLACES:
        if number in column and unpacked(column[number][1]) > 0:
            add(column, number, by)
    column.pop(ColumnField.BLOOM, None)
    column.pop(ColumnField.BLOOM_SIZE, None)
    chunk[ChunkField.META] = STRUCT, join(column)
    if ChunkField.OFFSET in chunk and unpacked(chunk[ChunkField.OFFSET][1]) > 0:
        add(chunk, ChunkField.OFFSET, by)


def footer_parts(file: Fields, values: Mapping[str, bytes]) -> Iterator[bytes]:
    """Stream the end of a file: its description with these key-values, and what closes it."""
    size = 0
    for part in _description(file, values):
        size += len(part)
        yield part
    yield size.to_bytes(4, "little") + MAGIC


def _description(file: Fields, values: Mapping[str, bytes]) -> Iterator[bytes]:
    """Stream the description; key-values may be large, and are not copied together."""
    before = join({number: raw for number, raw in file.items() if number < FileField.VALUES})
    yield before[:-1]
    yield bytes([(FileField.VALUES - FileField.GROUPS) << 4 | LIST])
    yield list_start(STRUCT, len(values))
    for key, value in values.items():
        yield join({1: (BINARY, binary(key.encode()))})[:-1]
        yield bytes([1 << 4 | BINARY]) + length_of(value)
        yield value
        yield b"\0"
    after = {
        number - FileField.VALUES: raw for number, raw in file.items() if number > FileField.VALUES
    }
    yield join(after)
