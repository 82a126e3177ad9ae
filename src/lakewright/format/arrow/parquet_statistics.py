"""Column statistics straight from the bytes of a parquet footer.

Arrow reads footers well, but its Python face ends the whole process when the description of a
column is forged or damaged. Statistics serve only to leave files out, so they are taken from
the bytes by a small reader of the thrift compact protocol, which believes nothing.
"""

import struct
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal

import pyarrow as pa

from lakewright.model.errors import Corrupt

_MAX_DEPTH = 32
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_NUMBERS = frozenset((4, 5, 6))
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of one column in one row group, undecoded; None is unsaid."""

    low: bytes | None = None
    high: bytes | None = None
    nulls: int | None = None


def read_statistics(
    footer: bytes, columns: Collection[int], path: str = ""
) -> list[dict[int, ColumnStatistics]]:
    """Return the statistics of some columns (by number), for each row group of the file."""
    reader = _Thrift(footer, path)
    wanted = frozenset(columns)
    groups: list[dict[int, ColumnStatistics]] = []
    for field, kind in reader.fields():
        if field == 4 and kind == _LIST:
            size, element = reader.list_head()
            if element != _STRUCT:
                raise reader.corrupt("row groups are no structs")
            groups = [_group(reader, wanted) for _ in range(size)]
            break
        reader.skip(kind)
    return groups


def _group(reader: "_Thrift", wanted: frozenset[int]) -> dict[int, ColumnStatistics]:
    found: dict[int, ColumnStatistics] = {}
    for field, kind in reader.fields():
        if field == 1 and kind == _LIST:
            size, element = reader.list_head()
            for number in range(size):
                if number in wanted and element == _STRUCT:
                    found[number] = _chunk(reader)
                else:
                    reader.skip(element)
        else:
            reader.skip(kind)
    return found


def _chunk(reader: "_Thrift") -> ColumnStatistics:
    found = ColumnStatistics()
    for field, kind in reader.fields():
        if field == 3 and kind == _STRUCT:
            for inner, inner_kind in reader.fields():
                if inner == 12 and inner_kind == _STRUCT:
                    found = _statistics(reader)
                else:
                    reader.skip(inner_kind)
        else:
            reader.skip(kind)
    return found


def _statistics(reader: "_Thrift") -> ColumnStatistics:
    # Fields 1 and 2 are bounds in an order that was never defined; they are left alone.
    nulls: int | None = None
    low: bytes | None = None
    high: bytes | None = None
    for field, kind in reader.fields():
        if field == 3 and kind in _NUMBERS:
            nulls = reader.number()
        elif field == 5 and kind == _BINARY:
            high = reader.binary()
        elif field == 6 and kind == _BINARY:
            low = reader.binary()
        else:
            reader.skip(kind)
    return ColumnStatistics(low, high, nulls if nulls is not None and nulls >= 0 else None)


class _Thrift:
    """A cursor over structs of the compact protocol."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._at = 0
        self._path = path

    def corrupt(self, what: str) -> Corrupt:
        return Corrupt(f"bad parquet footer of {self._path}: {what}.", path=self._path)

    def fields(self) -> "_Fields":
        """Iterate over the fields of the struct that begins here; each must be read or skipped."""
        return _Fields(self)

    def byte(self) -> int:
        if self._at >= len(self._data):
            raise self.corrupt("it is cut short")
        self._at += 1
        return self._data[self._at - 1]

    def unsigned(self) -> int:
        byte = self.byte()
        value, shift = byte & 0x7F, 7
        while byte > 0x7F:
            if shift > 63:
                raise self.corrupt("a number is too long")
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
        return value

    def number(self) -> int:
        raw = self.unsigned()
        return (raw >> 1) ^ -(raw & 1)

    def binary(self) -> bytes:
        size = self.unsigned()
        self._forward(size)
        return self._data[self._at - size : self._at]

    def list_head(self) -> tuple[int, int]:
        head = self.byte()
        size = head >> 4
        if size == 15:
            size = self.unsigned()
        if size > len(self._data) - self._at:
            raise self.corrupt(f"a list claims {size} elements")
        return size, head & 0x0F

    def skip(self, kind: int, depth: int = 0, *, in_list: bool = False) -> None:
        if depth > _MAX_DEPTH:
            raise self.corrupt("it nests too deep")
        if kind in _NUMBERS:
            self.unsigned()
        elif kind == _BINARY:
            self._forward(self.unsigned())
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            size, element = self.list_head()
            for _ in range(size):
                self.skip(element, depth + 1, in_list=True)
        elif kind in (_TRUE, _FALSE):
            # As a field, a boolean is its own type; in a list it takes a byte.
            self._forward(1 if in_list else 0)
        elif kind == _BYTE:
            self._forward(1)
        elif kind == _DOUBLE:
            self._forward(8)
        elif kind == _MAP:
            self._skip_map(depth)
        else:
            raise self.corrupt(f"unknown type {kind}")

    def _skip_map(self, depth: int) -> None:
        size = self.unsigned()
        if size > len(self._data) - self._at:
            raise self.corrupt(f"a map claims {size} entries")
        kinds = self.byte() if size else 0
        for _ in range(size):
            self.skip(kinds >> 4, depth + 1, in_list=True)
            self.skip(kinds & 0x0F, depth + 1, in_list=True)

    def _forward(self, size: int) -> None:
        if size > len(self._data) - self._at:
            raise self.corrupt("a value reaches past the end")
        self._at += size


