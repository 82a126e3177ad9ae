"""Outcomes: which of true, false and NULL a condition may have, given the ranges of columns."""

from bisect import bisect_left
from collections.abc import Callable
from typing import TypeAlias

from lakewright.model.expression.bound import (
    BoundAnd,
    BoundCase,
    BoundComparison,
    BoundExpression,
    BoundFunction,
    BoundIn,
    BoundIsNull,
    BoundLike,
    BoundLiteral,
    BoundNot,
    BoundOr,
    BoundReference,
    BoundTextMatch,
)
from lakewright.model.expression.nodes import Comparator, TextTest
from lakewright.model.expression.patterns import prefix
from lakewright.model.expression.spans import Ranges, Scalar, Span, SpanOf, compile_span
from lakewright.model.expression.types import is_floating
from lakewright.model.schema import BOOLEAN

TRUE, FALSE, NULL = 1, 2, 4

#: A set of outcomes as bits; 0 when there are no rows at all.
Outcomes: TypeAlias = int
OutcomesOf: TypeAlias = Callable[[Ranges], Outcomes]


def compile_condition(bound: BoundExpression) -> OutcomesOf:
    """Return the closure that gives the outcomes of a condition."""
    match bound:
        case BoundAnd(left, right):
            return _pair(compile_condition(left), compile_condition(right), _AND)
        case BoundOr(left, right):
            return _pair(compile_condition(left), compile_condition(right), _OR)
        case BoundNot(child):
            inner = compile_condition(child)
            return lambda ranges: _NOT[inner(ranges)]
        case BoundComparison(op, BoundReference() as column, BoundLiteral() as constant):
            return _column_comparison(op, column, constant)
        case BoundComparison(op, BoundLiteral() as constant, BoundReference() as column):
            return _column_comparison(op.mirrored, column, constant)
        case BoundComparison(op, left, right):
            return _comparison(op, _value(left), _value(right))
        case BoundIn(child, values, or_null):
            return _membership(_value(child), values, or_null)
        case BoundTextMatch(test, child, BoundLiteral(str() as text)):
            return _text_match(test, compile_span(child), text)
        case BoundTextMatch(_, _, BoundLiteral(None)):
            return lambda ranges: NULL
        case BoundLike(child, pattern, escape):
            return _like(compile_span(child), prefix(pattern, escape))
        case BoundIsNull(child):
            return _null_test(_value(child))
        case BoundCase(branches, otherwise):
            return _any_of([compile_condition(v) for v in (*(v for _, v in branches), otherwise)])
        case BoundFunction("isnan"):
            return lambda ranges: TRUE | FALSE
        case _ if bound.type == BOOLEAN:
            return _of_span(compile_span(bound))
        case _:
            raise AssertionError(f"not a condition: {bound!r}")


def _value(bound: BoundExpression) -> SpanOf:
    """Spans of conditions too: a comparison may stand where a boolean value does."""
    if bound.type != BOOLEAN or not bound.children():
        return compile_span(bound)
    outcomes = compile_condition(bound)

    def span(ranges: Ranges) -> Span:
        known = outcomes(ranges)
        return Span(not known & FALSE, bool(known & TRUE), bool(known & NULL), bool(known & 3))

    return span


def _of_span(inner: SpanOf) -> OutcomesOf:
    def outcomes(ranges: Ranges) -> Outcomes:
        span = inner(ranges)
        result = NULL if span.nulls else 0
        if span.ordinary:
            result |= TRUE if span.high is not False else 0
            result |= FALSE if span.low is not True else 0
        return result

    return outcomes


def _pair(left: OutcomesOf, right: OutcomesOf, table: list[list[Outcomes]]) -> OutcomesOf:
    return lambda ranges: table[left(ranges)][right(ranges)]


def _any_of(options: list[OutcomesOf]) -> OutcomesOf:
    def outcomes(ranges: Ranges) -> Outcomes:
        result = 0
        for option in options:
            result |= option(ranges)
        return result

    return outcomes


