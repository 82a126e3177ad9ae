"""The thrift compact protocol, as far as parquet footers use it; it believes nothing it reads.

A struct is taken apart one level at a time: its fields stay the bytes that they were, so that
what nobody asks about is put together again unread.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

_MAX_DEPTH = 32
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
I16, I32, I64 = 4, 5, 6
NUMBERS = frozenset((I16, I32, I64))
_WIDTHS = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8}

#: The type of a field, and the bytes of its value.
Raw: TypeAlias = tuple[int, bytes]
#: The fields of a struct by their numbers.
Fields: TypeAlias = dict[int, Raw]


class Forged(Exception):
    """Something in a footer cannot be true; an index beyond its end is an IndexError."""


def split(data: bytes) -> Fields:
    """Return the fields of the struct that these bytes begin with."""
    return split_at(data, 0)[0]


def split_at(data: bytes, at: int, inner: int | None = None) -> tuple[Fields, Fields, int]:
    """Return the fields of the struct that begins here, and where it ends.

    The struct in the field ``inner`` is taken apart on the way, which spares going through it
    again: its fields come second, and the field itself has no bytes.
    """
    found: Fields = {}
    within: Fields = {}
    last = 0
    while head := data[at]:
        at += 1
        kind = head & 0x0F
        if head > 0x0F:
            last += head >> 4
        else:
            raw, at = varint(data, at)
            last = (raw >> 1) ^ -(raw & 1)
        if kind in NUMBERS:
            end = at
            while data[end] > 0x7F:
                end += 1
            end += 1
        elif last == inner and kind == STRUCT:
            within, _, at = split_at(data, at)
            found[last] = kind, b""
            continue
        else:
            end = skip(data, at, kind, 0)
            if end > len(data):
                raise Forged("a value reaches past the end")
        found[last] = kind, data[at:end]
        at = end
    return found, within, at + 1


def value_at(data: bytes, at: int, wanted: int) -> int:
    """Return where the value of a field begins, in the struct that begins here."""
    last = 0
    while head := data[at]:
        at += 1
        if head > 0x0F:
            last += head >> 4
        else:
            raw, at = varint(data, at)
            last = (raw >> 1) ^ -(raw & 1)
        if last == wanted:
            return at
        at = skip(data, at, head & 0x0F, 0)
    raise Forged(f"there is no field {wanted}")


def join(fields: Mapping[int, Raw]) -> bytes:
    """Return the bytes of a struct."""
    parts = []
    last = 0
    for number in sorted(fields):
        kind, raw = fields[number]
        step = number - last
        parts.append(
            bytes([step << 4 | kind]) if 0 < step <= 15 else bytes([kind]) + packed(number)
        )
        parts.append(raw)
        last = number
    return b"".join((*parts, b"\0"))


def split_list(raw: bytes) -> tuple[int, list[bytes]]:
    """Return the type of a list's elements, and the bytes of each."""
    size, kind, at = list_head(raw, 0)
    found = []
    for _ in range(size):
        end = at + 1 if kind in (TRUE, FALSE) else skip(raw, at, kind, 0)
        if end > len(raw):
            raise Forged("an element reaches past the end")
        found.append(raw[at:end])
        at = end
    return kind, found


def join_list(kind: int, elements: Sequence[bytes]) -> bytes:
    """Return the bytes of a list."""
    return b"".join((list_start(kind, len(elements)), *elements))


def list_start(kind: int, size: int) -> bytes:
    """Return what comes before the elements of a list."""
    return bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint_bytes(size)


def unpacked(raw: bytes) -> int:
    """Return the number that these bytes hold."""
    value, _ = varint(raw, 0)
    return (value >> 1) ^ -(value & 1)


def packed(number: int) -> bytes:
    """Return the bytes of a number."""
    return varint_bytes(number << 1 if number >= 0 else (-number << 1) - 1)


def text_bytes(raw: bytes) -> bytes:
    """Return the bytes of a text or a binary value."""
    size, at = varint(raw, 0)
    if size > len(raw) - at:
        raise Forged("a value reaches past the end")
    return raw[at : at + size]


def binary(value: bytes) -> bytes:
    """Return a binary value as a field holds it."""
    return length_of(value) + value


def length_of(value: bytes) -> bytes:
    """Return what comes before a binary value."""
    return varint_bytes(len(value))


def varint_bytes(number: int) -> bytes:
    """Return the bytes of a number without sign."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number without sign that begins here, and where it ends."""
    value = shift = 0
    while (byte := data[at]) > 0x7F:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 63:
            raise Forged("a number is too long")
    return value | byte << shift, at + 1


def list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return a list's size, the type of its elements, and where they begin."""
    head = data[at]
    size, at = head >> 4, at + 1
    if size == 15:
        size, at = varint(data, at)
    if size > len(data) - at:
        raise Forged(f"a list claims {size} elements")
    return size, head & 0x0F, at


def skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return where the value that begins here ends."""
    if kind in NUMBERS:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == BINARY:
        size, at = varint(data, at)
        return at + size
    if depth > _MAX_DEPTH:
        raise Forged("it nests too deep")
    if kind == STRUCT:
        return _skip_struct(data, at, depth)
    if kind in (LIST, SET):
        size, element, at = list_head(data, at)
        if element in (TRUE, FALSE):
            return at + size  # booleans are bytes in a list, and nothing as a field
        for _ in range(size):
            at = skip(data, at, element, depth + 1)
        return at
    if kind in _WIDTHS:
        return at + _WIDTHS[kind]
    if kind == MAP:
        return _skip_map(data, at, depth)
    raise Forged(f"there is no type {kind}")


def _skip_struct(data: bytes, at: int, depth: int) -> int:
    while head := data[at]:
        at += 1
        if head <= 0x0F:
            _, at = varint(data, at)
        kind = head & 0x0F
        if kind in NUMBERS:
            while data[at] > 0x7F:
                at += 1
            at += 1
        else:
            at = skip(data, at, kind, depth + 1)
    return at + 1


def _skip_map(data: bytes, at: int, depth: int) -> int:
    size, at = varint(data, at)
    if not size:
        return at
    if size > len(data) - at:
        raise Forged(f"a map claims {size} entries")
    kinds, at = data[at], at + 1
    for _ in range(size):
        for kind in (kinds >> 4, kinds & 0x0F):
            at = at + 1 if kind in (TRUE, FALSE) else skip(data, at, kind, depth + 1)
    return at
