"""Records in Avro binary form, without a container: to Arrow tables and back."""

import io
import struct
from collections.abc import Iterator, Sequence
from typing import Any, cast

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_columns import (
    PADDING,
    ColumnDecoder,
    Cursors,
    Ints,
    map_entry,
)
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
from lakewright.model.errors import Corrupt, Invalid
from lakewright.model.schema import Decimal

#: Records are decoded in runs of at most so many bytes, which bounds the working memory.
_RUN_BYTES = 64 << 20


def decode_records(
    schema_text: str,
    datums: Sequence[bytes],
    columns: Sequence[str] | None = None,
    path: str = "",
) -> pa.Table:
    """Return records as a table; ``columns`` names those wanted, absent names are passed over."""
    framed = b"".join(struct.pack(">i", len(datum)) + datum for datum in datums)
    return decode_framed(schema_text, framed, len(datums), columns, path=path)


def decode_framed(
    schema_text: str,
    data: bytes | memoryview,
    count: int,
    columns: Sequence[str] | None = None,
    *,
    path: str = "",
    offset: int = 0,
) -> pa.Table:
    """Return ``count`` records, each preceded by its length in four bytes, as a table.

    ``offset`` is where ``data`` lies in the file, for messages.
    """
    record = parse_avro(schema_text, path)
    schema = to_arrow_schema(parse_avro_schema(schema_text, path))
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns if name in record.names])
    wanted = None if columns is None else frozenset(schema.names)
    starts, ends = _frames(data, count, path, offset)
    tables = []
    for first, last in _runs(starts, ends):
        low = int(starts[first])
        piece = pa.py_buffer(
            b"".join((memoryview(data)[low : int(ends[last - 1])], b"\0" * PADDING))
        )
        cursors = Cursors(starts[first:last] - low, ends[first:last] - low)
        decoder = ColumnDecoder(piece, path, offset + low)
        made = decoder.columns(record, cursors, wanted)
        tables.append(pa.table([made[name] for name in schema.names], schema=schema))
    if not tables:
        return schema.empty_table()
    return pa.concat_tables(tables)


def _frames(data: bytes | memoryview, count: int, path: str, offset: int) -> tuple[Ints, Ints]:
    """Return where records begin and end."""
    total = len(data)
    if count < 0 or count * 4 > total:
        raise Corrupt(
            f"{count} records cannot lie in {total} bytes of {path}.", path=path, offset=offset
        )
    starts = np.empty(count, np.int64)
    ends = np.empty(count, np.int64)
    unpack = struct.Struct(">i").unpack_from
    at = 0
    for i in range(count):
        if at + 4 > total:
            raise Corrupt(f"records end early in {path}.", path=path, offset=offset + at)
        size = unpack(data, at)[0]
        at += 4
        starts[i] = at
        if size < 0 or size > total - at:
            raise Corrupt(
                f"a record claims {size} bytes in {path}.", path=path, offset=offset + at - 4
            )
        at += size
        ends[i] = at
    if at != total:
        raise Corrupt(f"bytes follow the last record in {path}.", path=path, offset=offset + at)
    return starts, ends


