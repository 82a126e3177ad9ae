"""Bloom filters over record keys, as Hudi keeps them in the footers of base files.

Keys are hashed with Hadoop's Murmur hash of their UTF-8 bytes, again and again with the last
hash as the next seed. All keys of one length go through numpy together.
"""

import base64
import binascii
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.format.arrow.failures import placed
from lakewright.format.arrow.texts import Bytes, Texts, texts_of
from lakewright.model.errors import Corrupt, Invalid, Unsupported

DYNAMIC = "DYNAMIC_V0"
SIMPLE = "SIMPLE"

Words: TypeAlias = npt.NDArray[np.uint32]
Flags: TypeAlias = npt.NDArray[np.bool_]

_VERSION = -1
_MURMUR = 1
_FACTOR = np.uint32(0x5BD1E995)
_MAX_HASHES = 1000
# Keys that go through the hash together: larger pieces leave the cache, smaller ones pay more
# for the calls than for the work.
_PIECE = 8 << 10


@dataclass(frozen=True, slots=True)
class BloomShape:
    """How a filter is laid out: bits per row of the filter, hashes per key, keys per row."""

    bits: int
    hashes: int
    keys: int


#: Says how a filter of so many keys is laid out.
Shaping: TypeAlias = Callable[[int], BloomShape]


def cheap_shape(keys: int) -> BloomShape:
    """Return a shape that takes ten hashes and misleads once in 200,000 questions."""
    keys = max(keys, 1)
    return BloomShape(max(64, math.ceil(28.8 * keys)), 10, keys)


def lean_shape(keys: int) -> BloomShape:
    """Return a shape that takes five hashes and misleads once in 1,900 questions.

    It is enough where something else tells already which few files may hold a key.
    """
    keys = max(keys, 1)
    return BloomShape(max(64, 20 * keys), 5, keys)


def shape_for(keys: int, false_positives: float) -> BloomShape:
    """Return the shape that Hudi computes for so many keys and so rare false positives."""
    if keys < 1 or not 0 < false_positives < 1:
        raise Invalid(
            f"no filter has {keys} keys and {false_positives} false positives.",
            next_step="Give at least one key, and a rate between 0 and 1.",
        )
    bits = math.ceil(keys * -math.log(false_positives) / math.log(2) ** 2)
    return BloomShape(bits, math.ceil(math.log(2) * bits / keys), keys)


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A filter that was read or built; a key may be present if any row has all its bits."""

    kind: str
    hashes: int
    bits: int
    rows: tuple[Bytes, ...]
    row_keys: int = 0
    last_keys: int = 0

    def contains(self, keys: pa.Array) -> Flags:
        """Say for each key whether it may be present; False is certain."""
        texts = texts_of(keys)
        found = np.zeros(len(texts), bool)
        for rows, places in positions(texts, self.hashes, self.bits):
            byte, mask = places >> 3, np.left_shift(1, places & 7).astype(np.uint8)
            hit = np.zeros(len(rows), bool)
            for row in self.rows:
                hit |= np.all(row[byte] & mask, axis=0)
            found[rows] = hit
        return found

    def grown(self, keys: pa.Array) -> "BloomFilter | None":
        """Return a filter that knows these keys too; None where it would become too full.

        The last row takes a quarter more keys than it was made for: it misleads six times as often
        then, or three times where it is lean.
        """
        last = self.last_keys + len(keys)
        if self.kind != DYNAMIC or not self.rows or last > self.row_keys * 5 // 4:
            return None
        marks = np.unpackbits(self.rows[-1], bitorder="little")
        for _, places in positions(texts_of(keys), self.hashes, self.bits):
            marks[places.reshape(-1)] = 1
        rows = (*self.rows[:-1], np.packbits(marks, bitorder="little"))
        return replace(self, rows=rows, last_keys=last)

    def encode(self) -> str:
        """Return the base64 text for the footer."""
        return self.encoded().decode("ascii")

    def encoded(self) -> bytes:
        """Return the base64 text for the footer as bytes; filters of many keys are large."""
        inner = struct.pack(">iibi", _VERSION, self.hashes, _MURMUR, self.bits)
        parts: list[bytes | memoryview] = [p for row in self.rows for p in (inner, row.data)]
        if self.kind == DYNAMIC:
            counts = struct.pack(">iii", self.row_keys, self.last_keys, len(self.rows))
            parts = [inner, counts, *parts]
        return base64.b64encode(b"".join(parts))


def joined(filters: Sequence[BloomFilter]) -> BloomFilter | None:
    """Return a dynamic filter that knows the keys of all of these; None where shapes differ."""
    shapes = {(one.hashes, one.bits) for one in filters}
    if len(shapes) != 1:
        return None
    last = filters[-1]
    rows = tuple(row for one in filters for row in one.rows)
    return replace(last, kind=DYNAMIC, rows=rows, row_keys=max(one.row_keys for one in filters))


def positions(
    texts: Texts[np.uint8], hashes: int, bits: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield rows and, for each hash, the bit that each of their keys falls on.

    The bits are overwritten by the next step: large arrays that come and go cost more than the
    work on them.
    """
    room = np.empty(hashes * min(len(texts), _PIECE), np.int64)
    for rows, matrix in texts.by_size():
        for begin in range(0, len(rows), _PIECE):
            piece = matrix[begin : begin + _PIECE]
            places = room[: hashes * len(piece)].reshape(hashes, len(piece))
            _place(piece, bits, places)
            yield rows[begin : begin + _PIECE], places


