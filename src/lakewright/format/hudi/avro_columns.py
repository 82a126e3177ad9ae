"""Avro records to Arrow columns, all records at once.

Avro has no index into a record, but a log block states where each of its records begins. So
one field is decoded for all records in a few numpy steps, which leave the cursors of all
records at the next field; no Python object is made per value. Strings are not even gathered:
Arrow copies them straight out of the block.

Every step checks its bounds: no length, count or branch is believed before it is compared
with the bytes that are left.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.format.arrow.schema import to_arrow_type
from lakewright.format.hudi.avro_schema import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroUnion,
    table_type,
)
from lakewright.model.errors import Corrupt
from lakewright.model.schema import BINARY, STRING, DataType, Decimal

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

#: Zero bytes that must follow the records, so that a gather at their very end stays inside.
PADDING = 16
#: With fewer lists than this still open, a plain loop finds their elements sooner than numpy.
_LOCKSTEP_FROM = 24
_INT32 = np.iinfo(np.int32)


class Cursors:
    """Where each record of a block stands: ``at`` moves, ``end`` is the record's last byte + 1."""

    __slots__ = ("at", "end")

    def __init__(self, at: Ints, end: Ints) -> None:
        self.at = at
        self.end = end

    def __len__(self) -> int:
        return len(self.at)

    def some(self, rows: Ints) -> "Cursors":
        """Return cursors of some of the records; the caller writes their way back."""
        return Cursors(self.at[rows], self.end[rows])


