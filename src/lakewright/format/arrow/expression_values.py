"""Bound expressions as closures over Arrow kernels.

A closure takes the function that finds columns, and works on arrays; a lazy one works on
``pyarrow.compute.Expression`` too, which only the plain nodes can.
"""

from collections.abc import Callable
from math import isnan
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.expression_arithmetic import arithmetic, opposite
from lakewright.format.arrow.expression_casts import cast_kernel, is_plain_cast
from lakewright.format.arrow.expression_functions import function_kernel
from lakewright.format.arrow.expression_types import NO_ANSWER, Datum, kernel_type, refused, scalar
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
from lakewright.model.expression.nodes import Comparator, TextTest
from lakewright.model.expression.patterns import regex
from lakewright.model.expression.types import is_floating
from lakewright.model.schema import BOOLEAN, DataType

__all__ = ["Columns", "Datum", "Evaluate", "compile_value", "kernel_type"]

Columns: TypeAlias = Callable[[BoundReference], Datum]
Evaluate: TypeAlias = Callable[[Columns], Datum]

_TRUE = pa.scalar(True)


def compile_value(bound: BoundExpression, *, lazy: bool) -> Evaluate:
    """Return the closure of an expression; ``Unsupported`` names what has no exact kernel."""
    match bound:
        case BoundLiteral(value, kind):
            constant = scalar(value, kind)
            # Kernels take an expression only where the first argument is one.
            given = pc.scalar(constant) if lazy else constant
            return lambda columns: given
        case BoundReference():
            return lambda columns: columns(bound)
        case BoundAnd(left, right):
            return _pair(pc.and_kleene, left, right, lazy=lazy)
        case BoundOr(left, right):
            return _pair(pc.or_kleene, left, right, lazy=lazy)
        case BoundNot(child):
            return _one(pc.invert, child, lazy=lazy)
        case BoundComparison(op, left, right):
            return _pair(_comparison(op, left, right), left, right, lazy=lazy)
        case BoundIn(child, values, or_null):
            return _one(_membership(values, child.type, or_null), child, lazy=lazy)
        case BoundLike(child, pattern, escape):
            expression = regex(pattern, escape)
            return _one(lambda x: pc.match_substring_regex(x, pattern=expression), child, lazy=lazy)
        case BoundTextMatch(test, child, BoundLiteral(str() as text)):
            kernel = _TEXT_TESTS[test]
            return _one(lambda x: kernel(x, pattern=text), child, lazy=lazy)
        case BoundTextMatch(_, _, BoundLiteral(None)):
            return compile_value(BoundLiteral(None, BOOLEAN), lazy=lazy)
        case BoundTextMatch(test):
            raise refused(f"{test.value} with a text that is not a constant")
        case BoundIsNull(child):
            return _one(pc.is_null, child, lazy=lazy)
        case BoundCast(child, to):
            if lazy and not is_plain_cast(child.type, to):
                raise refused("CAST in a scan")
            return _one(cast_kernel(child.type, to), child, lazy=lazy)
        case BoundArithmetic() | BoundNegate() | BoundFunction() | BoundCase():
            if lazy:
                raise refused("a computed value in a scan")
            return _computed(bound)
        case _:
            assert_never(bound)


def _computed(bound: BoundArithmetic | BoundNegate | BoundFunction | BoundCase) -> Evaluate:
    match bound:
        case BoundArithmetic(op, left, right, kind):
            return _pair(arithmetic(op, left.type, right.type, kind), left, right, lazy=False)
        case BoundNegate(child, kind):
            return _one(opposite(kind), child, lazy=False)
        case BoundFunction(name, arguments, kind):
            kernel = function_kernel(name, arguments, kind)
            inner = [compile_value(a, lazy=False) for a in arguments]
            return lambda columns: kernel(*(evaluate(columns) for evaluate in inner))
        case BoundCase(branches, otherwise):
            return _case(branches, otherwise)
        case _:
            assert_never(bound)


def _one(kernel: Callable[[Datum], Datum], child: BoundExpression, *, lazy: bool) -> Evaluate:
    inner = compile_value(child, lazy=lazy)
    return lambda columns: kernel(inner(columns))


def _pair(
    kernel: Callable[[Datum, Datum], Datum],
    left: BoundExpression,
    right: BoundExpression,
    *,
    lazy: bool,
) -> Evaluate:
    one, other = compile_value(left, lazy=lazy), compile_value(right, lazy=lazy)
    return lambda columns: kernel(one(columns), other(columns))