def _place(keys: Bytes, bits: int, places: npt.NDArray[np.int64]) -> None:
    """Write the bit of each key under each hash into ``places``, one row a hash."""
    words = _mixed_words(keys)
    tail = _tail(keys)
    length = np.uint32(keys.shape[1])
    size_in_bits = np.uint32(bits)
    # Each hash begins with the one before it, so that one array holds them all in turn.
    h = np.zeros(len(keys), np.uint32)
    spare, size = np.empty_like(h), np.empty_like(h)
    for row in places:
        h ^= length
        for word in words:
            h *= _FACTOR
            h ^= word
        if tail is not None:
            h ^= tail
            h *= _FACTOR
        h ^= np.right_shift(h, np.uint32(13), out=spare)
        h *= _FACTOR
        h ^= np.right_shift(h, np.uint32(15), out=spare)
        # Java takes the remainder of a signed int and drops its sign. Division by one number
        # is vectorised where the remainder is not.
        np.abs(h.view(np.int32), out=size.view(np.int32))
        np.floor_divide(size, size_in_bits, out=spare)
        spare *= size_in_bits
        np.subtract(size, spare, out=row, casting="unsafe")


def _mixed_words(keys: Bytes) -> list[Words]:
    """Mix the four-byte words of the keys once; this part does not depend on the seed."""
    count, size = keys.shape
    whole = size // 4
    if not whole:
        return []
    packed = np.ascontiguousarray(keys[:, : 4 * whole]).view("<u4").T
    mixed = np.ascontiguousarray(packed).astype(np.uint32)
    mixed *= _FACTOR
    mixed ^= mixed >> np.uint32(24)
    mixed *= _FACTOR
    return list(mixed.reshape(whole, count))


def _tail(keys: Bytes) -> Words | None:
    left = keys.shape[1] & 3
    if not left:
        return None
    # Bytes are signed in Java, so that a letter beyond ASCII sets all higher bits.
    signed = keys[:, keys.shape[1] - left :].view(np.int8).astype(np.int32)
    mixed = np.zeros(len(keys), np.int32)
    for back in range(left):
        mixed ^= signed[:, left - 1 - back] << (8 * back)
    return mixed.view(np.uint32)


class BloomBuilder:
    """Collects keys and makes a filter that is exact about every one of them.

    The first ``row_keys`` keys decide the size: a smaller file gets a filter of its own size, a
    larger one gets further rows, as Hudi's dynamic filter does.
    """

    def __init__(self, row_keys: int = 100_000, shape: Shaping = cheap_shape) -> None:
        self._row_keys = row_keys
        self._shape = shape
        self._waiting: list[pa.Array] = []
        self._count = 0
        self._rows: list[Bytes] = []

    def add(self, keys: pa.Array) -> None:
        """Add a column of keys."""
        at = 0
        while at < len(keys):
            part = keys.slice(at, min(self._row_keys - self._count, len(keys) - at))
            self._waiting.append(part)
            self._count += len(part)
            at += len(part)
            if self._count == self._row_keys:
                self._flush(self._shape(self._row_keys))

    def build(self, kind: str = DYNAMIC) -> BloomFilter:
        """Return the filter over all keys so far."""
        last = self._count
        if not self._rows:
            shape = self._shape(last)
            self._flush(shape)
        else:
            shape = self._shape(self._row_keys)
            if last:
                self._flush(shape)
            else:
                last = self._row_keys
        if kind == SIMPLE and len(self._rows) > 1:
            raise Invalid(
                f"a {SIMPLE} bloom filter holds up to {self._row_keys} keys.",
                next_step=f"Use {DYNAMIC}.",
            )
        rows = tuple(self._rows)
        return BloomFilter(kind, shape.hashes, shape.bits, rows, shape.keys, last)

    def _flush(self, shape: BloomShape) -> None:
        marks = np.zeros(8 * math.ceil(shape.bits / 8), np.uint8)
        # Few large arrays hash faster than many small ones.
        keys = pa.chunked_array(self._waiting, pa.string()).combine_chunks()
        for _, places in positions(texts_of(keys), shape.hashes, shape.bits):
            marks[places.reshape(-1)] = 1
        self._rows.append(np.packbits(marks, bitorder="little"))
        self._waiting = []
        self._count = 0