def _comparison(op: Comparator, left: SpanOf, right: SpanOf) -> OutcomesOf:
    judge = _JUDGES[op]

    def outcomes(ranges: Ranges) -> Outcomes:
        one, other = left(ranges), right(ranges)
        result = NULL if one.nulls or other.nulls else 0
        return result | judge(one, other) if one.present and other.present else result

    def null_safe(ranges: Ranges) -> Outcomes:
        one, other = left(ranges), right(ranges)
        result = judge(one, other) if one.present and other.present else 0
        if one.nulls and other.nulls:
            result |= TRUE
        if (one.nulls and other.present) or (one.present and other.nulls):
            result |= FALSE
        return result

    return null_safe if op is Comparator.NULL_SAFE_EQ else outcomes


def _column_comparison(
    op: Comparator, column: BoundReference, constant: BoundLiteral
) -> OutcomesOf:
    """The commonest condition, without the detour over spans where the bounds are known."""
    path, value, floating = column.path, constant.value, is_floating(column.type)
    general = _comparison(op, compile_span(column), compile_span(constant))
    judge = _BOUNDED.get(op)
    if judge is None or value is None or value != value:
        return general

    def outcomes(ranges: Ranges) -> Outcomes:
        known = ranges.get(path)
        if known is None:
            return TRUE | FALSE | NULL
        low, high, nulls = known.low, known.high, known.nulls
        if low is None or high is None or known.rows == 0 or not low <= high:
            return general(ranges)
        if floating and known.nans != 0:
            return general(ranges)
        result = judge(low, high, value)
        if nulls == 0:
            return result
        if nulls is not None and known.rows is not None and nulls >= known.rows:
            return NULL
        return result | NULL

    return outcomes


# Outcomes of `value in [low, high] <op> constant`, both bounds known.
_BOUNDED: dict[Comparator, Callable[[Scalar, Scalar, Scalar], Outcomes]] = {
    Comparator.LT: lambda low, high, c: (TRUE if low < c else 0) | (FALSE if high >= c else 0),
    Comparator.LE: lambda low, high, c: (TRUE if low <= c else 0) | (FALSE if high > c else 0),
    Comparator.GT: lambda low, high, c: (TRUE if high > c else 0) | (FALSE if low <= c else 0),
    Comparator.GE: lambda low, high, c: (TRUE if high >= c else 0) | (FALSE if low < c else 0),
    Comparator.EQ: lambda low, high, c: (
        FALSE if c < low or c > high else TRUE if low == high else TRUE | FALSE
    ),
    Comparator.NE: lambda low, high, c: (
        TRUE if c < low or c > high else FALSE if low == high else TRUE | FALSE
    ),
}


def _equal(one: Span, other: Span) -> Outcomes:
    result = TRUE if one.nans and other.nans else 0
    if (one.nans and other.ordinary) or (one.ordinary and other.nans):
        result |= FALSE
    if one.ordinary and other.ordinary:
        if _at_most(one.low, other.high) and _at_most(other.low, one.high):
            result |= TRUE
        if not (one.constant and other.constant and one.low == other.low):
            result |= FALSE
    return result


def _unequal(one: Span, other: Span) -> Outcomes:
    return _NOT[_equal(one, other)]


def _less(one: Span, other: Span) -> Outcomes:
    result = FALSE if one.nans else 0
    if one.ordinary and other.nans:
        result |= TRUE
    if one.ordinary and other.ordinary:
        if _below(one.low, other.high):
            result |= TRUE
        if _at_most(other.low, one.high):
            result |= FALSE
    return result


def _at_least(one: Span, other: Span) -> Outcomes:
    return _NOT[_less(one, other)]


def _greater(one: Span, other: Span) -> Outcomes:
    return _less(other, one)