class ColumnDecoder:
    """Decodes the records of one block; ``data`` ends with ``PADDING`` zero bytes."""

    def __init__(self, data: pa.Buffer, path: str, offset: int) -> None:
        self._buffer = data
        self._data: Bytes = np.frombuffer(data, np.uint8)
        self._path = path
        self._offset = offset

    def columns(
        self, record: AvroRecord, cursors: Cursors, wanted: frozenset[str] | None
    ) -> dict[str, pa.Array]:
        """Return the wanted fields of all records (None: all of them)."""
        made: dict[str, pa.Array] = {}
        for name, node in zip(record.names, record.nodes, strict=True):
            if wanted is None or name in wanted:
                made[name] = self._decode(node, cursors)
            elif len(made) < len(wanted):
                self._skip(node, cursors)
            else:
                return made
        if bool(np.any(cursors.at != cursors.end)):
            raise self.corrupt("a record is longer than its schema says", cursors)
        return made

    def corrupt(self, what: str, cursors: Cursors | None = None) -> Corrupt:
        """Return the error for bad bytes; the offset is that of the first record concerned."""
        at = int(cursors.at[0]) if cursors is not None and len(cursors) else 0
        return Corrupt(
            f"bad Avro record in {self._path}: {what}.", path=self._path, offset=self._offset + at
        )

    # Cursor steps ---------------------------------------------------------------------------

    def _forward(self, cursors: Cursors, sizes: Ints | int) -> Ints:
        """Move past ``sizes`` bytes; return where they begin."""
        start = cursors.at
        if bool(np.any(sizes < 0)) or bool(np.any(sizes > cursors.end - start)):
            raise self.corrupt("a value reaches past the end of its record", cursors)
        cursors.at = start + sizes
        return start

    def _long(self, cursors: Cursors) -> Ints:
        """Read one zigzag varint per record."""
        first = self._data[self._forward(cursors, 1)]
        raw = first.astype(np.uint64) & np.uint64(0x7F)
        open_rows: Ints = np.flatnonzero(first & 0x80)
        shift = 7
        while len(open_rows):
            if shift > 63:
                raise self.corrupt("a number is longer than ten bytes", cursors.some(open_rows))
            at = cursors.at[open_rows]
            if bool(np.any(at >= cursors.end[open_rows])):
                raise self.corrupt("a number reaches past the end", cursors.some(open_rows))
            byte = self._data[at]
            raw[open_rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            cursors.at[open_rows] = at + 1
            open_rows = open_rows[(byte & 0x80) != 0]
            shift += 7
        return (raw >> np.uint64(1)).astype(np.int64) ^ -((raw & np.uint64(1)).astype(np.int64))

    def _branches(self, node: AvroUnion, cursors: Cursors) -> npt.NDArray[np.bool_]:
        """Read the union's branch per record; True where a value follows."""
        branch = self._long(cursors)
        valid: npt.NDArray[np.bool_] = branch == node.value_at
        known = valid if node.null_at is None else valid | (branch == node.null_at)
        if not bool(np.all(known)):
            raise self.corrupt("a union has no such branch", cursors)
        return valid

    def _present(self, valid: npt.NDArray[np.bool_], cursors: Cursors) -> tuple[Ints, Cursors]:
        rows: Ints = np.flatnonzero(valid)
        return rows, cursors.some(rows)

    # Values ---------------------------------------------------------------------------------

    def _decode(self, node: AvroNode, cursors: Cursors) -> pa.Array:
        match node:
            case AvroUnion():
                return self._nullable(node, cursors)
            case AvroPrimitive():
                return self._primitive(node, cursors)
            case AvroFixed():
                return self._fixed(node, cursors)
            case AvroEnum():
                return self._enum(node, cursors)
            case AvroArray():
                offsets, elements = self._elements(node.items, cursors)
                values = self._decode(node.items, elements)
                return pa.ListArray.from_arrays(
                    pa.array(offsets, pa.int32()), values, type=to_arrow_type(table_type(node))
                )
            case AvroMap():
                offsets, entries = self._elements(map_entry(node), cursors)
                keys = self._binary(STRING, entries)
                values = self._decode(node.values, entries)
                return pa.MapArray.from_arrays(
                    pa.array(offsets, pa.int32()), keys, values, to_arrow_type(table_type(node))
                )
            case AvroRecord():
                children = [self._decode(child, cursors) for child in node.nodes]
                kind = to_arrow_type(table_type(node))
                return pa.StructArray.from_arrays(children, fields=list(kind))

    def _nullable(self, node: AvroUnion, cursors: Cursors) -> pa.Array:
        valid = self._branches(node, cursors)
        if bool(valid.all()):
            return self._decode(node.value, cursors)
        rows, present = self._present(valid, cursors)
        if not len(rows):
            return pa.nulls(len(cursors), to_arrow_type(table_type(node)))
        values = self._decode(node.value, present)
        cursors.at[rows] = present.at
        spread = pa.array(np.cumsum(valid, dtype=np.int64) - 1, mask=~valid)
        return values.take(spread)

    def _primitive(self, node: AvroPrimitive, cursors: Cursors) -> pa.Array:
        kind = to_arrow_type(node.type)
        match node.name:
            case "boolean":
                return pa.array(self._data[self._forward(cursors, 1)] == 1)
            case "int":
                value = self._long(cursors)
                if len(value) and (value.min() < _INT32.min or value.max() > _INT32.max):
                    raise self.corrupt("an int has more than 32 bits", cursors)
                return pa.array(value.astype(np.int32)).view(kind)
            case "long":
                return pa.array(self._long(cursors)).view(kind)
            case "float":
                return pa.array(self._gather(cursors, 4).view("<f4").reshape(-1))
            case "double":
                return pa.array(self._gather(cursors, 8).view("<f8").reshape(-1))
            case _:
                return self._binary(node.type, cursors)

    def _gather(self, cursors: Cursors, size: int) -> Bytes:
        """Return ``size`` bytes per record as a matrix."""
        start = self._forward(cursors, size)
        taken: Bytes = self._data[start[:, None] + np.arange(size)]
        return taken

    def _fixed(self, node: AvroFixed, cursors: Cursors) -> pa.Array:
        if isinstance(node.type, Decimal):
            sizes = np.full(len(cursors), node.size, np.int64)
            return self._decimal(node.type, self._forward(cursors, node.size), sizes, cursors)
        raw = pa.py_buffer(self._gather(cursors, node.size).tobytes())
        return pa.Array.from_buffers(pa.binary(node.size), len(cursors), [None, raw])

    def _enum(self, node: AvroEnum, cursors: Cursors) -> pa.Array:
        number = self._long(cursors)
        if len(number) and (number.min() < 0 or number.max() >= len(node.symbols)):
            raise self.corrupt("an enum has no such symbol", cursors)
        return pa.array(node.symbols, pa.string()).take(pa.array(number))

    def _binary(self, kind: DataType, cursors: Cursors) -> pa.Array:
        size = self._long(cursors)
        start = self._forward(cursors, size)
        if isinstance(kind, Decimal):
            return self._decimal(kind, start, size, cursors)
        if not len(start):
            return pa.array([], to_arrow_type(kind))
        # The values and the gaps between them are one Arrow array over the block as it lies
        # there; taking every second element copies the values out, and nothing else.
        marks = np.empty(2 * len(start) + 1, np.int32)
        marks[0] = 0
        marks[1::2] = start
        marks[2::2] = start + size
        pieces = pa.Array.from_buffers(
            pa.binary(), 2 * len(start), [None, pa.py_buffer(marks), self._buffer]
        )
        values = pieces.take(pa.array(np.arange(1, 2 * len(start), 2)))
        if kind == BINARY:
            return values
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid as cause:
            raise self.corrupt("a string is not UTF-8", cursors) from cause

    def _decimal(self, kind: Decimal, start: Ints, size: Ints, cursors: Cursors) -> pa.Array:
        """Widen big-endian two's complement of any size to Arrow's sixteen little-endian bytes."""
        if len(size) and (size.min() < 1 or size.max() > 16):
            raise self.corrupt("a decimal does not have one to sixteen bytes", cursors)
        sign = np.where(self._data[start] & 0x80, 0xFF, 0).astype(np.uint8)
        place = np.arange(16)
        source = start[:, None] + size[:, None] - 1 - place
        wide = np.where(place < size[:, None], self._data[np.maximum(source, 0)], sign[:, None])
        raw = pa.py_buffer(wide.astype(np.uint8).tobytes())
        made = pa.Array.from_buffers(to_arrow_type(kind), len(start), [None, raw])
        try:
            made.validate(full=True)
        except pa.ArrowInvalid as cause:
            raise self.corrupt(f"a value does not fit {kind}", cursors) from cause
        return made

    # Lists and maps -------------------------------------------------------------------------

    def _elements(self, node: AvroNode, cursors: Cursors) -> tuple[Ints, Cursors]:
        """Return list offsets and cursors at all elements, in order; moves past the lists."""
        owners: list[Ints] = []
        starts: list[Ints] = []
        live: Ints = np.arange(len(cursors))
        while len(live):
            part = cursors.some(live)
            count = self._block_counts(part)
            self._walk_block(node, live, part, count, owners, starts)
            cursors.at[live] = part.at
            live = live[count != 0]
        owner = np.concatenate(owners) if owners else np.empty(0, np.int64)
        at = np.concatenate(starts) if starts else np.empty(0, np.int64)
        # Positions rise along the file, so sorting by them gives lists and elements in order.
        order = np.argsort(at, kind="stable")
        owner, at = owner[order], at[order]
        offsets = np.zeros(len(cursors) + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=len(cursors)), out=offsets[1:])
        return offsets, Cursors(at, cursors.end[owner])

    def _block_counts(self, part: Cursors) -> Ints:
        count = self._long(part)
        sized: Ints = np.flatnonzero(count < 0)
        if len(sized):
            # A negative count is followed by the block's size in bytes, which we do not need.
            again = part.some(sized)
            self._long(again)
            part.at[sized] = again.at
            count[sized] = -count[sized]
        if bool(np.any(count < 0)) or bool(np.any(count > part.end - part.at)):
            # Every element takes a byte at least.
            raise self.corrupt("a list claims more elements than there are bytes", part)
        return count

    def _walk_block(
        self,
        node: AvroNode,
        live: Ints,
        part: Cursors,
        count: Ints,
        owners: list[Ints],
        starts: list[Ints],
    ) -> None:
        step = 0
        rows: Ints = np.flatnonzero(count > 0)
        while len(rows) >= _LOCKSTEP_FROM:
            here = part.some(rows)
            owners.append(live[rows])
            starts.append(here.at.copy())
            self._skip(node, here)
            part.at[rows] = here.at
            step += 1
            rows = rows[count[rows] > step]
        if not len(rows):
            return
        skip = self._scalar_skip(node)
        for row in rows.tolist():
            at, end = int(part.at[row]), int(part.end[row])
            found = []
            for _ in range(step, int(count[row])):
                found.append(at)
                at = skip(at, end)
            part.at[row] = at
            owners.append(np.full(len(found), live[row], np.int64))
            starts.append(np.array(found, np.int64))

    # Skipping -------------------------------------------------------------------------------

    def _skip(self, node: AvroNode, cursors: Cursors) -> None:
        match node:
            case AvroUnion():
                valid = self._branches(node, cursors)
                if bool(valid.all()):
                    self._skip(node.value, cursors)
                    return
                rows, present = self._present(valid, cursors)
                if len(rows):
                    self._skip(node.value, present)
                    cursors.at[rows] = present.at
            case AvroPrimitive():
                if node.name in _WIDTHS:
                    self._forward(cursors, _WIDTHS[node.name])
                elif node.name in ("int", "long"):
                    self._long(cursors)
                else:
                    self._forward(cursors, self._long(cursors))
            case AvroFixed():
                self._forward(cursors, node.size)
            case AvroEnum():
                self._long(cursors)
            case AvroArray():
                self._elements(node.items, cursors)
            case AvroMap():
                self._elements(map_entry(node), cursors)
            case AvroRecord():
                for child in node.nodes:
                    self._skip(child, cursors)

    def _scalar_skip(self, node: AvroNode) -> Callable[[int, int], int]:
        """Return a function that steps over one value of this type at a position."""
        data = memoryview(self._buffer).cast("B")

        def varint(at: int, end: int) -> tuple[int, int]:
            raw = shift = 0
            while True:
                if at >= end or shift > 63:
                    raise self.corrupt("a number reaches past the end")
                byte = data[at]
                raw |= (byte & 0x7F) << shift
                at += 1
                if byte < 0x80:
                    return (raw >> 1) ^ -(raw & 1), at
                shift += 7

        def forward(at: int, size: int, end: int) -> int:
            if size < 0 or size > end - at:
                raise self.corrupt("a value reaches past the end of its record")
            return at + size

        def skip(inner: AvroNode, at: int, end: int) -> int:
            match inner:
                case AvroUnion():
                    branch, at = varint(at, end)
                    if branch == inner.value_at:
                        return skip(inner.value, at, end)
                    if branch != inner.null_at:
                        raise self.corrupt("a union has no such branch")
                    return at
                case AvroPrimitive() if inner.name in _WIDTHS:
                    return forward(at, _WIDTHS[inner.name], end)
                case AvroPrimitive() if inner.name in ("bytes", "string"):
                    size, at = varint(at, end)
                    return forward(at, size, end)
                case AvroPrimitive() | AvroEnum():
                    return varint(at, end)[1]
                case AvroFixed():
                    return forward(at, inner.size, end)
                case AvroArray() | AvroMap():
                    element = inner.items if isinstance(inner, AvroArray) else map_entry(inner)
                    return skip_list(element, at, end)
                case AvroRecord():
                    for child in inner.nodes:
                        at = skip(child, at, end)
                    return at

        def skip_list(element: AvroNode, at: int, end: int) -> int:
            while True:
                count, at = varint(at, end)
                if count < 0:
                    count = -count
                    _, at = varint(at, end)
                if count > end - at:
                    raise self.corrupt("a list claims more elements than there are bytes")
                if not count:
                    return at
                for _ in range(count):
                    at = skip(element, at, end)

        return lambda at, end: skip(node, at, end)


_WIDTHS = {"boolean": 1, "float": 4, "double": 8}


def map_entry(node: AvroMap) -> AvroRecord:
    """Return the record that a map's bytes are a list of."""
    return AvroRecord(
        ("key", "value"), (AvroPrimitive("string", STRING), node.values), (None, None)
    )
