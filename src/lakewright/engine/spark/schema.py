"""Schemas as Spark schemas, and back; and the Arrow form in which Spark takes rows from Python."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as st

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
    TIMESTAMP,
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

_TO_SPARK: Mapping[Kind, Callable[[], st.DataType]] = {
    Kind.BOOLEAN: st.BooleanType,
    Kind.INT: st.IntegerType,
    Kind.LONG: st.LongType,
    Kind.FLOAT: st.FloatType,
    Kind.DOUBLE: st.DoubleType,
    Kind.STRING: st.StringType,
    Kind.BINARY: st.BinaryType,
    Kind.DATE: st.DateType,
}
_FROM_SPARK: Mapping[type[Any], DataType] = {
    st.BooleanType: BOOLEAN,
    st.ByteType: INT,
    st.ShortType: INT,
    st.IntegerType: INT,
    st.LongType: LONG,
    st.FloatType: FLOAT,
    st.DoubleType: DOUBLE,
    st.StringType: STRING,
    st.CharType: STRING,
    st.VarcharType: STRING,
    st.BinaryType: BINARY,
    st.DateType: DATE,
    st.TimestampType: TIMESTAMP,
    st.TimestampNTZType: Timestamp(Unit.MICROS, utc=False),
}


def to_spark_schema(struct: Struct) -> st.StructType:
    """Return the Spark schema of a table schema.

    Times of day become numbers (milliseconds or microseconds since midnight) and fixed-size
    bytes become binary, as real Hudi shows them on Spark.
    """
    return st.StructType(
        [st.StructField(f.name, to_spark_type(f.type), f.nullable) for f in struct]
    )


def to_spark_type(kind: DataType) -> st.DataType:
    """Return the Spark type of one of our types."""
    match kind:
        case Primitive():
            return _TO_SPARK[kind.kind]()
        case Decimal():
            return st.DecimalType(kind.precision, kind.scale)
        case Fixed():
            return st.BinaryType()
        case Time():
            return st.IntegerType() if kind.unit is Unit.MILLIS else st.LongType()
        case Timestamp():
            return st.TimestampType() if kind.utc else st.TimestampNTZType()
        case List():
            return st.ArrayType(to_spark_type(kind.element), kind.element_nullable)
        case Map():
            return st.MapType(
                to_spark_type(kind.key), to_spark_type(kind.value), kind.value_nullable
            )
        case Struct():
            return to_spark_schema(kind)


def from_spark_schema(schema: st.StructType) -> Struct:
    """Return the table schema of a Spark schema; ``Unsupported`` names a type without a home."""
    return Struct(tuple(_from_field(field, field.name) for field in schema.fields))


def _from_field(field: st.StructField, path: str) -> Field:
    return Field(field.name, _from_type(field.dataType, path), field.nullable)


def _from_type(kind: st.DataType, path: str) -> DataType:
    found = _FROM_SPARK.get(type(kind))
    if found is not None:
        return found
    if isinstance(kind, st.DecimalType):
        return Decimal(kind.precision, kind.scale)
    if isinstance(kind, st.ArrayType):
        return List(_from_type(kind.elementType, f"{path}.element"), kind.containsNull)
    if isinstance(kind, st.MapType):
        return Map(
            _from_type(kind.valueType, f"{path}.value"),
            _from_type(kind.keyType, f"{path}.key"),
            kind.valueContainsNull,
        )
    if isinstance(kind, st.StructType):
        return Struct(tuple(_from_field(f, f"{path}.{f.name}") for f in kind.fields))
    raise Unsupported(
        f"column {path} has the Spark type {kind.simpleString()}, which no table can hold.",
        next_step="Cast it to a boolean, number, string, binary, date, timestamp, array, map "
        "or struct.",
        column=path,
        type=kind.simpleString(),
    )


def as_nullable(kind: DataType) -> DataType:
    """Return the type with everything inside it nullable, as Spark reads files."""
    match kind:
        case List():
            return List(as_nullable(kind.element))
        case Map():
            return Map(as_nullable(kind.value), as_nullable(kind.key))
        case Struct():
            return nullable(kind)
        case _:
            return kind


def nullable(struct: Struct) -> Struct:
    """Return the schema with every field at every depth nullable."""
    return Struct(tuple(Field(f.name, as_nullable(f.type)) for f in struct))


def spark_form(kind: DataType) -> DataType:
    """Return the type whose Arrow form Spark takes from a Python worker for ``kind``."""
    match kind:
        case Fixed():
            return BINARY
        case Time():
            return INT if kind.unit is Unit.MILLIS else LONG
        case Timestamp():
            return Timestamp(Unit.MICROS, kind.utc)
        case List():
            return List(spark_form(kind.element))
        case Map():
            return Map(spark_form(kind.value), spark_form(kind.key))
        case Struct():
            return Struct(tuple(Field(f.name, spark_form(f.type)) for f in kind))
        case _:
            return kind


def worker_form(struct: Struct) -> Struct:
    """Return the schema of the batches that a Python worker hands to Spark for ``struct``."""
    return Struct(tuple(Field(f.name, spark_form(f.type)) for f in struct))


def told_voids(frame: Any, like: Struct | None) -> Any:  # noqa: ANN401 - a DataFrame, classic or Connect
    """Return a DataFrame in which columns of Spark's void are nulls of the table's types.

    ``like`` holds the table's columns. A void column that the table lacks is left out: nobody
    knows its type.
    """
    if not any(_has_void(field.dataType) for field in frame.schema.fields):
        return frame
    known = {} if like is None else {f.name: to_spark_type(f.type) for f in like}
    kept = []
    for field in frame.schema.fields:
        column = F.col(f"`{field.name.replace('`', '``')}`")
        kind = _told(field.dataType, known.get(field.name))
        if isinstance(kind, st.NullType):
            continue
        kept.append(column if kind == field.dataType else column.cast(kind).alias(field.name))
    return frame.select(*kept)


def _told(kind: st.DataType, like: st.DataType | None) -> st.DataType:
    if like is None or not _has_void(kind):
        return kind
    if isinstance(kind, st.NullType):
        return like
    if isinstance(kind, st.ArrayType) and isinstance(like, st.ArrayType):
        return st.ArrayType(_told(kind.elementType, like.elementType), kind.containsNull)
    if isinstance(kind, st.MapType) and isinstance(like, st.MapType):
        keys, values = _told(kind.keyType, like.keyType), _told(kind.valueType, like.valueType)
        return st.MapType(keys, values, kind.valueContainsNull)
    if isinstance(kind, st.StructType) and isinstance(like, st.StructType):
        inner = {field.name: field.dataType for field in like.fields}
        fields = [
            st.StructField(f.name, _told(f.dataType, inner.get(f.name)), f.nullable)
            for f in kind.fields
        ]
        return st.StructType(fields)
    return kind


def _has_void(kind: st.DataType) -> bool:
    match kind:
        case st.NullType():
            return True
        case st.ArrayType():
            return _has_void(kind.elementType)
        case st.MapType():
            return _has_void(kind.keyType) or _has_void(kind.valueType)
        case st.StructType():
            return any(_has_void(field.dataType) for field in kind.fields)
        case _:
            return False