def _at_most_outcomes(one: Span, other: Span) -> Outcomes:
    return _NOT[_less(other, one)]


def _at_most(low: Scalar, high: Scalar) -> bool:
    return low is None or high is None or bool(low <= high)


def _below(low: Scalar, high: Scalar) -> bool:
    return low is None or high is None or bool(low < high)


_JUDGES: dict[Comparator, Callable[[Span, Span], Outcomes]] = {
    Comparator.EQ: _equal,
    Comparator.NULL_SAFE_EQ: _equal,
    Comparator.NE: _unequal,
    Comparator.LT: _less,
    Comparator.GE: _at_least,
    Comparator.GT: _greater,
    Comparator.LE: _at_most_outcomes,
}


def _membership(child: SpanOf, values: tuple[Scalar, ...], or_null: bool) -> OutcomesOf:
    with_nan = any(v != v for v in values)
    ordered = sorted(v for v in values if v == v)
    # With NULL among the options, what is not found is NULL, not false.
    missing = NULL if or_null else FALSE

    def outcomes(ranges: Ranges) -> Outcomes:
        span = child(ranges)
        result = NULL if span.nulls else 0
        if span.nans:
            result |= TRUE if with_nan else missing
        if span.ordinary:
            at = 0 if span.low is None else bisect_left(ordered, span.low)
            found = at < len(ordered) and _at_most(ordered[at], span.high)
            result |= TRUE if found else missing
            if found and not span.constant:
                result |= missing
        return result

    return outcomes


def _text_match(test: TextTest, child: SpanOf, text: str) -> OutcomesOf:
    if test is TextTest.PREFIX:
        return _starts_with(child, text)
    holds: Callable[[str], bool] = (
        (lambda value: value.endswith(text))
        if test is TextTest.SUFFIX
        else (lambda value: text in value)
    )

    def outcomes(ranges: Ranges) -> Outcomes:
        span = child(ranges)
        result = NULL if span.nulls else 0
        if not span.ordinary:
            return result
        if span.constant:
            return result | (TRUE if holds(span.low) else FALSE)
        return result | TRUE | FALSE

    return outcomes


def _starts_with(child: SpanOf, text: str) -> OutcomesOf:
    size = len(text)

    def outcomes(ranges: Ranges) -> Outcomes:
        span = child(ranges)
        result = NULL if span.nulls else 0
        if not span.ordinary:
            return result
        low, high = span.low, span.high
        if (low is None or low[:size] <= text) and (high is None or high >= text):
            result |= TRUE
        if low is None or high is None or low[:size] != text or high[:size] != text:
            result |= FALSE
        return result

    return outcomes


def _like(child: SpanOf, start: str) -> OutcomesOf:
    begins = _starts_with(child, start)

    def outcomes(ranges: Ranges) -> Outcomes:
        result = begins(ranges)
        return result | FALSE if result & TRUE else result

    return outcomes


def _null_test(child: SpanOf) -> OutcomesOf:
    def outcomes(ranges: Ranges) -> Outcomes:
        span = child(ranges)
        return (TRUE if span.nulls else 0) | (FALSE if span.present else 0)

    return outcomes


def _not(outcomes: Outcomes) -> Outcomes:
    turned = TRUE if outcomes & FALSE else 0
    turned |= FALSE if outcomes & TRUE else 0
    return turned | outcomes & NULL


def _and(one: Outcomes, other: Outcomes) -> Outcomes:
    if not one or not other:
        return 0
    both = one | other
    result = TRUE if one & other & TRUE else 0
    result |= FALSE if both & FALSE else 0
    maybe = (one & NULL and other & (NULL | TRUE)) or (other & NULL and one & TRUE)
    return result | (NULL if maybe else 0)


_NOT = [_not(o) for o in range(8)]
_AND = [[_and(a, b) for b in range(8)] for a in range(8)]
_OR = [[_not(_and(_not(a), _not(b))) for b in range(8)] for a in range(8)]
