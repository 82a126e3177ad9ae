"""What an expression means for one row: SQL's three-valued logic in plain Python.

This is the yardstick for pruning and for the translations; it favours being obviously right
over everything else. A row is a mapping from column names to values, structs are mappings too.
"""

import math
import operator
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context
from decimal import Decimal as PyDecimal
from typing import Any

from lakewright.model.expression import bound as b
from lakewright.model.expression.nodes import Comparator, Operator, TextTest
from lakewright.model.expression.values import read_text
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
    Timestamp,
)

EXACT = Context(prec=200)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def matches(bound: b.BoundExpression, row: Mapping[str, Any]) -> bool:
    """A row is kept when the condition is true, not when it is NULL."""
    return value_of(bound, row) is True


def value_of(node: b.BoundExpression, row: Mapping[str, Any]) -> Any:
    match node:
        case b.BoundLiteral(value):
            return value
        case b.BoundReference(path):
            return _lookup(row, path)
        case b.BoundAnd(left, right):
            sides = {value_of(left, row), value_of(right, row)}
            return False if False in sides else None if None in sides else True
        case b.BoundOr(left, right):
            sides = {value_of(left, row), value_of(right, row)}
            return True if True in sides else None if None in sides else False
        case b.BoundNot(child):
            inner = value_of(child, row)
            return None if inner is None else not inner
        case b.BoundIsNull(child):
            return value_of(child, row) is None
        case b.BoundComparison(op, left, right):
            return compare(op, value_of(left, row), value_of(right, row))
        case b.BoundIn(child, values, or_null):
            options = [*values, None] if or_null else list(values)
            tested = value_of(child, row)
            answers = {compare(Comparator.EQ, tested, option) for option in options}
            return True if True in answers else None if None in answers else False
        case b.BoundCase(branches, otherwise):
            for test, value in branches:
                if value_of(test, row) is True:
                    return value_of(value, row)
            return value_of(otherwise, row)
        case b.BoundFunction("coalesce", arguments):
            values = (value_of(a, row) for a in arguments)
            return next((v for v in values if v is not None), None)
        case b.BoundFunction("isnan", (argument,)):
            number = value_of(argument, row)
            return number is not None and math.isnan(number)
    inner = [value_of(child, row) for child in node.children()]
    return None if None in inner else _strict(node, inner)


