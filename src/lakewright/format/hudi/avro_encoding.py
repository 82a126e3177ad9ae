"""Arrow tables as records in Avro binary form, without a container: column by column.

Every column becomes one run of bytes with a length for each row; the runs are then laid side by
side, row after row, so that no row is ever an object of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_schema import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroUnion,
    parse_avro,
    parse_avro_schema,
)
from lakewright.model.errors import Invalid
from lakewright.model.schema import Decimal

Ints = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

_DECIMAL_BYTES = 16


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """Values in binary form, one after the other, and how many bytes each of them has."""

    lengths: Ints
    data: Octets


def encode_records(table: pa.Table, schema_text: str) -> list[bytes]:
    """Return each row as Avro binary of the schema; its columns are found by name.

    A column that the table lacks is written as null, or refused where null is not allowed.
    """
    made = _rows(table, schema_text)
    ends = np.cumsum(made.lengths)
    whole = made.data.tobytes()
    return [
        whole[end - size : end]
        for end, size in zip(ends.tolist(), made.lengths.tolist(), strict=True)
    ]


def encode_framed(table: pa.Table, schema_text: str) -> bytes:
    """Return all rows as ``encode_records`` does, each preceded by its length in four bytes."""
    made = _rows(table, schema_text)
    sizes = made.lengths.astype(">i4").view(np.uint8)
    return _joined([_even(sizes, 4), made]).data.tobytes()


def _rows(table: pa.Table, schema_text: str) -> _Encoded:
    record = parse_avro(schema_text)
    schema = to_arrow_schema(parse_avro_schema(schema_text))
    columns = []
    for field, node in zip(schema, record.nodes, strict=True):
        columns.append(_encoded(_column(table, field), node, field.name))
    return _joined(columns, table.num_rows)


def _column(table: pa.Table, field: pa.Field) -> pa.Array:
    if field.name not in table.schema.names:
        if not field.nullable:
            raise Invalid(
                f"column {field.name!r} is missing and may not be null.",
                next_step="Add it to the rows.",
            )
        return pa.nulls(table.num_rows, field.type)
    array = table.column(field.name).combine_chunks()
    return array if array.type == field.type else array.cast(field.type)


def _encoded(array: pa.Array, node: AvroNode, name: str) -> _Encoded:
    if isinstance(node, AvroUnion):
        return _union(array, node, name)
    if array.null_count:
        raise Invalid(
            f"column {name!r} holds nulls and may not be null.",
            next_step="Fill them in, or leave those rows out.",
        )
    match node:
        case AvroEnum():
            numbers = pc.index_in(array, pa.array(node.symbols, pa.string()))
            if numbers.null_count:
                raise Invalid(
                    f"a value is none of the symbols {', '.join(node.symbols)}.",
                    next_step="Give one of them.",
                )
            return _varints(numbers.to_numpy().astype(np.int64))
        case AvroPrimitive() | AvroFixed():
            return _leaf(array, node)
        case AvroArray():
            return _blocks(array, _encoded(array.flatten(), node.items, name))
        case AvroMap():
            offsets = array.offsets
            first = offsets[0].as_py() if len(array) else 0
            count = offsets[-1].as_py() - first if len(array) else 0
            keys = _texts(array.keys.slice(first, count))
            values = _encoded(array.items.slice(first, count), node.values, name)
            return _blocks(array, _joined([keys, values], count))
        case AvroRecord():
            children = [
                _encoded(child, inner, name)
                for child, inner in zip(array.flatten(), node.nodes, strict=True)
            ]
            return _joined(children, len(array))


def _union(array: pa.Array, node: AvroUnion, name: str) -> _Encoded:
    count = len(array)
    if node.null_at is None:
        value = _encoded(array, node.value, name)
        return _joined([_even(np.zeros(count, np.uint8), 1), value])
    # A branch is written as a number, whose binary form is twice itself.
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    branches = np.where(valid, np.uint8(2 * node.value_at), np.uint8(2 * node.null_at))
    some = _encoded(array.drop_null() if array.null_count else array, node.value, name)
    return _joined([_even(branches, 1), _spread(some, valid)])


def _leaf(array: pa.Array, node: AvroPrimitive | AvroFixed) -> _Encoded:
    count = len(array)
    if isinstance(node.type, Decimal):
        return _decimals(array, node.size if isinstance(node, AvroFixed) else None)
    if isinstance(node, AvroFixed):
        raw = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        start = array.offset * node.size
        return _even(raw[start : start + count * node.size], node.size)
    match node.name:
        case "null":
            return _even(np.empty(0, np.uint8), 0, count)
        case "boolean":
            return _even(array.to_numpy(zero_copy_only=False).astype(np.uint8), 1)
        case "int" | "long":
            plain = array.view(pa.int32() if node.name == "int" else pa.int64())
            return _varints(plain.to_numpy(zero_copy_only=False).astype(np.int64))
        case "float" | "double":
            kind, size = ("<f4", 4) if node.name == "float" else ("<f8", 8)
            values = array.to_numpy(zero_copy_only=False).astype(kind)
            return _even(np.ascontiguousarray(values).view(np.uint8), size)
        case _:
            return _texts(array)


def _texts(array: pa.Array) -> _Encoded:
    """Return texts or bytes, each after its length; the array holds no nulls."""
    count = len(array)
    if not count:
        return _even(np.empty(0, np.uint8), 0)
    _, ends, values = array.buffers()
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    offsets = np.frombuffer(ends, width)[array.offset : array.offset + count + 1].astype(np.int64)
    raw = np.frombuffer(values or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    return _joined([_varints(lengths), _Encoded(lengths, raw)])


def _decimals(array: pa.Array, size: int | None) -> _Encoded:
    """Return unscaled values, big endian, in ``size`` bytes or in as few as will do."""
    count = len(array)
    stored = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    start = array.offset * _DECIMAL_BYTES
    raw = stored[start : start + count * _DECIMAL_BYTES].reshape(count, _DECIMAL_BYTES)
    sign = np.where(raw[:, -1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    least = np.full(count, _DECIMAL_BYTES, np.int64)
    for width in range(_DECIMAL_BYTES - 1, 0, -1):
        # So many bytes do where all above them, and the top bit of theirs, say the sign alone.
        spare = (raw[:, width:] == sign[:, None]).all(axis=1)
        least[spare & ((raw[:, width - 1] >= 0x80) == (sign == 0xFF))] = width
    big = raw[:, ::-1]
    if size is not None:
        if count and int(least.max()) > size:
            raise Invalid(
                f"a decimal needs {int(least.max())} bytes; the schema gives it {size}.",
                next_step="Give values with fewer digits.",
            )
        padding = np.repeat(sign[:, None], max(size - _DECIMAL_BYTES, 0), axis=1)
        kept = big[:, max(_DECIMAL_BYTES - size, 0) :]
        return _even(np.concatenate([padding, kept], axis=1).reshape(-1), size, count)
    places = np.arange(_DECIMAL_BYTES)[None, :]
    data = big[places >= _DECIMAL_BYTES - least[:, None]]
    return _joined([_varints(least), _Encoded(least, data)])


def _blocks(array: pa.Array, elements: _Encoded) -> _Encoded:
    """Return lists of elements: their number and they, if there are any, then a zero."""
    counts = np.diff(array.offsets.to_numpy().astype(np.int64))[: len(array)]
    filled = counts > 0
    heads = _spread(_varints(counts[filled]), filled)
    ends = np.concatenate([[0], np.cumsum(elements.lengths)])
    last = np.cumsum(counts)
    bodies = _Encoded(ends[last] - ends[last - counts], elements.data)
    return _joined([heads, bodies, _even(np.zeros(len(counts), np.uint8), 1)])


def _varints(values: Ints) -> _Encoded:
    """Return whole numbers in zigzag form, seven bits a byte, the lowest first."""
    folded = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = np.ones(len(values), np.int64)
    for size in range(1, 10):
        lengths += folded >= np.uint64(1 << (7 * size))
    width = int(lengths.max(initial=1))
    places = np.arange(width)
    shifted = folded[:, None] >> (7 * places).astype(np.uint64)[None, :]
    parts: Octets = shifted.astype(np.uint8) & np.uint8(0x7F)
    parts |= np.where(places[None, :] < lengths[:, None] - 1, np.uint8(0x80), np.uint8(0))
    return _Encoded(lengths, parts[places[None, :] < lengths[:, None]])


def _even(data: Octets, size: int, count: int | None = None) -> _Encoded:
    """Return values of one size."""
    rows = len(data) // max(size, 1) if count is None else count
    return _Encoded(np.full(rows, size, np.int64), data)


def _spread(some: _Encoded, where: npt.NDArray[np.bool_]) -> _Encoded:
    """Return values for marked rows, and nothing for the others."""
    lengths = np.zeros(len(where), np.int64)
    lengths[where] = some.lengths
    return _Encoded(lengths, some.data)


def _joined(parts: Sequence[_Encoded], count: int | None = None) -> _Encoded:
    """Lay values side by side, row after row."""
    if len(parts) == 1:
        return parts[0]
    rows = (len(parts[0].lengths) if parts else 0) if count is None else count
    totals = np.zeros(rows, np.int64)
    for part in parts:
        totals += part.lengths
    data = np.empty(int(totals.sum()), np.uint8)
    at = np.cumsum(totals) - totals
    for part in parts:
        own = np.cumsum(part.lengths) - part.lengths
        data[np.arange(len(part.data)) + np.repeat(at - own, part.lengths)] = part.data
        at = at + part.lengths
    return _Encoded(totals, data)
