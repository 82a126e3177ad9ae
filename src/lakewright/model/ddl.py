"""Schemas written as DDL text: ``id string not null, tags array<string>, total decimal(10,2)``."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakewright.model.dialect import LakeSql
from lakewright.model.errors import Invalid
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
    List,
    Map,
    Struct,
    Timestamp,
    Unit,
)

_SIMPLE: dict[exp.DType, DataType] = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: INT,  # Hudi keeps bytes and shorts as ints
    exp.DType.SMALLINT: INT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: LONG,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.CHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: Timestamp(Unit.MICROS),
    exp.DType.TIMESTAMPTZ: Timestamp(Unit.MICROS),
    exp.DType.TIMESTAMPLTZ: Timestamp(Unit.MICROS),
    exp.DType.TIMESTAMPNTZ: Timestamp(Unit.MICROS, utc=False),
}


#: What may be said of a column beside its type.
_KEPT = (exp.NotNullColumnConstraint, exp.CommentColumnConstraint)


def parse_ddl(text: str) -> Struct:
    """Read the columns of a table in Spark's DDL; the error names what cannot be read."""
    try:
        statement = sqlglot.parse_one(f"CREATE TABLE t ({text})", read=LakeSql)
    except SqlglotError as cause:
        raise Invalid(
            f"cannot read the schema {text!r}.",
            next_step="Write columns as 'id string not null, ts bigint, tags array<string>'.",
            schema=text,
        ) from cause
    columns = statement.this.expressions if isinstance(statement.this, exp.Schema) else []
    if not columns or not all(isinstance(c, exp.ColumnDef) and c.kind for c in columns):
        raise Invalid(
            f"{text!r} is not a list of columns with their types.",
            next_step="Write columns as 'id string not null, ts bigint, tags array<string>'.",
            schema=text,
        )
    return Struct(tuple(read_column(c) for c in columns))


def read_column(column: exp.ColumnDef) -> Field:
    """Read a column that sqlglot has parsed already, as a part of a statement."""
    constraints = [c.kind for c in column.args.get("constraints") or ()]
    not_null = any(
        isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null")
        for kind in constraints
    )
    for kind in constraints:
        if not isinstance(kind, _KEPT):
            raise Invalid(
                f"column {column.name!r}: {kind.sql(dialect=LakeSql)} is not kept by a table.",
                next_step="A column has a type, NOT NULL and COMMENT. The key of a table is named "
                "beside its columns: key=, or primaryKey in TBLPROPERTIES.",
                column=column.name,
            )
    comments = [k.name for k in constraints if isinstance(k, exp.CommentColumnConstraint)]
    doc = comments[0] if comments else None
    return Field(column.name, read_type(column.kind, column.name), nullable=not not_null, doc=doc)


def read_type(kind: exp.DataType | None, column: str = "value") -> DataType:
    """Read a type that sqlglot has parsed; ``column`` is told in errors."""
    if kind is None:
        raise Invalid(
            f"column {column!r} has no type.",
            next_step="Write columns as 'id string, ts bigint'.",
            column=column,
        )
    if kind.this in _SIMPLE:
        return _SIMPLE[kind.this]
    parts = kind.expressions
    match kind.this:
        case exp.DType.DECIMAL:
            precision, scale = [*(int(p.name) for p in parts), 10, 0][:2] if parts else (10, 0)
            return Decimal(precision, scale if len(parts) > 1 else 0)
        case exp.DType.ARRAY | exp.DType.LIST if len(parts) == 1:
            return List(read_type(parts[0], column))
        case exp.DType.MAP if len(parts) == 2:
            return Map(value=read_type(parts[1], column), key=read_type(parts[0], column))
        case exp.DType.STRUCT if parts:
            return Struct(tuple(read_column(p) for p in parts))
        case _:
            raise Invalid(
                f"column {column!r} has the unknown type {kind.sql()!r}.",
                next_step="Allowed: boolean, int, bigint, float, double, decimal(p,s), string, "
                "binary, date, timestamp, timestamp_ntz, array<…>, map<…>, struct<…>.",
                column=column,
            )