def _lookup(row: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value


def compare(op: Comparator, one: Any, other: Any) -> bool | None:
    if op is Comparator.NULL_SAFE_EQ:
        if one is None or other is None:
            return one is None and other is None
        return bool(_rank(one) == _rank(other))
    if one is None or other is None:
        return None
    tests = {
        Comparator.EQ: operator.eq,
        Comparator.NE: operator.ne,
        Comparator.LT: operator.lt,
        Comparator.LE: operator.le,
        Comparator.GT: operator.gt,
        Comparator.GE: operator.ge,
    }
    return bool(tests[op](_rank(one), _rank(other)))


def _rank(value: Any) -> Any:
    """NaN is above every number and equal to itself."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def _strict(node: b.BoundExpression, values: list[Any]) -> Any:
    """Nodes that are NULL as soon as one of their inputs is."""
    match node:
        case b.BoundLike(_, pattern, escape):
            return _like(values[0], pattern, escape)
        case b.BoundTextMatch(test):
            text, piece = values
            return {
                TextTest.PREFIX: text.startswith(piece),
                TextTest.SUFFIX: text.endswith(piece),
                TextTest.INFIX: piece in text,
            }[test]
        case b.BoundCast(child, to):
            return cast(values[0], child.type, to)
        case b.BoundNegate(_, kind):
            return _long(-values[0]) if kind == LONG else _opposite(values[0])
        case b.BoundArithmetic(op, _, _, kind):
            return _arithmetic(op, values[0], values[1], kind)
        case b.BoundFunction(name, _, kind):
            return _function(name, values, kind)
    raise AssertionError(node)


def _like(text: str, pattern: str, escape: str) -> bool:
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == escape:
        return text[:1] == rest[0] and _like(text[1:], rest[1:], escape)
    if first == "%":
        return any(_like(text[at:], rest, escape) for at in range(len(text) + 1))
    return bool(text) and first in ("_", text[0]) and _like(text[1:], rest, escape)


def _long(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def _fit(number: PyDecimal, kind: Decimal, rounding: str = ROUND_HALF_UP) -> PyDecimal | None:
    fitted = number.quantize(PyDecimal((0, (1,), -kind.scale)), rounding, EXACT)
    limit = PyDecimal((0, (1,), kind.precision - kind.scale))
    return fitted if fitted.copy_abs() < limit else None


def _opposite(number: Any) -> Any:
    """Of a decimal, without rounding to the digits of the thread's context."""
    return number.copy_negate() if isinstance(number, PyDecimal) else -number


def _absolute(number: Any) -> Any:
    return number.copy_abs() if isinstance(number, PyDecimal) else abs(number)


def _arithmetic(op: Operator, one: Any, other: Any, kind: DataType) -> Any:
    if op in (Operator.DIVIDE, Operator.MODULO) and other == 0:
        return None
    if isinstance(kind, Decimal):
        does = {
            Operator.ADD: EXACT.add,
            Operator.SUBTRACT: EXACT.subtract,
            Operator.MULTIPLY: EXACT.multiply,
            Operator.DIVIDE: EXACT.divide,
            Operator.MODULO: EXACT.remainder,
        }
        return _fit(does[op](one, other), kind)
    if op is Operator.MODULO:
        return math.fmod(one, other) if kind == DOUBLE else _truncated_modulo(one, other)
    if kind == DOUBLE:
        return _float_arithmetic(op, one, other)
    plain = {
        Operator.ADD: operator.add,
        Operator.SUBTRACT: operator.sub,
        Operator.MULTIPLY: operator.mul,
    }
    return _long(plain[op](one, other))


def _truncated_modulo(one: int, other: int) -> int:
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _float_arithmetic(op: Operator, one: float, other: float) -> float:
    match op:
        case Operator.ADD:
            return one + other
        case Operator.SUBTRACT:
            return one - other
        case Operator.MULTIPLY:
            return one * other
        case _:
            return one / other


def _function(name: str, values: list[Any], kind: DataType) -> Any:
    first = values[0]
    match name:
        case "lower":
            return first.lower()
        case "upper":
            return first.upper()
        case "trim":
            return first.strip(" ")
        case "ltrim":
            return first.lstrip(" ")
        case "rtrim":
            return first.rstrip(" ")
        case "length":
            return len(first)
        case "substring":
            return _substring(*values)
        case "concat":
            return "".join(values)
        case "abs":
            return _long(abs(first)) if kind == LONG else _absolute(first)
        case "round":
            return _round(first, values[1], kind)
        case "floor" | "ceil":
            return _whole(name, first, kind)
        case "quarter":
            return (first.month - 1) // 3 + 1
        case "year" | "month" | "day" | "hour" | "minute" | "second":
            return getattr(first, name)
        case "date_trunc":
            return _date_trunc(first, values[1])
    raise AssertionError(name)


def _substring(text: str, position: int, size: int = 2**31) -> str:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = start + size
    return text[max(start, 0) : max(end, 0)]


def _round(number: Any, digits: int, kind: DataType) -> Any:
    if isinstance(kind, Decimal):
        return _fit(number, kind)
    if not math.isfinite(number):
        return number
    step = PyDecimal(1).scaleb(-digits)
    return float(PyDecimal(repr(number)).quantize(step, ROUND_HALF_UP, Context(prec=400)))


def _whole(name: str, number: Any, kind: DataType) -> Any:
    rounding = ROUND_FLOOR if name == "floor" else ROUND_CEILING
    if isinstance(kind, Decimal):
        return _fit(number, kind, rounding)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return 2**63 - 1 if number > 0 else -(2**63)
    whole = math.floor(number) if name == "floor" else math.ceil(number)
    return max(-(2**63), min(2**63 - 1, whole))


def _date_trunc(unit: str, moment: datetime) -> datetime:
    order = ["year", "month", "day", "hour", "minute", "second", "microsecond"]
    if unit == "week":
        return _date_trunc("day", moment) - timedelta(days=moment.weekday())
    if unit == "quarter":
        month = _date_trunc("month", moment)
        return month.replace(month=(month.month - 1) // 3 * 3 + 1)
    kept = order.index(unit) + 1
    lowest = {"month": 1, "day": 1}
    return moment.replace(**{part: lowest.get(part, 0) for part in order[kept:]})


def cast(value: Any, source: DataType, to: DataType) -> Any:
    if source == STRING:
        try:
            return read_text(value, to)
        except ValueError:
            return None
    if to == STRING:
        return _text(value)
    if to == BINARY:
        return value
    if to == BOOLEAN:
        return bool(value != 0)
    if isinstance(to, Timestamp):
        return _moment(value, utc=to.utc)
    if to == DATE:
        return value.date()
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(seconds=1)
    return _number(value, to)


def _number(value: Any, to: DataType) -> Any:
    if isinstance(value, bool):
        value = int(value)
    if isinstance(to, Decimal):
        if isinstance(value, float):
            if not math.isfinite(value):
                return None
            value = PyDecimal(repr(value))
        return _fit(PyDecimal(value), to) if _absolute(value) < 10**60 else None
    if to in (INT, LONG):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        whole = int(PyDecimal(value).to_integral_value(ROUND_DOWN, EXACT))
        return whole if (to == LONG and _long(whole) == whole) or _is_int(whole) else None
    number = float(value)
    return _float32(number) if to == FLOAT else number


def _is_int(number: int) -> bool:
    return -(2**31) <= number < 2**31


def _float32(number: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def _moment(value: Any, *, utc: bool) -> datetime | None:
    zone = UTC if utc else None
    if isinstance(value, datetime):
        return value.replace(tzinfo=zone)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=zone)
    return EPOCH + timedelta(seconds=value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        whole, _, fraction = value.isoformat(sep=" ", timespec="microseconds")[:26].partition(".")
        digits = fraction.rstrip("0")
        return f"{whole}.{digits}" if digits else whole
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value)
