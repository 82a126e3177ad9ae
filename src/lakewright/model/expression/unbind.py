"""The way back from the bound form, for printing and for binding to another schema."""

from typing import assert_never

from lakewright.model.expression import nodes
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
)
from lakewright.model.expression.nodes import Expression


def unbind(bound: BoundExpression) -> Expression:
    """Return the expression as it could have been written, conversions included."""
    match bound:
        case BoundLiteral(value):
            return nodes.Literal(value)
        case BoundReference(path):
            return nodes.Reference(path)
        case BoundComparison(op, left, right):
            return nodes.Comparison(op, unbind(left), unbind(right))
        case BoundAnd(left, right):
            return nodes.And(unbind(left), unbind(right))
        case BoundOr(left, right):
            return nodes.Or(unbind(left), unbind(right))
        case BoundNot(child):
            return nodes.Not(unbind(child))
        case BoundIn(child, values, or_null):
            options = (*values, None) if or_null else values
            return nodes.In(unbind(child), tuple(nodes.Literal(v) for v in options))
        case BoundLike(child, pattern, escape):
            return nodes.Like(unbind(child), pattern, escape)
        case BoundTextMatch(test, left, right):
            return nodes.TextMatch(test, unbind(left), unbind(right))
        case BoundIsNull(child):
            return nodes.IsNull(unbind(child))
        case BoundCast(child, to, safe):
            return nodes.Cast(unbind(child), to, safe)
        case BoundArithmetic(op, left, right):
            return nodes.Arithmetic(op, unbind(left), unbind(right))
        case BoundNegate(child):
            return nodes.Negate(unbind(child))
        case BoundFunction(name, arguments):
            return nodes.Function(name, tuple(unbind(a) for a in arguments))
        case BoundCase(branches, otherwise):
            return nodes.Case(
                tuple((unbind(test), unbind(value)) for test, value in branches), unbind(otherwise)
            )
        case _:
            assert_never(bound)
