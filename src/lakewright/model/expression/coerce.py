"""Bringing the two sides of a comparison to one type.

A constant is converted to the type of what it is compared with, so that statistics, indexes
and partition values can be used; only where the type cannot hold it exactly is the other side
widened.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal as PyDecimal

from lakewright.model.errors import InvalidExpression
from lakewright.model.expression.bound import (
    BoundCast,
    BoundExpression,
    BoundFunction,
    BoundLiteral,
    BoundReference,
)
from lakewright.model.expression.types import (
    INT_RANGE,
    LONG_RANGE,
    MAX_DIGITS,
    Value,
    as_decimal,
    common_type,
    is_integer,
    is_nested,
    type_of,
    wider_decimal,
)
from lakewright.model.expression.values import (
    at_midnight,
    fit_decimal,
    in_zone,
    narrow_float,
    read_text,
)
from lakewright.model.expression.zones import MOMENT_AT, WALL_CLOCK, current_zone
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
    Fixed,
    Time,
    Timestamp,
    Unit,
)

Sides = tuple[BoundExpression, BoundExpression]


def sides_of_one_type(left: BoundExpression, right: BoundExpression) -> Sides:
    """Return both sides in one type; a constant adapts to the other side."""
    for side in (left, right):
        if is_nested(side.type):
            raise InvalidExpression(
                f"{describe(side)} cannot be compared.",
                next_step="Compare a member of it (a.b), or test IS NULL.",
            )
    if is_null(left):
        return BoundLiteral(None, right.type), right
    if isinstance(right, BoundLiteral):
        return fit_constant(left, right)
    if isinstance(left, BoundLiteral):
        other, constant = fit_constant(right, left)
        return constant, other
    common = common_type(left.type, right.type)
    if common is None:
        raise InvalidExpression(
            f"{describe(left)} cannot be compared with {describe(right)}.",
            next_step="Convert one of them with CAST.",
        )
    return converted(left, common), converted(right, common)


def converted(side: BoundExpression, to: DataType) -> BoundExpression:
    """Return the expression in another type; units of time are left alone."""
    if side.type == to or _same_but_unit(side.type, to):
        return side
    if isinstance(side, BoundLiteral):
        if side.value is None:
            return BoundLiteral(None, to)
        fitted = _fit(side, side.value, BoundLiteral(None, to))
        if fitted is not None and fitted[0].type == to:
            return fitted[1]
    return cast_in_zone(side, to)


def cast_in_zone(child: BoundExpression, to: DataType, *, safe: bool = False) -> BoundExpression:
    """Return a conversion, by way of the clocks of the zone that is read in where it needs one."""
    zone = current_zone()
    moment = isinstance(child.type, Timestamp) and child.type.utc
    to_moment = isinstance(to, Timestamp) and to.utc
    wall = Timestamp(Unit.MICROS, utc=False)
    if zone is None or moment == to_moment or not (_has_clock(child.type) and _has_clock(to)):
        return BoundCast(child, to, safe)
    if moment:
        shown = on_wall(child, zone)
        return shown if isinstance(to, Timestamp) else BoundCast(shown, to, safe)
    if child.type != STRING:
        read = child if isinstance(child.type, Timestamp) else BoundCast(child, wall, safe)
        return at_moment(read, zone)
    if isinstance(child, BoundLiteral) and isinstance(child.value, str):
        try:
            return BoundLiteral(read_text(child.value, to), to)
        except ValueError:
            return BoundCast(child, to, safe)
    raise InvalidExpression(
        f"{describe(child)} cannot be read as times of the zone {zone}.",
        next_step="Compare it with a text, or read it in UTC (SET TIME ZONE 'UTC').",
        zone=zone,
    )


def on_wall(moment: BoundExpression, zone: str) -> BoundExpression:
    """Return what clocks of a zone show at a moment."""
    named = BoundLiteral(zone, STRING)
    return BoundFunction(WALL_CLOCK, (moment, named), Timestamp(Unit.MICROS, utc=False))


def at_moment(wall: BoundExpression, zone: str) -> BoundExpression:
    """Return the moment at which clocks of a zone show this."""
    return BoundFunction(MOMENT_AT, (wall, BoundLiteral(zone, STRING)), TIMESTAMP)


def _has_clock(kind: DataType) -> bool:
    return kind in (DATE, STRING) or isinstance(kind, Timestamp)


def is_null(side: BoundExpression) -> bool:
    """Tell whether an expression is the constant NULL, which has every type."""
    return isinstance(side, BoundLiteral) and side.value is None


def describe(side: BoundExpression) -> str:
    """Name an expression and its type for an error message."""
    match side:
        case BoundReference(path, kind):
            return f"column {'.'.join(path)} of type {kind}"
        case BoundLiteral(value):
            return f"the constant {value!r}"
        case _:
            return f"an expression of type {side.type}"


def fit_constant(
    other: BoundExpression, constant: BoundLiteral
) -> tuple[BoundExpression, BoundLiteral]:
    """Return ``other`` and the constant in one type, widening ``other`` only where it must be."""
    if constant.value is None:
        return other, BoundLiteral(None, other.type)
    try:
        fitted = _fit(constant, constant.value, other)
    except OverflowError:  # a moment that lies outside the calendar once it is in UTC
        fitted = None
    if fitted is None:
        raise InvalidExpression(
            f"{describe(other)} cannot be compared with {constant.value!r}.",
            next_step=f"Give a value that reads as {other.type}, or convert one side with CAST.",
            column=".".join(other.path) if isinstance(other, BoundReference) else None,
            type=str(other.type),
            value=constant.value,
        )
    return fitted


Fitted = tuple[BoundExpression, BoundLiteral] | None


def _fit(constant: BoundLiteral, value: Value, other: BoundExpression) -> Fitted:
    if isinstance(value, str):
        return _fit_text(value, other)
    if other.type == STRING:
        return _fit_text_column(constant, value, other)
    for accepts, fit in _FITS:
        if accepts(other.type):
            return fit(value, other)
    return None


def _fit_text(text: str, other: BoundExpression) -> Fitted:
    try:
        return other, BoundLiteral(read_text(text, other.type), _finest(other.type))
    except ValueError:
        return None


def _fit_text_column(constant: BoundLiteral, value: Value, other: BoundExpression) -> Fitted:
    if isinstance(value, bytes):
        return BoundCast(other, BINARY), constant
    if isinstance(value, PyDecimal):
        # The digits of a text are not known, those of a decimal type are fixed.
        return BoundCast(other, DOUBLE), BoundLiteral(float(value), DOUBLE)
    to = LONG if constant.type == INT else constant.type
    return cast_in_zone(other, to), BoundLiteral(value, to)


def _fit_boolean(value: Value, other: BoundExpression) -> Fitted:
    return (other, BoundLiteral(value, BOOLEAN)) if isinstance(value, bool) else None


def _fit_integer(value: Value, other: BoundExpression) -> Fitted:
    if isinstance(value, bool) or not isinstance(value, (int, float, PyDecimal)):
        return None
    if not isinstance(value, int) and not math.isfinite(value):
        return BoundCast(other, DOUBLE), BoundLiteral(float(value), DOUBLE)
    if value != int(value):
        if isinstance(value, float):
            return BoundCast(other, DOUBLE), BoundLiteral(value, DOUBLE)
        return _fit_decimal(value, converted(other, as_decimal(other.type)))
    whole = int(value)
    low, high = INT_RANGE if other.type == INT else LONG_RANGE
    if low <= whole <= high:
        return other, BoundLiteral(whole, other.type)
    if LONG_RANGE[0] <= whole <= LONG_RANGE[1]:
        return BoundCast(other, LONG), BoundLiteral(whole, LONG)
    if isinstance(value, float):
        return BoundCast(other, DOUBLE), BoundLiteral(value, DOUBLE)
    return _fit_decimal(whole, converted(other, as_decimal(other.type)))


def _fit_float(value: Value, other: BoundExpression) -> Fitted:
    number = _as_double(value)
    if number is None:
        return None
    if math.isnan(number) or narrow_float(number) == number:
        return other, BoundLiteral(number, FLOAT)
    return BoundCast(other, DOUBLE), BoundLiteral(number, DOUBLE)


def _fit_double(value: Value, other: BoundExpression) -> Fitted:
    number = _as_double(value)
    return None if number is None else (other, BoundLiteral(number, DOUBLE))


def _as_double(value: Value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, PyDecimal)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _fit_decimal(value: Value, other: BoundExpression) -> Fitted:
    if isinstance(value, bool) or not isinstance(value, (int, float, PyDecimal)):
        return None
    if not math.isfinite(value):
        return converted(other, DOUBLE), BoundLiteral(float(value), DOUBLE)
    # repr, so that 0.1 meets the decimal 0.1 and not its binary neighbour
    exact = PyDecimal(repr(value)) if isinstance(value, float) else PyDecimal(value)
    assert isinstance(other.type, Decimal)
    try:
        fitted = fit_decimal(exact, other.type)
    except ValueError:
        fitted = None
    if fitted is not None and fitted == exact:
        return other, BoundLiteral(fitted, other.type)
    if isinstance(value, float):
        return converted(other, DOUBLE), BoundLiteral(value, DOUBLE)
    own = type_of(exact)
    wider = wider_decimal(other.type, own) if isinstance(own, Decimal) else None
    if wider is None:
        raise InvalidExpression(
            f"{describe(other)} and {exact} cannot be compared in {MAX_DIGITS} digits.",
            next_step="Write the constant with fewer digits, or as a floating-point number.",
            type=str(other.type),
            value=value,
        )
    return converted(other, wider), BoundLiteral(fit_decimal(exact, wider), wider)


def _fit_bytes(value: Value, other: BoundExpression) -> Fitted:
    return (other, BoundLiteral(value, other.type)) if isinstance(value, bytes) else None


def _fit_date(value: Value, other: BoundExpression) -> Fitted:
    if not isinstance(value, date):
        return None
    if not isinstance(value, datetime):
        return other, BoundLiteral(value, DATE)
    moment = in_zone(value, utc=True)
    day = in_zone(moment, utc=False).date()
    if moment == at_midnight(day, utc=True):
        return other, BoundLiteral(day, DATE)
    return cast_in_zone(other, TIMESTAMP), BoundLiteral(moment, TIMESTAMP)


def _fit_moment(value: Value, other: BoundExpression) -> Fitted:
    assert isinstance(other.type, Timestamp)
    if not isinstance(value, date):
        return None
    utc = other.type.utc
    moment = in_zone(value, utc=utc) if isinstance(value, datetime) else at_midnight(value, utc=utc)
    return other, BoundLiteral(moment, _finest(other.type))


def _fit_time(value: Value, other: BoundExpression) -> Fitted:
    if not isinstance(value, time) or value.tzinfo is not None:
        return None
    return other, BoundLiteral(value, _finest(other.type))


def _finest(of: DataType) -> DataType:
    """A constant keeps its microseconds beside a column of milliseconds."""
    return replace(of, unit=Unit.MICROS) if isinstance(of, (Timestamp, Time)) else of


def _same_but_unit(one: DataType, other: DataType) -> bool:
    if isinstance(one, Timestamp) and isinstance(other, Timestamp):
        return one.utc == other.utc
    return isinstance(one, Time) and isinstance(other, Time)


_FITS: tuple[tuple[Callable[[DataType], bool], Callable[[Value, BoundExpression], Fitted]], ...] = (
    (lambda t: t == BOOLEAN, _fit_boolean),
    (is_integer, _fit_integer),
    (lambda t: t == FLOAT, _fit_float),
    (lambda t: t == DOUBLE, _fit_double),
    (lambda t: isinstance(t, Decimal), _fit_decimal),
    (lambda t: t == BINARY or isinstance(t, Fixed), _fit_bytes),
    (lambda t: t == DATE, _fit_date),
    (lambda t: isinstance(t, Timestamp), _fit_moment),
    (lambda t: isinstance(t, Time), _fit_time),
)
