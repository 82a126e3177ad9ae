"""Schemas as Arrow schemas, and back.

The way there is exact. The way back accepts every Arrow type that has one home among ours
(narrow integers, large and view strings, dictionaries, seconds and nanoseconds), so that the
schema of any file or frame can be read; types without a home are refused by name.
"""

from functools import lru_cache
from typing import Any

import pyarrow as pa

from lakewright.model.errors import Unsupported
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    Field,
    Fixed,
    Kind,
    List,
    Map,
    Primitive,
    Struct,
    Time,
    Timestamp,
    Unit,
)

#: Deeper schemas are refused, so that no hostile file can exhaust the stack.
MAX_DEPTH = 64

_TO_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
}
_UNITS = {Unit.MILLIS: "ms", Unit.MICROS: "us"}
_FROM_ARROW: dict[Any, DataType] = {
    pa.bool_(): BOOLEAN,
    pa.int8(): INT,
    pa.int16(): INT,
    pa.int32(): INT,
    pa.int64(): LONG,
    pa.uint8(): INT,
    pa.uint16(): INT,
    pa.uint32(): LONG,
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.time32("s"): Time(Unit.MILLIS),
    pa.time32("ms"): Time(Unit.MILLIS),
    pa.time64("us"): Time(Unit.MICROS),
    pa.time64("ns"): Time(Unit.MICROS),
}


def to_arrow_schema(struct: Struct) -> pa.Schema:
    """Return the Arrow schema of a table schema."""
    return pa.schema([_to_field(field) for field in struct])


def to_arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of one of our types; timestamps are UTC or without a zone."""
    match kind:
        case Primitive():
            return _TO_ARROW[kind.kind]
        case Decimal():
            return pa.decimal128(kind.precision, kind.scale)
        case Fixed():
            return pa.binary(kind.size)
        case Time():
            return pa.time32("ms") if kind.unit is Unit.MILLIS else pa.time64("us")
        case Timestamp():
            return pa.timestamp(_UNITS[kind.unit], tz="UTC" if kind.utc else None)
        case List():
            return pa.list_(pa.field("element", to_arrow_type(kind.element), kind.element_nullable))
        case Map():
            value = pa.field("value", to_arrow_type(kind.value), kind.value_nullable)
            return pa.map_(pa.field("key", to_arrow_type(kind.key), nullable=False), value)
        case Struct():
            return pa.struct([_to_field(field) for field in kind])


def from_arrow_schema(schema: pa.Schema) -> Struct:
    """Return the table schema of an Arrow schema; ``Unsupported`` names a type without a home."""
    return Struct(tuple(_from_field(field, field.name, 1) for field in schema))


def from_arrow_type(kind: pa.DataType) -> DataType:
    """Return our type for an Arrow type."""
    return _from_type(kind, str(kind), 1)


def normalised(schema: pa.Schema) -> pa.Schema:
    """Return an Arrow schema with every type in the one form that this package works with."""
    try:
        # The metadata plays no part, and that of a base file is large and its own.
        return _remembered(schema.remove_metadata())
    except TypeError:
        # Extension types that are written in Python have no hash.
        return to_arrow_schema(from_arrow_schema(schema))


# Files are many and their schemas few.
@lru_cache(maxsize=64)
def _remembered(schema: pa.Schema) -> pa.Schema:
    return to_arrow_schema(from_arrow_schema(schema))


def _to_field(field: Field) -> pa.Field:
    return pa.field(field.name, to_arrow_type(field.type), field.nullable)


def _from_field(field: pa.Field, path: str, depth: int) -> Field:
    return Field(field.name, _from_type(field.type, path, depth), field.nullable)


def _from_type(kind: pa.DataType, path: str, depth: int) -> DataType:
    if depth > MAX_DEPTH:
        raise Unsupported(
            f"column {path} is nested deeper than {MAX_DEPTH} levels.",
            next_step="Flatten it.",
            column=path,
        )
    nested = _from_nested(kind, path, depth)
    if nested is not None:
        return nested
    found = _FROM_ARROW.get(kind)
    if found is not None:
        return found
    if (
        pa.types.is_decimal(kind)
        and 1 <= kind.precision <= 38
        and 0 <= kind.scale <= kind.precision
    ):
        return Decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        unit = Unit.MILLIS if kind.unit in ("s", "ms") else Unit.MICROS
        return Timestamp(unit, utc=kind.tz is not None)
    if pa.types.is_fixed_size_binary(kind):
        return Fixed(kind.byte_width)
    raise Unsupported(
        f"column {path} has the Arrow type {kind}, which no table can hold.",
        next_step="Cast it to a boolean, integer, float, decimal, string, binary, date, "
        "timestamp, list, map or struct.",
        column=path,
        type=str(kind),
    )


def _from_nested(kind: pa.DataType, path: str, depth: int) -> DataType | None:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _from_type(kind.value_type, path, depth + 1)
    if isinstance(kind, pa.BaseExtensionType):
        return _from_type(kind.storage_type, path, depth + 1)
    if pa.types.is_struct(kind):
        return Struct(tuple(_from_field(f, f"{path}.{f.name}", depth + 1) for f in kind))
    if pa.types.is_map(kind):
        key = _from_type(kind.key_type, f"{path}.key", depth + 1)
        value = _from_field(kind.item_field, f"{path}.value", depth + 1)
        return Map(value.type, key, value.nullable)
    if (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    ):
        element = _from_field(kind.value_field, f"{path}.element", depth + 1)
        return List(element.type, element.nullable)
    return None