def _runs(starts: Ints, ends: Ints) -> Iterator[tuple[int, int]]:
    first = 0
    while first < len(starts):
        last = int(np.searchsorted(ends, starts[first] + _RUN_BYTES, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last


def encode_records(table: pa.Table, schema_text: str) -> list[bytes]:
    """Return each row as Avro binary of the schema; its columns are found by name.

    A column that the table lacks is written as null, or refused where null is not allowed.
    """
    record = parse_avro(schema_text)
    wire = fastavro.parse_schema(cast("dict[str, Any]", _wire(record, _Names())))
    schema = to_arrow_schema(parse_avro_schema(schema_text))
    columns = []
    for field, node in zip(schema, record.nodes, strict=True):
        columns.append(_column(table, field, node))
    out = []
    names = [f"f{i}" for i in range(len(columns))]
    for values in zip(*columns, strict=True):
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, wire, dict(zip(names, values, strict=True)))
        out.append(sink.getvalue())
    return out


def _column(table: pa.Table, field: pa.Field, node: AvroNode) -> list[Any]:
    if field.name not in table.schema.names:
        if not field.nullable:
            raise Invalid(f"column {field.name!r} is missing and may not be null.")
        return [None] * table.num_rows
    array = table.column(field.name).combine_chunks()
    if array.type != field.type:
        array = array.cast(field.type)
    if array.null_count and not field.nullable:
        raise Invalid(f"column {field.name!r} holds nulls and may not be null.")
    return _plain(array, node)


def _plain(array: pa.Array, node: AvroNode) -> list[Any]:
    """Return values as the wire schema takes them: numbers for times, bytes for decimals."""
    match node:
        case AvroUnion():
            return _plain(array, node.value)
        case AvroEnum():
            numbers = pc.index_in(array, pa.array(node.symbols, pa.string()))
            if numbers.null_count != array.null_count:
                raise Invalid(f"a value is none of the symbols {', '.join(node.symbols)}.")
            return list(numbers.to_pylist())
        case AvroPrimitive() | AvroFixed():
            return _plain_leaf(array, node)
        case AvroArray():
            return _nested(array, _plain(array.values, node.items))
        case AvroMap():
            pairs = zip(array.keys.to_pylist(), _plain(array.items, node.values), strict=True)
            return _nested(array, [{"f0": k, "f1": v} for k, v in pairs])
        case AvroRecord():
            children = [_plain(array.field(i), child) for i, child in enumerate(node.nodes)]
            names = [f"f{i}" for i in range(len(children))]
            valid = array.is_valid().to_pylist()
            return [
                dict(zip(names, values, strict=True)) if ok else None
                for ok, values in zip(valid, zip(*children, strict=True), strict=True)
            ]


def _nested(array: pa.Array, elements: list[Any]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [elements[offsets[i] : offsets[i + 1]] if valid[i] else None for i in range(len(array))]


def _plain_leaf(array: pa.Array, node: AvroPrimitive | AvroFixed) -> list[Any]:
    if isinstance(node.type, Decimal):
        return _decimal_bytes(array, node.size if isinstance(node, AvroFixed) else None)
    if isinstance(node, AvroPrimitive) and node.name in ("int", "long"):
        return list(array.view(pa.int32() if node.name == "int" else pa.int64()).to_pylist())
    return list(array.to_pylist())


def _decimal_bytes(array: pa.Array, size: int | None) -> list[bytes | None]:
    """Return unscaled values, big endian, in ``size`` bytes or in as few as will do."""
    raw = array.buffers()[1]
    out: list[bytes | None] = []
    for i, ok in enumerate(array.is_valid().to_pylist(), array.offset):
        if not ok:
            out.append(None)
            continue
        unscaled = int.from_bytes(raw[16 * i : 16 * i + 16], "little", signed=True)
        least = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        if size is not None and least > size:
            raise Invalid(f"a decimal needs {least} bytes; the schema gives it {size}.")
        out.append(unscaled.to_bytes(size or least, "big", signed=True))
    return out


class _Names:
    """Fresh names for the wire schema: those of real tables may break Avro's rules."""

    def __init__(self) -> None:
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _wire(node: AvroNode, names: _Names) -> object:
    """Return the schema of the bytes alone: no logical types, enums as ints, maps as lists."""
    match node:
        case AvroPrimitive():
            return node.name
        case AvroFixed():
            return {"type": "fixed", "name": names.fresh(), "size": node.size}
        case AvroEnum():
            return "int"
        case AvroUnion():
            value = _wire(node.value, names)
            if node.null_at is None:
                return [value]
            return ["null", value] if node.null_at == 0 else [value, "null"]
        case AvroArray():
            return {"type": "array", "items": _wire(node.items, names)}
        case AvroMap():
            return {"type": "array", "items": _wire(map_entry(node), names)}
        case AvroRecord():
            fields = [
                {"name": f"f{i}", "type": _wire(child, names)} for i, child in enumerate(node.nodes)
            ]
            return {"type": "record", "name": names.fresh(), "fields": fields}
