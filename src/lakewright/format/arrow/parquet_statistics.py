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

from lakewright.format.arrow.thrift_compact import (
    BINARY,
    LIST,
    NUMBERS,
    STRUCT,
    Forged,
    list_head,
    skip,
    split,
    split_list,
    unpacked,
    varint,
)
from lakewright.model.errors import Corrupt

_EPOCH = datetime(1970, 1, 1)
#: Numbers of the fields that lead from a footer to the pages of data and of dictionaries.
_ROW_GROUPS, _CHUNKS, _COLUMN = 4, 1, 3
_PAGES = frozenset({9, 11})


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of one column in one row group, undecoded; None is unsaid."""

    low: bytes | None = None
    high: bytes | None = None
    nulls: int | None = None


def read_statistics(
    footer: bytes, columns: Collection[int], path: str = "", offset: int = 0
) -> list[dict[int, ColumnStatistics]]:
    """Return the statistics of some columns (by number), for each row group of the file.

    ``offset`` is where the footer lies in the file, for messages.
    """
    try:
        return _Walk(footer).file(frozenset(columns))
    except (IndexError, Forged) as cause:
        raise Corrupt(
            f"bad parquet footer of {path}: {cause}.", path=path, offset=offset
        ) from cause


def read_group_offset(footer: bytes, group: int) -> int | None:
    """Return where the first page of a row group lies in the file; None where it is not said."""
    try:
        _, groups = split_list(split(footer)[_ROW_GROUPS][1])
        _, chunks = split_list(split(groups[group])[_CHUNKS][1])
        columns = [split(split(chunk)[_COLUMN][1]) for chunk in chunks]
        return min(unpacked(column[page][1]) for column in columns for page in _PAGES & {*column})
    except (IndexError, KeyError, ValueError, Forged):
        return None


class _Walk:
    """A walk along structs of the compact protocol, one step over each field.

    Footers are read by the thousand, so the steps are written out: a method per byte would
    take three times as long.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def file(self, wanted: frozenset[int]) -> list[dict[int, ColumnStatistics]]:
        last = 0
        while (head := self._head()) is not None:
            last = head[0] if head[2] else last + head[0]
            if last == 4 and head[1] == LIST:
                size, element = self._list()
                if element != STRUCT:
                    raise Forged("row groups are no structs")
                return [self._group(wanted) for _ in range(size)]
            self._at = skip(self._data, self._at, head[1], 0)
        return []

    def _group(self, wanted: frozenset[int]) -> dict[int, ColumnStatistics]:
        found: dict[int, ColumnStatistics] = {}
        last = 0
        while (head := self._head()) is not None:
            last = head[0] if head[2] else last + head[0]
            if last == 1 and head[1] == LIST:
                size, element = self._list()
                for number in range(size):
                    if number in wanted and element == STRUCT:
                        found[number] = self._chunk()
                    else:
                        self._at = skip(self._data, self._at, element, 0)
            else:
                self._at = skip(self._data, self._at, head[1], 0)
        return found

    def _chunk(self) -> ColumnStatistics:
        found = ColumnStatistics()
        last = 0
        while (head := self._head()) is not None:
            last = head[0] if head[2] else last + head[0]
            if last == 3 and head[1] == STRUCT:
                found = self._column()
            else:
                self._at = skip(self._data, self._at, head[1], 0)
        return found

    def _column(self) -> ColumnStatistics:
        found = ColumnStatistics()
        last = 0
        while (head := self._head()) is not None:
            last = head[0] if head[2] else last + head[0]
            if last == 12 and head[1] == STRUCT:
                found = self._statistics()
            else:
                self._at = skip(self._data, self._at, head[1], 0)
        return found

    def _statistics(self) -> ColumnStatistics:
        # Fields 1 and 2 are bounds in an order that was never defined; they are left alone.
        nulls: int | None = None
        low: bytes | None = None
        high: bytes | None = None
        last = 0
        while (head := self._head()) is not None:
            last = head[0] if head[2] else last + head[0]
            if last == 3 and head[1] in NUMBERS:
                raw, self._at = varint(self._data, self._at)
                nulls = (raw >> 1) ^ -(raw & 1)
            elif last == 5 and head[1] == BINARY:
                high = self._binary()
            elif last == 6 and head[1] == BINARY:
                low = self._binary()
            else:
                self._at = skip(self._data, self._at, head[1], 0)
        return ColumnStatistics(low, high, nulls if nulls is not None and nulls >= 0 else None)

    def _head(self) -> tuple[int, int, bool] | None:
        """Return a field's number, its type, and whether the number counts from zero.

        None is the end of the struct; otherwise numbers count from the field before.
        """
        head = self._data[self._at]
        self._at += 1
        if not head:
            return None
        if head > 0x0F:
            return head >> 4, head & 0x0F, False
        raw, self._at = varint(self._data, self._at)
        return (raw >> 1) ^ -(raw & 1), head, True

    def _list(self) -> tuple[int, int]:
        size, element, self._at = list_head(self._data, self._at)
        return size, element

    def _binary(self) -> bytes:
        size, at = varint(self._data, self._at)
        if size > len(self._data) - at:
            raise Forged("a value reaches past the end")
        self._at = at + size
        return self._data[at : self._at]


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