def parse_bloom(kind: str, text: str, path: str = "", offset: int = 0) -> BloomFilter:
    """Read a filter from a footer, which lies at ``offset`` of the file."""
    with placed(path, offset):
        return _parsed(kind, text, path)


def _parsed(kind: str, text: str, path: str) -> BloomFilter:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as cause:
        raise Corrupt(f"the bloom filter of {path} is not base64.", path=path) from cause
    if kind not in (DYNAMIC, SIMPLE):
        raise Unsupported(
            f"{path} has a bloom filter of the unknown kind {kind!r}.",
            next_step=f"Known: {DYNAMIC}, {SIMPLE}.",
            path=path,
        )
    hashes, bits, at = _head(data, 0, path)
    if kind == SIMPLE:
        row, at = _row(data, at, bits, path)
        return _whole(BloomFilter(kind, hashes, bits, (row,)), data, at, path)
    rows, row_keys, last_keys, at = _dynamic_rows(data, at, hashes, bits, path)
    return _whole(BloomFilter(kind, hashes, bits, rows, row_keys, last_keys), data, at, path)


def _whole(made: BloomFilter, data: bytes, at: int, path: str) -> BloomFilter:
    if at != len(data):
        raise Corrupt(f"bytes follow the bloom filter of {path}.", path=path)
    return made


def _dynamic_rows(
    data: bytes, at: int, hashes: int, bits: int, path: str
) -> tuple[tuple[Bytes, ...], int, int, int]:
    row_keys, last_keys, count = struct.unpack(">iii", _bytes(data, at, 12, path))
    at += 12
    if not 0 <= count <= (len(data) - at) // 13:
        raise Corrupt(f"the bloom filter of {path} claims {count} rows.", path=path)
    rows = []
    for _ in range(count):
        inner_hashes, inner_bits, at = _head(data, at, path)
        if (inner_hashes, inner_bits) != (hashes, bits):
            raise Corrupt(f"the bloom filter of {path} has rows of several shapes.", path=path)
        row, at = _row(data, at, bits, path)
        rows.append(row)
    return tuple(rows), row_keys, last_keys, at


def _head(data: bytes, at: int, path: str) -> tuple[int, int, int]:
    version, hashes, kind, bits = struct.unpack(">iibi", _bytes(data, at, 13, path))
    if version != _VERSION or kind != _MURMUR:
        raise Unsupported(
            f"{path} has a bloom filter of version {version} and hash {kind}; version "
            f"{_VERSION} and hash {_MURMUR} (Murmur) are known.",
            next_step="Write the file anew, with clustering say, to have one that is known.",
            path=path,
        )
    if not 1 <= hashes <= _MAX_HASHES or bits < 1:
        raise Corrupt(f"the bloom filter of {path} claims {hashes} hashes, {bits} bits.", path=path)
    return hashes, bits, at + 13


def _row(data: bytes, at: int, bits: int, path: str) -> tuple[Bytes, int]:
    size = (bits + 7) // 8
    _check_room(data, at, size, path)
    return np.frombuffer(data, np.uint8, size, at), at + size


def _bytes(data: bytes, at: int, size: int, path: str) -> bytes:
    _check_room(data, at, size, path)
    return data[at : at + size]


def _check_room(data: bytes, at: int, size: int, path: str) -> None:
    if size > len(data) - at:
        raise Corrupt(f"the bloom filter of {path} is cut short.", path=path)
