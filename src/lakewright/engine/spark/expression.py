"""Bound expressions as Spark columns, on classic sessions and over Spark Connect.

The column is written as Spark SQL and handed to ``functions.expr``: that works on every session
type, and ``try_cast`` and ``try_add`` have no other form before Spark 4. The text does not lean
on session settings: times are computed from microseconds since 1970 and not in the session's
zone, and a failing conversion is NULL with ANSI mode on or off.
"""

from datetime import time
from math import isfinite, isnan
from typing import TYPE_CHECKING, assert_never

from pyspark.sql import functions

from lakewright.engine.spark.expression_times import (
    cast_time,
    date_truncated,
    involves_time,
    micros_of_day,
    moment_at,
    moment_literal,
    part_of_moment,
    wall_clock,
)
from lakewright.model.errors import Unsupported
from lakewright.model.expression.bound import (
    BoundAnd,
    BoundArithmetic,
    BoundCase,
    BoundCast,
    BoundComparison,
    BoundExpression,
    BoundFunction,
    BoundIn,
    BoundIsNull,
    BoundLike,
    BoundLiteral,
    BoundNegate,
    BoundNot,
    BoundOr,
    BoundReference,
    BoundTextMatch,
    Path,
)
from lakewright.model.expression.nodes import Operator
from lakewright.model.expression.patterns import Wildcard, tokens
from lakewright.model.expression.types import Value, is_integer, sql_type
from lakewright.model.schema import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    DataType,
    Decimal,
    Time,
    Timestamp,
    Unit,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Spark turns the sign of a decimal in a context of this many digits.
_SIGNED_DIGITS = 34


def to_column(bound: BoundExpression) -> "Column":
    """Return the condition or value as a Spark column over columns of the same names."""
    return functions.expr(spark_sql(bound))


def spark_sql(bound: BoundExpression) -> str:
    """Return the text of the column, which means the same in every session."""
    return _sql(bound)


def _sql(bound: BoundExpression) -> str:
    match bound:
        case BoundLiteral(value, kind):
            return literal(value, kind)
        case BoundReference(path, kind):
            return _reference(path, kind)
        case BoundComparison(op, left, right):
            return f"({_sql(left)} {op.value} {_sql(right)})"
        case BoundAnd(left, right):
            return f"({_sql(left)} AND {_sql(right)})"
        case BoundOr(left, right):
            return f"({_sql(left)} OR {_sql(right)})"
        case BoundNot(child):
            return f"(NOT {_sql(child)})"
        case BoundIn(child, values, or_null):
            options = [literal(value, child.type) for value in values]
            return f"({_sql(child)} IN ({', '.join(options + ['NULL'] * or_null)}))"
        case BoundLike(child, pattern, escape):
            return f"({_sql(child)} LIKE {_text(_pattern(pattern, escape))})"
        case BoundTextMatch(test, left, right):
            return f"{test.value}({_sql(left)}, {_sql(right)})"
        case BoundIsNull(child):
            return f"({_sql(child)} IS NULL)"
        case BoundCast(child, to):
            return _cast(_sql(child), child.type, to)
        case BoundArithmetic(op, left, right, kind):
            return _arithmetic(op, _sql(left), _sql(right), kind)
        case BoundNegate(child, kind):
            return _opposite(_sql(child), kind)
        case BoundFunction(name, arguments):
            return _function(name, arguments)
        case BoundCase(branches, otherwise):
            whens = " ".join(f"WHEN {_sql(test)} THEN {_sql(value)}" for test, value in branches)
            return f"(CASE {whens} ELSE {_sql(otherwise)} END)"
        case _:
            assert_never(bound)


def _reference(path: Path, kind: DataType) -> str:
    name = ".".join(f"`{part.replace('`', '``')}`" for part in path)
    # Times of day are numbers on Spark; here they are counted in microseconds.
    return f"(CAST({name} AS BIGINT) * 1000L)" if kind == Time(Unit.MILLIS) else name


def literal(value: Value, kind: DataType) -> str:
    """Return a constant of one of our types as Spark SQL, in one way for every session."""
    if value is None:
        return f"CAST(NULL AS {'BIGINT' if isinstance(kind, Time) else sql_type(kind)})"
    if isinstance(value, time):
        return f"({micros_of_day(value)}L)"
    if kind in (FLOAT, DOUBLE):
        assert isinstance(value, float)
        return _number(value, kind)
    if isinstance(kind, Timestamp):
        return moment_literal(value)
    if isinstance(kind, Decimal):
        assert not isinstance(value, (str, bytes))
        return f"CAST('{value:f}' AS {sql_type(kind)})"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if kind == INT:
        return f"({value})"
    if kind == LONG:
        return f"({value}L)"
    return str(value).upper() if isinstance(value, bool) else f"{sql_type(kind)} '{value}'"


