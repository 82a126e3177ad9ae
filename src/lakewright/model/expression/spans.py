"""Spans: between which bounds the values of an expression lie, given those of its columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from lakewright.model.expression.bound import (
    BoundArithmetic,
    BoundCase,
    BoundCast,
    BoundExpression,
    BoundFunction,
    BoundLiteral,
    BoundNegate,
    BoundReference,
    Path,
)
from lakewright.model.expression.nodes import Operator
from lakewright.model.expression.types import LONG_RANGE, is_floating, is_integer
from lakewright.model.expression.values import at_midnight, in_zone, read_text
from lakewright.model.schema import (
    DATE,
    DOUBLE,
    LONG,
    STRING,
    DataType,
    Decimal,
    Timestamp,
)

#: A value of a column, in its Python form; within one column they are in order.
Scalar: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What is known of one column in one file, row group or partition.

    ``low`` and ``high`` bound every value that is neither NULL nor NaN (they need not occur, so a
    cut text is a bound if ``high`` was raised); None is unknown. Values are in the Python form of
    the column's type: moments as datetimes in UTC, wall-clock times without a zone.
    """

    low: Scalar = None
    high: Scalar = None
    nulls: int | None = None
    rows: int | None = None
    nans: int | None = None

    @classmethod
    def constant(cls, value: object, rows: int | None = None) -> "ColumnRange":
        """Return the range of a column that has one value, as a partition column has."""
        if value is None:
            return cls(nulls=1 if rows is None else rows, rows=1 if rows is None else rows)
        if value != value:
            return cls(nulls=0, rows=rows)
        return cls(value, value, nulls=0, rows=rows, nans=0)


Ranges: TypeAlias = Mapping[Path, ColumnRange]


class Span(NamedTuple):
    """Bounds of the ordinary values (None is open), and what else may occur."""

    low: Scalar = None
    high: Scalar = None
    nulls: bool = True
    ordinary: bool = True
    nans: bool = False

    @property
    def present(self) -> bool:
        """Whether anything but NULL may occur."""
        return self.ordinary or self.nans

    @property
    def constant(self) -> bool:
        """Whether all ordinary values are one and the same, and it is known."""
        return self.low is not None and self.high is not None and bool(self.low == self.high)


SpanOf: TypeAlias = Callable[[Ranges], Span]

NOTHING = Span(nulls=False, ordinary=False)
ONLY_NULL = Span(ordinary=False)


def anything(of: DataType) -> Span:
    """Return the span of which nothing is known."""
    return Span(nans=is_floating(of))


def span_of_range(known: ColumnRange | None, *, floating: bool) -> Span:
    """Read a column's statistics, distrusting what cannot be a bound."""
    if known is None:
        return Span(nans=floating)
    nulls, rows = known.nulls, known.rows
    if rows == 0:
        return NOTHING
    if nulls is not None and rows is not None and nulls >= rows:
        return ONLY_NULL
    low, high = known.low, known.high
    if low != low or high != high or (low is not None and high is not None and low > high):
        low = high = None
    return Span(low, high, nulls != 0, True, floating and known.nans != 0)


def compile_span(bound: BoundExpression) -> SpanOf:
    """Return the closure that gives the span of a value; what is not understood is open."""
    match bound:
        case BoundLiteral(value):
            fixed = _span_of_literal(value)
            return lambda ranges: fixed
        case BoundReference(path, kind):
            floating = is_floating(kind)
            return lambda ranges: span_of_range(ranges.get(path), floating=floating)
        case BoundCast(child, to):
            return _mapped(
                child, to, _cast_bound(child.type, to), only_constant=child.type == STRING
            )
        case BoundNegate(child, kind) if kind in (LONG, DOUBLE):
            return _negated(compile_span(child))
        case BoundArithmetic(op, left, right, kind) if kind in (LONG, DOUBLE):
            return _arithmetic(op, compile_span(left), compile_span(right), kind)
        case BoundFunction("coalesce", options):
            return _coalesced([compile_span(o) for o in options])
        case BoundCase(branches, otherwise):
            return _any_of([compile_span(v) for v in (*(v for _, v in branches), otherwise)])
        case BoundFunction(name, arguments, kind):
            return _function(name, arguments, kind)
        case _:
            unknown = anything(bound.type)
            return lambda ranges: unknown


def _span_of_literal(value: Scalar) -> Span:
    if value is None:
        return ONLY_NULL
    if value != value:
        return Span(nulls=False, ordinary=False, nans=True)
    return Span(value, value, nulls=False)


def _function(name: str, arguments: tuple[BoundExpression, ...], kind: DataType) -> SpanOf:
    match name, arguments:
        case "year", (argument,):
            return _mapped(argument, kind, lambda day: day.year)
        case (("month" | "day" | "hour" | "minute" | "second"), (argument,)):
            return _mapped(argument, kind, lambda when: getattr(when, name), only_constant=True)
        case "date_trunc", (BoundLiteral(str() as unit), argument):
            return _mapped(argument, kind, lambda when: truncated(when, unit))
        case "substring", (argument, BoundLiteral(0 | 1), BoundLiteral(int() as size)) if size > 0:
            # The beginning of a text keeps its place in the order of texts.
            return _mapped(argument, kind, lambda text: text[:size])
        case (("lower" | "upper"), (argument,)):
            return _mapped(argument, kind, lambda text: _cased(text, name), only_constant=True)
        case _:
            unknown = anything(kind)
            return lambda ranges: unknown


