"""What a bound expression says about rows, without looking at any."""

from collections.abc import Collection, Iterator, Sequence
from math import isnan

from lakewright.model.expression.bound import (
    BoundAnd,
    BoundComparison,
    BoundExpression,
    BoundIn,
    BoundLiteral,
    BoundNode,
    BoundNot,
    BoundOr,
    BoundReference,
    Path,
    joined,
    walk,
)
from lakewright.model.expression.nodes import Comparator, Expression, Reference
from lakewright.model.expression.types import Value
from lakewright.model.schema import BOOLEAN


def conjuncts(bound: BoundExpression) -> tuple[BoundExpression, ...]:
    """Return the conditions that must all hold, from left to right."""
    return tuple(_conjuncts(bound))


def _conjuncts(bound: BoundExpression) -> Iterator[BoundExpression]:
    if isinstance(bound, BoundAnd):
        yield from _conjuncts(bound.left)
        yield from _conjuncts(bound.right)
    else:
        yield bound


def conjunction(parts: Sequence[BoundExpression]) -> BoundExpression | None:
    """Join conditions with AND; None where there are none (everything matches)."""
    return joined(parts, BoundAnd) if parts else None


def references(expression: Expression | BoundExpression) -> frozenset[Path]:
    """Return the paths of every column named, in either form of expression."""
    if isinstance(expression, BoundNode):
        return frozenset(n.path for n in walk(expression) if isinstance(n, BoundReference))
    return frozenset(_written_references(expression))


def _written_references(expression: Expression) -> Iterator[Path]:
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Reference):
            yield node.path
        waiting.extend(node.children())


def equal_values(bound: BoundExpression, path: Path) -> frozenset[Value] | None:
    """Return the values that the column has in every matching row, or None when it is open.

    The empty set says that no row can match. Zero and NaN of floating-point columns answer None:
    they have more than one bit pattern, so an index by hash would miss rows.
    """
    match bound:
        case BoundAnd(left, right):
            one, other = equal_values(left, path), equal_values(right, path)
            if one is None or other is None:
                return other if one is None else one
            return one & other
        case BoundOr(left, right):
            one, other = equal_values(left, path), equal_values(right, path)
            return None if one is None or other is None else one | other
        case BoundIn(BoundReference(named), values) if named == path:
            return _hashable(values)
        case BoundComparison(Comparator.EQ, BoundReference(named), BoundLiteral(value)):
            return _only(value) if named == path else None
        case BoundComparison(Comparator.EQ, BoundLiteral(value), BoundReference(named)):
            return _only(value) if named == path else None
        case BoundComparison(Comparator.NULL_SAFE_EQ, BoundReference(named), BoundLiteral(value)):
            return _hashable((value,)) if named == path and value is not None else None
        case BoundLiteral(value):
            return None if value is True else frozenset()
        case _:
            return None


def _only(value: Value) -> frozenset[Value] | None:
    return frozenset() if value is None else _hashable((value,))


def _hashable(values: tuple[Value, ...]) -> frozenset[Value] | None:
    if any(isinstance(v, float) and (v == 0 or isnan(v)) for v in values):
        return None
    return frozenset(values)


def partition_only(bound: BoundExpression, fields: Collection[str]) -> BoundExpression | None:
    """Return the weakest consequence of the condition that names only these top-level columns.

    Every row that satisfies ``bound`` satisfies it too; None when nothing follows. The two are
    equivalent when ``bound`` itself names no other column.
    """
    return _weakened(bound, frozenset(fields))


def _weakened(bound: BoundExpression, fields: frozenset[str]) -> BoundExpression | None:
    if all(path[0] in fields for path in references(bound)):
        return bound
    match bound:
        case BoundAnd(left, right):
            kept = [_weakened(left, fields), _weakened(right, fields)]
            return conjunction([part for part in kept if part is not None])
        case BoundOr(left, right):
            one, other = _weakened(left, fields), _weakened(right, fields)
            return None if one is None or other is None else BoundOr(one, other)
        case BoundNot(child):
            turned = negated(child)
            return None if turned == bound else _weakened(turned, fields)
        case _:
            return None


def negated(bound: BoundExpression) -> BoundExpression:
    """Return NOT of a condition with the NOT moved as far in as SQL's logic allows."""
    match bound:
        case BoundNot(child):
            return child
        case BoundAnd(left, right):
            return BoundOr(negated(left), negated(right))
        case BoundOr(left, right):
            return BoundAnd(negated(left), negated(right))
        case BoundComparison(op, left, right) if op in _OPPOSITE:
            return BoundComparison(_OPPOSITE[op], left, right)
        case BoundLiteral(bool() as value):
            return BoundLiteral(not value, BOOLEAN)
        case _:
            return BoundNot(bound)


# NULL on either side makes both the comparison and its opposite NULL, and floating-point
# numbers are in total order here, so each pair is exact.
_OPPOSITE = {
    Comparator.EQ: Comparator.NE,
    Comparator.NE: Comparator.EQ,
    Comparator.LT: Comparator.GE,
    Comparator.GE: Comparator.LT,
    Comparator.GT: Comparator.LE,
    Comparator.LE: Comparator.GT,
}
