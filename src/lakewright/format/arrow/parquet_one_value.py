"""A parquet column chunk of one text in all rows: a few bytes, however many rows there are.

It is a dictionary of one value, and one page that says once that it comes so many times.
"""

from dataclasses import dataclass

from lakewright.format.arrow.thrift_compact import (
    BINARY,
    FALSE,
    I32,
    I64,
    LIST,
    STRUCT,
    Fields,
    Raw,
    binary,
    join,
    join_list,
    packed,
    varint_bytes,
)

_BYTE_ARRAY = 6
_UNCOMPRESSED = 0
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_ASCENDING = 1
_NO = b"\x02"


@dataclass(frozen=True, slots=True)
class OneValueChunk:
    """The pages of a column chunk, and its description.

    Places are told as if the pages were the beginning of the file; ``begins`` is that of the
    page after the dictionary.
    """

    value: bytes
    pages: bytes
    meta: Fields
    begins: int

    @property
    def column_index(self) -> bytes:
        """The index of what the page holds."""
        values = LIST, join_list(BINARY, [binary(self.value)])
        return join(
            {
                1: (LIST, join_list(FALSE, [_NO])),
                2: values,
                3: values,
                4: _number(_ASCENDING),
                5: (LIST, join_list(I64, [packed(0)])),
            }
        )

    @property
    def offset_index(self) -> bytes:
        """The index of where the page lies."""
        size = len(self.pages) - self.begins
        place = {1: (I64, packed(self.begins)), 2: _number(size), 3: (I64, packed(0))}
        return join({1: (LIST, join_list(STRUCT, [join(place)]))})


def one_value_chunk(column: str, value: str, rows: int, *, optional: bool) -> OneValueChunk:
    """Return the chunk of a top-level column of text; ``optional`` says that it may hold nulls."""
    text = value.encode()
    held = len(text).to_bytes(4, "little") + text
    dictionary = _page(held, _DICTIONARY, 7, _DICTIONARY_HEADER)
    levels = _run(rows, 1)
    defined = len(levels).to_bytes(4, "little") + levels if optional else b""
    content = defined + b"\x01" + _run(rows, 0)
    data = _page(content, _DATA, 5, join({1: _number(rows), **_DATA_ENCODINGS}))
    size = I64, packed(len(dictionary) + len(data))
    bounds: Fields = {3: _NONE}
    if rows:
        bound = BINARY, binary(text)
        bounds |= {5: bound, 6: bound}
    meta: Fields = {
        **_ALWAYS,
        3: (LIST, join_list(BINARY, [binary(column.encode())])),
        5: (I64, packed(rows)),
        6: size,
        7: size,
        9: (I64, packed(len(dictionary))),
        11: _NONE,
        12: (STRUCT, join(bounds)),
    }
    return OneValueChunk(text, dictionary + data, meta, len(dictionary))


def _page(content: bytes, kind: Raw, number: int, own: bytes) -> bytes:
    size = _number(len(content))
    return join({1: kind, 2: size, 3: size, number: (STRUCT, own)}) + content


def _run(count: int, value: int) -> bytes:
    """Return so many values of one bit as a run; nothing for none."""
    return varint_bytes(count << 1) + bytes([value]) if count else b""


def _number(value: int) -> Raw:
    return I32, packed(value)


# What all such chunks share is put together once.
_NONE: Raw = (I64, packed(0))
_DATA, _DICTIONARY = _number(_DATA_PAGE), _number(_DICTIONARY_PAGE)
_DICTIONARY_HEADER = join({1: _number(1), 2: _number(_PLAIN)})
_DATA_ENCODINGS: Fields = {2: _number(_RLE_DICTIONARY), 3: _number(_RLE), 4: _number(_RLE)}
_PAGES = (
    join({1: _DICTIONARY, 2: _number(_PLAIN), 3: _number(1)}),
    join({1: _DATA, 2: _number(_RLE_DICTIONARY), 3: _number(1)}),
)
_ALWAYS: Fields = {
    1: _number(_BYTE_ARRAY),
    2: (LIST, join_list(I32, [packed(number) for number in (_PLAIN, _RLE, _RLE_DICTIONARY)])),
    4: _number(_UNCOMPRESSED),
    13: (LIST, join_list(STRUCT, _PAGES)),
}
