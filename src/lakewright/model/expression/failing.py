"""Where an expression has no value though everything that it is computed from is there.

Expressions answer NULL where they cannot compute: what a filter cannot tell it does not keep. A
value that is stored must not be lost that way, so statements that store rows ask here first.
"""

from collections.abc import Sequence

from lakewright.model.expression.bound import (
    BoundAnd,
    BoundArithmetic,
    BoundCase,
    BoundCast,
    BoundExpression,
    BoundFunction,
    BoundIsNull,
    BoundLiteral,
    BoundNegate,
    BoundNot,
    BoundOr,
    joined,
)
from lakewright.model.expression.coerce import is_null
from lakewright.model.expression.nodes import Operator
from lakewright.model.expression.types import is_floating, is_integer
from lakewright.model.schema import BOOLEAN, DATE, DOUBLE, INT, LONG, STRING, DataType, Timestamp

_FALSE = BoundLiteral(False, BOOLEAN)
#: Functions whose answer may be out of range.
_MAY_FAIL = frozenset({"abs", "round", "floor", "ceil"})


def failing(bound: BoundExpression) -> BoundExpression | None:
    """Return the condition under which computing a value fails; None where it cannot.

    A branch of CASE that is not taken, and an option of ``coalesce`` behind one that has a value,
    do not fail; nor does what AND or OR need not look at.
    """
    match bound:
        case BoundCast(child, to, safe):
            own = not safe and not _always_converts(child.type, to)
            return _any([failing(child), _no_value(bound, (child,)) if own else None])
        case BoundArithmetic(op, left, right, kind):
            own = kind != DOUBLE or op in (Operator.DIVIDE, Operator.MODULO)
            lost = _no_value(bound, (left, right)) if own else None
            return _any([failing(left), failing(right), lost])
        case BoundNegate(child, kind):
            return _any([failing(child), _no_value(bound, (child,)) if kind == LONG else None])
        case BoundFunction("coalesce", arguments):
            return _first_of(arguments)
        case BoundFunction(name, arguments):
            lost = _no_value(bound, arguments) if name in _MAY_FAIL else None
            return _any([*(failing(a) for a in arguments), lost])
        case BoundCase(branches, otherwise):
            return _branches(branches, otherwise)
        case BoundAnd(left, right):
            return _any([failing(left), _unless(BoundNot(left), failing(right))])
        case BoundOr(left, right):
            return _any([failing(left), _unless(left, failing(right))])
        case _:
            return _any([failing(child) for child in bound.children()])


def _no_value(bound: BoundExpression, given: Sequence[BoundExpression]) -> BoundExpression | None:
    if any(is_null(one) for one in given):
        return None
    there = [BoundNot(BoundIsNull(one)) for one in given if not isinstance(one, BoundLiteral)]
    return joined([BoundIsNull(bound), *there], BoundAnd)


def _any(conditions: Sequence[BoundExpression | None]) -> BoundExpression | None:
    found = [one for one in conditions if one is not None]
    return joined(found, BoundOr) if found else None


def _unless(decided: BoundExpression, condition: BoundExpression | None) -> BoundExpression | None:
    """Return a condition that does not matter where another is true."""
    return None if condition is None else BoundCase(((decided, _FALSE),), condition, BOOLEAN)


def _first_of(options: Sequence[BoundExpression]) -> BoundExpression | None:
    rest = _first_of(options[1:]) if len(options) > 1 else None
    return _any([failing(options[0]), _unless(BoundNot(BoundIsNull(options[0])), rest)])


def _branches(
    branches: Sequence[tuple[BoundExpression, BoundExpression]], otherwise: BoundExpression
) -> BoundExpression | None:
    if not branches:
        return failing(otherwise)
    test, value = branches[0]
    taken, rest = failing(value), _branches(branches[1:], otherwise)
    if taken is None and rest is None:
        return failing(test)
    chosen = BoundCase(((test, taken or _FALSE),), rest or _FALSE, BOOLEAN)
    return _any([failing(test), chosen])


def _always_converts(source: DataType, to: DataType) -> bool:
    if to in (STRING, source):
        return True
    if is_integer(source):
        return (source == INT and to == LONG) or is_floating(to)
    if source == DATE or isinstance(source, Timestamp):
        return to == DATE
    return is_floating(source) and to == DOUBLE