def _cased(text: str, name: str) -> str | None:
    if not text.isascii():
        return None
    return text.lower() if name == "lower" else text.upper()


Bound: TypeAlias = Callable[[Scalar], Scalar]


def _mapped(
    child: BoundExpression, to: DataType, apply: Bound | None, *, only_constant: bool = False
) -> SpanOf:
    """Carry the bounds through a function that keeps the order, or knows a constant's result."""
    unknown = anything(to)
    if apply is None:
        return lambda ranges: unknown
    inner = compile_span(child)
    floating = is_floating(to)

    def span(ranges: Ranges) -> Span:
        known = inner(ranges)
        if not known.ordinary and not known.nans:
            return known
        if only_constant and not known.constant:
            return Span(nans=floating)
        low = None if known.low is None else apply(known.low)
        high = None if known.high is None else apply(known.high)
        if only_constant and low is None:
            return Span(nans=floating)
        if low != low or high != high:
            return Span(nans=True)
        nans = floating and (known.nans or only_constant)
        return Span(low, high, known.nulls, known.ordinary, nans)

    return span


def _cast_bound(source: DataType, to: DataType) -> Bound | None:
    """Return how a bound changes in a conversion that keeps the order and never makes NULL."""
    if source == STRING:
        return lambda text: _read(text, to)
    if to == DOUBLE and (is_integer(source) or is_floating(source) or isinstance(source, Decimal)):
        return float
    if to == LONG and is_integer(source):
        return _same
    if isinstance(to, Decimal):
        whole = to.precision - to.scale
        if isinstance(source, Decimal):
            fits = source.scale <= to.scale and source.precision - source.scale <= whole
            return _same if fits else None
        return _same if is_integer(source) and whole >= (19 if source == LONG else 10) else None
    if isinstance(to, Timestamp) and source == DATE:
        utc = to.utc
        return lambda day: at_midnight(day, utc=utc)
    if isinstance(to, Timestamp) and isinstance(source, Timestamp):
        utc = to.utc
        return lambda moment: in_zone(moment, utc=utc)
    if to == DATE and isinstance(source, Timestamp):
        return lambda moment: in_zone(moment, utc=True).date()
    return None


def _same(value: Scalar) -> Scalar:
    return value


def _read(text: str, to: DataType) -> Scalar:
    try:
        return read_text(text, to)
    except ValueError:
        return None


def truncated(moment: datetime, unit: str) -> datetime:
    """Return the first moment of the year, quarter, …, second in which this one lies."""
    match unit:
        case "second":
            return moment.replace(microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case _:
            return _day_truncated(moment, unit)


def _day_truncated(moment: datetime, unit: str) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case _:
            return day.replace(month=1, day=1)


def _negated(inner: SpanOf) -> SpanOf:
    def span(ranges: Ranges) -> Span:
        known = inner(ranges)
        if not known.present:
            return known
        low = None if known.high is None else -known.high
        high = None if known.low is None else -known.low
        # The smallest long has no opposite: NULL.
        overflows = known.low is None or known.low <= LONG_RANGE[0]
        return Span(low, high, known.nulls or overflows, known.ordinary, known.nans)

    return span


def _arithmetic(op: Operator, left: SpanOf, right: SpanOf, kind: DataType) -> SpanOf:
    unknown = anything(kind)
    floating = is_floating(kind)

    def span(ranges: Ranges) -> Span:
        one, other = left(ranges), right(ranges)
        if not one.present or not other.present:
            return one if not one.present else other
        low, high = _result_bounds(op, one, other)
        if low is None and high is None:
            return unknown
        if low != low or high != high:
            return unknown
        # Overflow makes NULL, infinities make NaN.
        return Span(low, high, True, True, floating)

    return span


def _result_bounds(op: Operator, one: Span, other: Span) -> tuple[Scalar, Scalar]:
    """Bounds of sum and difference; floating-point rounding keeps the order, so they hold."""
    match op:
        case Operator.ADD:
            return _plus(one.low, other.low), _plus(one.high, other.high)
        case Operator.SUBTRACT:
            return _minus(one.low, other.high), _minus(one.high, other.low)
        case _:
            return None, None


def _plus(one: Scalar, other: Scalar) -> Scalar:
    return None if one is None or other is None else one + other


def _minus(one: Scalar, other: Scalar) -> Scalar:
    return None if one is None or other is None else one - other


def _any_of(options: list[SpanOf]) -> SpanOf:
    def span(ranges: Ranges) -> Span:
        return _union([option(ranges) for option in options])

    return span


def _coalesced(options: list[SpanOf]) -> SpanOf:
    def span(ranges: Ranges) -> Span:
        known = [option(ranges) for option in options]
        whole = _union(known)
        nulls = all(k.nulls for k in known)
        return Span(whole.low, whole.high, nulls, whole.ordinary, whole.nans)

    return span


def _union(spans: list[Span]) -> Span:
    ordinary = [s for s in spans if s.ordinary]
    low = high = None
    if ordinary and all(s.low is not None for s in ordinary):
        low = min(s.low for s in ordinary)
    if ordinary and all(s.high is not None for s in ordinary):
        high = max(s.high for s in ordinary)
    return Span(
        low,
        high,
        any(s.nulls for s in spans),
        bool(ordinary),
        any(s.nans for s in spans),
    )