class _Fields:
    """The fields of one struct: number and type of each."""

    def __init__(self, reader: _Thrift) -> None:
        self._reader = reader
        self._last = 0

    def __iter__(self) -> "_Fields":
        return self

    def __next__(self) -> tuple[int, int]:
        head = self._reader.byte()
        if not head:
            raise StopIteration
        delta = head >> 4
        self._last = self._last + delta if delta else self._reader.number()
        return self._last, head & 0x0F


def decode_bound(raw: bytes, kind: pa.DataType, physical: str, *, upper: bool) -> object:
    """Return a bound as the Python value of a column of Arrow type ``kind``, None if it has none.

    ValueError and OverflowError say that the bytes are no such value.
    """
    types = pa.types
    if types.is_boolean(kind):
        return raw == b"\x01"
    if types.is_float32(kind) or types.is_float64(kind):
        return _float(raw, 4 if types.is_float32(kind) else 8)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return raw.decode("utf-8")
    if types.is_decimal(kind):
        return _decimal(raw, kind.scale, physical)
    if physical not in ("INT32", "INT64"):
        # Binary and fixed bytes; 96-bit times have no order.
        return None if physical == "INT96" else raw
    if len(raw) != (4 if physical == "INT32" else 8):
        raise ValueError(raw)
    number = int.from_bytes(raw, "little", signed=not types.is_unsigned_integer(kind))
    if types.is_integer(kind):
        return number
    if types.is_date32(kind):
        return date(1970, 1, 1) + timedelta(days=number)
    if types.is_timestamp(kind):
        return _moment(number, kind, upper=upper)
    if types.is_time(kind):
        return (_EPOCH + timedelta(microseconds=_micros(number, kind.unit, upper=upper))).time()
    return None


def _float(raw: bytes, size: int) -> object:
    if len(raw) != size:
        raise ValueError(raw)
    (value,) = struct.unpack("<f" if size == 4 else "<d", raw)
    if value != value:
        raise ValueError("NaN bounds nothing")
    return value


def _decimal(raw: bytes, scale: int, physical: str) -> Decimal:
    if not 1 <= len(raw) <= 32:
        raise ValueError(raw)
    order: Literal["little", "big"] = "little" if physical in ("INT32", "INT64") else "big"
    unscaled = int.from_bytes(raw, order, signed=True)
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))


def _moment(number: int, kind: pa.DataType, *, upper: bool) -> datetime:
    moment = _EPOCH + timedelta(microseconds=_micros(number, kind.unit, upper=upper))
    return moment if kind.tz is None else moment.replace(tzinfo=UTC)


def _micros(number: int, unit: str, *, upper: bool) -> int:
    if unit == "ns":
        return -(-number // 1000) if upper else number // 1000
    return number * {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
