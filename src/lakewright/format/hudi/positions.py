"""Row positions as log blocks carry them: base64 of a portable 64-bit Roaring bitmap.

Layout, little endian: the count of 32-bit buckets, then for each its high word and a standard
32-bit Roaring bitmap made of array, bitset and run containers.
"""

import base64
import binascii
import struct
from collections.abc import Iterator
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lakewright.model.errors import Corrupt, Invalid

Positions: TypeAlias = npt.NDArray[np.uint64]
W = TypeVar("W", np.uint32, np.uint64)

_NO_RUNS = 12346
_WITH_RUNS = 12347
_OFFSETS_FROM = 4
_ARRAY_MAX = 4096
_BITSET_BYTES = 8192


def decode_positions(text: str, *, limit: int, path: str = "") -> Positions:
    """Return the positions in ascending order.

    ``limit`` bounds their number, since a few hostile bytes can stand for billions of them.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as cause:
        raise Corrupt(f"record positions are not base64: {cause}.", path=path) from cause
    return decode_bitmap(data, limit=limit, path=path)


def decode_bitmap(data: bytes, *, limit: int, path: str = "") -> Positions:
    """Return the members of a serialised 64-bit bitmap in ascending order."""
    reader = _Reader(data, path, limit)
    buckets = reader.unsigned(8)
    parts: list[Positions] = []
    last = -1
    for _ in range(reader.count(buckets, 8)):
        high = reader.unsigned(4)
        if high <= last:
            raise reader.corrupt("buckets are out of order")
        last = high
        parts.extend(values + np.uint64(high << 32) for values in _containers(reader))
    if reader.left:
        raise reader.corrupt("bytes are left over")
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def encode_positions(positions: Positions) -> str:
    """Return the base64 text of a set of positions; the order given does not matter."""
    return base64.b64encode(encode_bitmap(positions)).decode("ascii")


def encode_bitmap(positions: Positions) -> bytes:
    """Return the run-optimised portable form of a set of positions."""
    values = np.asarray(positions, np.uint64)
    if bool(np.any(values[1:] <= values[:-1])):
        values = np.unique(values)
    if len(values) and int(values[-1]) >= 1 << 63:
        raise Invalid(
            "a row position must be below 2**63.",
            next_step="Please report it: this is a fault of Lakewright.",
            value=int(values[-1]),
        )
    highs, starts = _changes(values >> np.uint64(32))
    out = [struct.pack("<Q", len(highs))]
    for high, part in zip(highs, np.split(values, starts[1:]), strict=False):
        out.append(struct.pack("<I", int(high)))
        out.append(_encode_32((part & np.uint64(0xFFFFFFFF)).astype(np.uint32)))
    return b"".join(out)


class _Reader:
    """A cursor that never reads past the end and never yields more than ``limit`` values."""

    def __init__(self, data: bytes, path: str, limit: int) -> None:
        self._data = data
        self._at = 0
        self._path = path
        self._limit = limit

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise self.corrupt("the bitmap is cut short")
        self._at += size
        return self._data[self._at - size : self._at]

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def shorts(self, count: int) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self.take(2 * count), "<u2")

    def count(self, claimed: int, least: int) -> int:
        """Return ``claimed`` once it is known that so many parts of ``least`` bytes can follow."""
        if claimed * least > self.left:
            raise self.corrupt(f"{claimed} parts cannot follow in {self.left} bytes")
        return claimed

    def spend(self, values: int) -> None:
        self._limit -= values
        if self._limit < 0:
            raise self.corrupt("there are more positions than the block can hold records")

    def corrupt(self, what: str) -> Corrupt:
        return Corrupt(f"bad record positions: {what}.", path=self._path, at=self._at)


def _containers(reader: _Reader) -> Iterator[Positions]:
    cookie = reader.unsigned(4)
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(reader.take((count + 7) // 8), np.uint8)
        runs = np.unpackbits(flags, bitorder="little").astype(bool)
    elif cookie == _NO_RUNS:
        count = reader.count(reader.unsigned(4), 4)
        runs = np.zeros(count, bool)
    else:
        raise reader.corrupt(f"unknown bitmap cookie {cookie}")
    heads = reader.shorts(2 * count).astype(np.int64).reshape(count, 2)
    if count > 1 and bool(np.any(np.diff(heads[:, 0]) <= 0)):
        raise reader.corrupt("containers are out of order")
    if cookie == _NO_RUNS or count >= _OFFSETS_FROM:
        reader.take(4 * count)  # offsets for random access; a full read needs none
    for i in range(count):
        key, cardinality = int(heads[i, 0]), int(heads[i, 1]) + 1
        reader.spend(cardinality)
        if runs[i]:
            low = _runs(reader, cardinality)
        elif cardinality <= _ARRAY_MAX:
            low = reader.shorts(cardinality).astype(np.uint64)
        else:
            bits = np.frombuffer(reader.take(_BITSET_BYTES), np.uint8)
            low = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.uint64)
        if len(low) != cardinality or bool(np.any(low[1:] <= low[:-1])):
            raise reader.corrupt("a container does not hold what it claims")
        yield low + np.uint64(key << 16)


def _runs(reader: _Reader, cardinality: int) -> Positions:
    count = reader.unsigned(2)
    pairs = reader.shorts(2 * count).astype(np.int64).reshape(count, 2)
    lengths = pairs[:, 1] + 1
    if int(lengths.sum()) != cardinality or bool(np.any(pairs.sum(axis=1) > 0xFFFF)):
        raise reader.corrupt("runs do not add up")
    steps = np.arange(cardinality) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return (np.repeat(pairs[:, 0], lengths) + steps).astype(np.uint64)


def _changes(rising: npt.NDArray[W]) -> tuple[npt.NDArray[W], npt.NDArray[np.int64]]:
    """Return the distinct ones of values that never fall, and where each begins."""
    starts = np.flatnonzero(rising[1:] != rising[:-1]) + 1
    starts = np.concatenate((np.zeros(min(1, len(rising)), np.int64), starts))
    return rising[starts], starts


def _encode_32(values: npt.NDArray[np.uint32]) -> bytes:
    keys, starts = _changes(values >> np.uint32(16))
    lows = [(part & np.uint32(0xFFFF)).astype(np.int64) for part in np.split(values, starts[1:])]
    bodies = [_encode_container(low) for low in lows]
    flags = [is_run for is_run, _ in bodies]
    head = bytearray()
    if any(flags):
        head += struct.pack("<I", _WITH_RUNS | (len(keys) - 1) << 16)
        head += np.packbits(flags, bitorder="little").tobytes()
    else:
        head += struct.pack("<II", _NO_RUNS, len(keys))
    for key, low in zip(keys, lows, strict=True):
        head += struct.pack("<HH", int(key), len(low) - 1)
    if not any(flags) or len(keys) >= _OFFSETS_FROM:
        at = len(head) + 4 * len(keys)
        for _, body in bodies:
            head += struct.pack("<I", at)
            at += len(body)
    return bytes(head) + b"".join(body for _, body in bodies)


def _encode_container(low: npt.NDArray[np.int64]) -> tuple[bool, bytes]:
    breaks = np.flatnonzero(np.diff(low) != 1) + 1
    starts = np.concatenate(([0], breaks))
    plain = 2 * len(low) if len(low) <= _ARRAY_MAX else _BITSET_BYTES
    if 2 + 4 * len(starts) < plain:
        ends = np.concatenate((breaks, [len(low)]))
        pairs = np.column_stack((low[starts], ends - starts - 1)).astype("<u2")
        return True, struct.pack("<H", len(starts)) + pairs.tobytes()
    if len(low) <= _ARRAY_MAX:
        return False, low.astype("<u2").tobytes()
    bits = np.zeros(8 * _BITSET_BYTES, np.uint8)
    bits[low] = 1
    return False, np.packbits(bits, bitorder="little").tobytes()
