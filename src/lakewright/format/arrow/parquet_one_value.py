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
    """The pages of a column chunk, its description and its page indexes.

    Places are told as if the pages were the beginning of the file.
    """

    pages: bytes
    meta: Fields
    column_index: bytes
    offset_index: bytes


def one_value_chunk(column: str, value: str, rows: int, *, optional: bool) -> OneValueChunk:
    """Return the chunk of a top-level column of text; ``optional`` says that it may hold nulls."""
    text = value.encode()
    held = len(text).to_bytes(4, "little") + text
    dictionary = _page(held, {1: _number(_DICTIONARY_PAGE)}, 7, {1: _number(1), 2: _number(_PLAIN)})
    levels = _run(rows, 1)
    defined = len(levels).to_bytes(4, "little") + levels if optional else b""
    data = _page(
        defined + b"\x01" + _run(rows, 0),
        {1: _number(_DATA_PAGE)},
        5,
        {1: _number(rows), 2: _number(_RLE_DICTIONARY), 3: _number(_RLE), 4: _number(_RLE)},
    )
    size = len(dictionary) + len(data)
    bounds: Fields = {3: (I64, packed(0))}
    if rows:
        bounds |= {5: (BINARY, binary(text)), 6: (BINARY, binary(text))}
    encodings = [packed(number) for number in (_PLAIN, _RLE, _RLE_DICTIONARY)]
    used = [
        join({1: _number(page), 2: _number(encoding), 3: _number(1)})
        for page, encoding in ((_DICTIONARY_PAGE, _PLAIN), (_DATA_PAGE, _RLE_DICTIONARY))
    ]
    meta: Fields = {
        1: _number(_BYTE_ARRAY),
        2: (LIST, join_list(I32, encodings)),
        3: (LIST, join_list(BINARY, [binary(column.encode())])),
        4: _number(_UNCOMPRESSED),
        5: (I64, packed(rows)),
        6: (I64, packed(size)),
        7: (I64, packed(size)),
        9: (I64, packed(len(dictionary))),
        11: (I64, packed(0)),
        12: (STRUCT, join(bounds)),
        13: (LIST, join_list(STRUCT, used)),
    }
    column_index: Fields = {
        1: (LIST, join_list(FALSE, [_NO])),
        2: (LIST, join_list(BINARY, [binary(text)])),
        3: (LIST, join_list(BINARY, [binary(text)])),
        4: _number(_ASCENDING),
        5: (LIST, join_list(I64, [packed(0)])),
    }
    place = {1: (I64, packed(len(dictionary))), 2: _number(len(data)), 3: (I64, packed(0))}
    return OneValueChunk(
        dictionary + data,
        meta,
        join(column_index),
        join({1: (LIST, join_list(STRUCT, [join(place)]))}),
    )


def _page(content: bytes, kind: Fields, number: int, own: Fields) -> bytes:
    header = {2: _number(len(content)), 3: _number(len(content)), number: (STRUCT, join(own))}
    return join({**kind, **header}) + content


def _run(count: int, value: int) -> bytes:
    """Return so many values of one bit as a run; nothing for none."""
    return varint_bytes(count << 1) + bytes([value]) if count else b""


def _number(value: int) -> Raw:
    return I32, packed(value)
