"""Spark's rules for the types of numbers, and types in DuckDB's words."""

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from lakewright.interfaces.sql.text import refused
from lakewright.model.errors import InvalidExpression
from lakewright.model.expression.types import as_decimal, is_floating, is_integer, is_numeric
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
    Fixed,
    List,
    Map,
    Struct,
    Time,
    Timestamp,
    Unit,
)

#: The type of a value; None is that of NULL.
Kind: TypeAlias = DataType | None

_DIGITS = 38
_LEAST_SCALE = 6
_WORDS = {
    BOOLEAN: "BOOLEAN",
    INT: "INTEGER",
    LONG: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "VARCHAR",
    BINARY: "BLOB",
    DATE: "DATE",
}


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An expression in DuckDB's words, with the type that it has in Spark."""

    node: exp.Expression
    kind: Kind


def only_spark(what: str) -> InvalidExpression:
    """Return the error for something of which it is not known that DuckDB means the same."""
    return refused(
        f"{what} is not known without Spark.",
        "Queries are refused rather than answered otherwise than Spark would. Write it in other "
        "words, or use a session: lakewright.connect(place, spark=spark).",
    )


def duck_type(kind: DataType) -> str:
    """Return a type in DuckDB's words."""
    match kind:
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case Timestamp(utc=utc):
            return "TIMESTAMPTZ" if utc else "TIMESTAMP"
        case Time():
            return "TIME"
        case List(element):
            return f"{duck_type(element)}[]"
        case Map(value, key):
            return f"MAP({duck_type(key)}, {duck_type(value)})"
        case Struct(fields):
            quoted = ", ".join(
                '"' + f.name.replace('"', '""') + '" ' + duck_type(f.type) for f in fields
            )
            return f"STRUCT({quoted})"
        case Fixed():
            return "BLOB"
        case _:
            return _WORDS[kind]


def adjusted(precision: int, scale: int) -> Decimal:
    """Fit a decimal into 38 digits as Spark does: digits behind the point go first."""
    if precision <= _DIGITS:
        return Decimal(max(precision, 1), scale)
    whole = precision - scale
    return Decimal(_DIGITS, max(_DIGITS - whole, min(scale, _LEAST_SCALE)))


def sum_kind(left: Decimal, right: Decimal) -> Decimal:
    """Return the type of ``+`` and ``-``."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return adjusted(whole + scale + 1, scale)


def product_kind(left: Decimal, right: Decimal) -> Decimal:
    """Return the type of ``*``."""
    return adjusted(left.precision + right.precision + 1, left.scale + right.scale)


def quotient_kind(left: Decimal, right: Decimal) -> Decimal:
    """Return the type of ``/``."""
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    return adjusted(left.precision - left.scale + right.scale + scale, scale)


def rest_kind(left: Decimal, right: Decimal) -> Decimal:
    """Return the type of ``%``."""
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    return adjusted(whole + scale, scale)


def number_kind(value: Value) -> Decimal:
    """Return the decimal type as which a number meets a decimal: a literal has its own digits."""
    node = value.node.unnest()
    if isinstance(node, exp.Neg):
        node = node.this.unnest()
    if isinstance(node, exp.Literal) and value.kind in (INT, LONG):
        return Decimal(len(str(node.this).lstrip("0")) or 1, 0)
    assert value.kind is not None
    return _as_decimal(value.kind)


def _as_decimal(kind: DataType) -> Decimal:
    """Return the decimal type of a number in arithmetic, where a long has 20 digits."""
    return Decimal(20, 0) if kind == LONG else as_decimal(kind)


def joined(left: Kind, right: Kind) -> Kind:
    """Return the type that holds values of both, as in CASE, COALESCE and UNION.

    Texts and numbers meet in none that Spark's versions agree on: that is refused.
    """
    if left is None or right is None or left == right:
        return left if right is None else right
    if is_numeric(left) and is_numeric(right):
        return _joined_numbers(left, right)
    if {left, right} <= {DATE} | {k for k in (left, right) if isinstance(k, Timestamp)}:
        return Timestamp(
            Unit.MICROS, utc=any(isinstance(k, Timestamp) and k.utc for k in (left, right))
        )
    match left, right:
        case List(one), List(other):
            return List(_known(joined(one, other)))
        case _:
            raise only_spark(f"a value that is either {left} or {right}")


def _known(kind: Kind) -> DataType:
    assert kind is not None
    return kind


def _joined_numbers(left: DataType, right: DataType) -> DataType:
    if is_integer(left) and is_integer(right):
        return LONG
    if is_floating(left) or is_floating(right):
        return FLOAT if {left, right} <= {FLOAT} else DOUBLE
    one, other = _as_decimal(left), _as_decimal(right)
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return adjusted(whole + scale, scale)