def _case(
    branches: tuple[tuple[BoundExpression, BoundExpression], ...], otherwise: BoundExpression
) -> Evaluate:
    compiled = [
        (compile_value(test, lazy=False), compile_value(value, lazy=False))
        for test, value in branches
    ]
    rest = compile_value(otherwise, lazy=False)

    def evaluate(columns: Columns) -> Datum:
        result = rest(columns)
        for test, value in reversed(compiled):
            # A condition that is NULL does not hold.
            holds = pc.coalesce(test(columns), pa.scalar(False))
            result = pc.if_else(holds, value(columns), result)
        return result

    return evaluate


def _comparison(
    op: Comparator, left: BoundExpression, right: BoundExpression
) -> Callable[[Datum, Datum], Datum]:
    kernel = _ordered(op, left, right) if is_floating(left.type) else _COMPARE[op]
    return _null_safe(kernel) if op is Comparator.NULL_SAFE_EQ else kernel


def _null_safe(equal: Callable[[Datum, Datum], Datum]) -> Callable[[Datum, Datum], Datum]:
    def kernel(one: Datum, other: Datum) -> Datum:
        missing, absent = pc.is_null(one), pc.is_null(other)
        either, both = pc.or_kleene(missing, absent), pc.and_kleene(missing, absent)
        return pc.if_else(either, both, equal(one, other))

    return kernel


def _may_be_nan(side: BoundExpression) -> bool:
    if isinstance(side, BoundLiteral):
        return isinstance(side.value, float) and isnan(side.value)
    return True


def _ordered(
    op: Comparator, left: BoundExpression, right: BoundExpression
) -> Callable[[Datum, Datum], Datum]:
    """Compare floating-point numbers as SQL orders them: NaN is equal to NaN and above the rest.

    Arrow answers false to every comparison with NaN but ``!=``; what is missing is added, and
    where a side is a constant number, nothing is missing on that side.
    """
    nan_left, nan_right = _may_be_nan(left), _may_be_nan(right)
    match op:
        case Comparator.NE:
            equal = _ordered(Comparator.EQ, left, right)
            return lambda one, other: pc.invert(equal(one, other))
        case Comparator.EQ | Comparator.NULL_SAFE_EQ:
            if not (nan_left and nan_right):
                return pc.equal  # type: ignore[no-any-return]
            return lambda one, other: pc.or_kleene(
                pc.equal(one, other), pc.and_kleene(pc.is_nan(one), pc.is_nan(other))
            )
        case Comparator.LE:
            return _below(pc.less_equal, nan_right)
        case Comparator.LT if not nan_right:
            return pc.less  # type: ignore[no-any-return]
        case Comparator.LT:
            return lambda one, other: pc.or_kleene(
                pc.less(one, other),
                pc.and_kleene(pc.is_nan(other), pc.invert(pc.is_nan(one))),
            )
        case Comparator.GT | Comparator.GE:
            turned = _ordered(op.mirrored, right, left)
            return lambda one, other: turned(other, one)
        case _:
            assert_never(op)


def _below(kernel: Any, nan_right: bool) -> Callable[[Datum, Datum], Datum]:  # noqa: ANN401
    if not nan_right:
        return kernel  # type: ignore[no-any-return]
    # `and not null` keeps NULL on the left NULL beside a NaN on the right.
    return lambda one, other: pc.or_kleene(
        kernel(one, other), pc.if_else(pc.is_null(one), NO_ANSWER, pc.is_nan(other))
    )


def _membership(values: tuple[Any, ...], kind: DataType, or_null: bool) -> Callable[[Datum], Datum]:
    options = [v for v in values if v == v]
    with_nan = len(options) < len(values)
    if is_floating(kind) and 0 in options:
        options = [*options, 0.0, -0.0]  # equal numbers, but not for the set
    known = pa.array(options, kernel_type(kind))

    def kernel(tested: Datum) -> Datum:
        found = pc.is_in(tested, value_set=known)
        if with_nan:
            found = pc.or_kleene(found, pc.is_nan(tested))
        if or_null:
            return pc.if_else(found, _TRUE, NO_ANSWER)
        return pc.if_else(pc.is_null(tested), NO_ANSWER, found)

    return kernel


_COMPARE: dict[Comparator, Callable[[Datum, Datum], Datum]] = {
    Comparator.EQ: pc.equal,
    Comparator.NULL_SAFE_EQ: pc.equal,
    Comparator.NE: pc.not_equal,
    Comparator.LT: pc.less,
    Comparator.LE: pc.less_equal,
    Comparator.GT: pc.greater,
    Comparator.GE: pc.greater_equal,
}
_TEXT_TESTS: dict[TextTest, Any] = {
    TextTest.PREFIX: pc.starts_with,
    TextTest.SUFFIX: pc.ends_with,
    TextTest.INFIX: pc.match_substring,
}