def _number(value: float, kind: DataType) -> str:
    if isfinite(value):
        return f"({value!r}{'F' if kind == FLOAT else 'D'})"
    name = "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{name}' AS {sql_type(kind)})"


def _text(value: str) -> str:
    """Bytes stand for what a session could read in another way, `${variables}` among it."""
    if value.isprintable() and not set(value) & {"'", "\\", "$"}:
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


def _pattern(pattern: str, escape: str) -> str:
    """Write a pattern with the backslash as its escape, whichever it had."""
    quoted = str.maketrans({"%": r"\%", "_": r"\_", "\\": "\\\\"})
    return "".join(
        token.value if isinstance(token, Wildcard) else token.translate(quoted)
        for token in tokens(pattern, escape)
    )


def _cast(child: str, source: DataType, to: DataType) -> str:
    if isinstance(source, Time) or isinstance(to, Time):
        raise Unsupported(
            f"Spark cannot convert {source} to {to}.",
            next_step="Compare times of day with constants, or read with to_arrow().",
        )
    if involves_time(source, to):
        return cast_time(child, source, to)
    return f"try_cast({child} AS {sql_type(to)})"


def _arithmetic(op: Operator, left: str, right: str, kind: DataType) -> str:
    if op is Operator.MODULO:
        return f"(CASE WHEN {right} = 0 THEN NULL ELSE {left} % {right} END)"
    if kind == DOUBLE and op is not Operator.DIVIDE:
        return f"({left} {op.value} {right})"
    return f"{_TRY[op]}({left}, {right})"


_TRY = {
    Operator.ADD: "try_add",
    Operator.SUBTRACT: "try_subtract",
    Operator.MULTIPLY: "try_multiply",
    Operator.DIVIDE: "try_divide",
}


def _opposite(child: str, kind: DataType) -> str:
    if _is_long_decimal(kind):
        turned = f"replace(concat('-', CAST({child} AS STRING)), '--', '')"
        return f"try_cast({turned} AS {sql_type(kind)})"
    return f"try_subtract(0L, {child})" if kind == LONG else f"(- {child})"


def _absolute(child: str, kind: DataType) -> str:
    if kind == LONG:
        return f"(CASE WHEN {child} < 0L THEN try_subtract(0L, {child}) ELSE {child} END)"
    if _is_long_decimal(kind):
        unsigned = f"trim(LEADING '-' FROM CAST({child} AS STRING))"
        return f"try_cast({unsigned} AS {sql_type(kind)})"
    return f"abs({child})"


def _is_long_decimal(kind: DataType) -> bool:
    """Spark rounds what it turns the sign of to 34 digits; of longer ones, the text is turned."""
    return isinstance(kind, Decimal) and kind.precision > _SIGNED_DIGITS


def _whole(name: str, child: str) -> str:
    """Floor and ceiling of a double, where an ANSI session would refuse what no long holds."""
    return (
        f"(CASE WHEN isnan({child}) THEN 0L "
        f"WHEN {child} >= 9223372036854775807D THEN 9223372036854775807L "
        f"WHEN {child} <= -9223372036854775808D THEN -9223372036854775808L "
        f"ELSE {name}({child}) END)"
    )


def _function(name: str, arguments: tuple[BoundExpression, ...]) -> str:
    first = _sql(arguments[0])
    match name:
        case "abs":
            return _absolute(first, arguments[0].type)
        case "floor" | "ceil" if arguments[0].type == DOUBLE:
            return _whole(name, first)
        case "hour" | "minute" | "second":
            return part_of_moment(name, first, arguments[0].type)
        case "date_trunc":
            unit, moment = arguments
            assert isinstance(unit, BoundLiteral)
            return date_truncated(str(unit.value), _sql(moment), moment.type)
        case "wall_clock" | "moment_at":
            zone = arguments[1]
            assert isinstance(zone, BoundLiteral)
            return (wall_clock if name == "wall_clock" else moment_at)(first, str(zone.value))
        case "substring":
            places = [f"CAST({_sql(a)} AS INT)" for a in arguments[1:] if is_integer(a.type)]
            return f"substring({', '.join([first, *places])})"
        case _:
            return f"{name}({', '.join(_sql(a) for a in arguments)})"
