"""Arithmetic on Arrow arrays; overflow and division by zero are NULL."""

from collections.abc import Callable
from decimal import Decimal as PyDecimal

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.expression_types import Datum, kernel_type, refused
from lakewright.model.expression.nodes import Operator
from lakewright.model.expression.types import LONG_RANGE
from lakewright.model.schema import DOUBLE, LONG, DataType, Decimal

_NO_LONG = pa.scalar(None, pa.int64())
_ZERO, _ONE = pa.scalar(0, pa.int64()), pa.scalar(1, pa.int64())
_MINUS_ONE = pa.scalar(-1, pa.int64())
_LEAST = pa.scalar(LONG_RANGE[0], pa.int64())

Binary = Callable[[Datum, Datum], Datum]


def arithmetic(op: Operator, left: DataType, right: DataType, result: DataType) -> Binary:
    """Return the kernel for two longs, two doubles or two decimals."""
    if result == LONG:
        return _LONG[op]
    if result == DOUBLE:
        if op is Operator.MODULO:
            raise refused("% of floating-point numbers")
        return _DOUBLE[op]
    assert isinstance(left, Decimal) and isinstance(right, Decimal) and isinstance(result, Decimal)
    return _decimal(op, left, right, result)


def opposite(kind: DataType) -> Callable[[Datum], Datum]:
    """Return the kernel that turns the sign."""
    if kind == LONG:
        return lambda x: pc.if_else(pc.equal(x, _LEAST), _NO_LONG, pc.negate(x))
    return pc.negate  # type: ignore[no-any-return]


def absolute(kind: DataType) -> Callable[[Datum], Datum]:
    """Return the kernel of the absolute value."""
    if kind == LONG:
        return lambda x: pc.if_else(pc.equal(x, _LEAST), _NO_LONG, pc.abs(x))
    return pc.abs  # type: ignore[no-any-return]


def _add(one: Datum, other: Datum) -> Datum:
    # The sum of two numbers of one sign must keep it.
    total = pc.add(one, other)
    flipped = pc.bit_wise_and(pc.bit_wise_xor(one, total), pc.bit_wise_xor(other, total))
    return pc.if_else(pc.less(flipped, _ZERO), _NO_LONG, total)


def _subtract(one: Datum, other: Datum) -> Datum:
    rest = pc.subtract(one, other)
    flipped = pc.bit_wise_and(pc.bit_wise_xor(one, other), pc.bit_wise_xor(one, rest))
    return pc.if_else(pc.less(flipped, _ZERO), _NO_LONG, rest)


def _multiply(one: Datum, other: Datum) -> Datum:
    product = pc.multiply(one, other)
    zero = pc.equal(one, _ZERO)
    # Arrow answers 0 to the least long divided by -1, so that case is seen as lost, too.
    lost = pc.not_equal(pc.divide(product, pc.if_else(zero, _ONE, one)), other)
    return pc.if_else(pc.and_(pc.invert(zero), lost), _NO_LONG, product)


def _modulo(one: Datum, other: Datum) -> Datum:
    """The rest has the sign of the dividend."""
    trivial = pc.or_(pc.equal(other, _ZERO), pc.equal(other, _MINUS_ONE))
    divisor = pc.if_else(trivial, _ONE, other)
    rest = pc.subtract(one, pc.multiply(pc.divide(one, divisor), divisor))
    return pc.if_else(pc.equal(other, _ZERO), _NO_LONG, rest)


def _divide(one: Datum, other: Datum) -> Datum:
    nothing = pa.scalar(None, pa.float64())
    return pc.if_else(pc.equal(other, pa.scalar(0.0)), nothing, pc.divide(one, other))


_LONG: dict[Operator, Binary] = {
    Operator.ADD: _add,
    Operator.SUBTRACT: _subtract,
    Operator.MULTIPLY: _multiply,
    Operator.MODULO: _modulo,
}
_DOUBLE: dict[Operator, Binary] = {
    Operator.ADD: pc.add,
    Operator.SUBTRACT: pc.subtract,
    Operator.MULTIPLY: pc.multiply,
    Operator.DIVIDE: _divide,
}


def _decimal(op: Operator, left: Decimal, right: Decimal, result: Decimal) -> Binary:
    """Only where the result keeps all digits that SQL's rules give it."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    into = kernel_type(result)
    if op in (Operator.ADD, Operator.SUBTRACT) and whole + scale + 1 == result.precision:
        kernel = pc.add if op is Operator.ADD else pc.subtract
        return lambda one, other: kernel(one, other).cast(into)
    if op is Operator.MULTIPLY and left.precision + right.precision + 1 == result.precision:
        return lambda one, other: pc.multiply(one, other).cast(into)
    if op is Operator.DIVIDE and result.scale == max(6, left.scale + right.precision + 1):
        return _decimal_division(left, right, result)
    raise refused(f"{op.value} of {left} and {right}")


def _decimal_division(left: Decimal, right: Decimal, result: Decimal) -> Binary:
    """Divide to one digit more than asked for, cut there, then round half up: that is exact."""
    # Arrow gives a quotient the scale left + (digits of right before the point) + 1.
    scale = result.scale - right.precision + right.scale
    dividend = pa.decimal256(left.precision - left.scale + scale, scale)
    divisor = pa.decimal256(right.precision, right.scale)
    zero, nothing = pa.scalar(PyDecimal(0), divisor), pa.scalar(None, divisor)
    into = kernel_type(result)
    # The result may have fewer digits before the point than the largest quotient: NULL.
    wide = pa.decimal256(76, result.scale)
    limit = PyDecimal((0, (1,), result.precision - result.scale))
    top, too_long = pa.scalar(limit, wide), pa.scalar(None, wide)

    def kernel(over: Datum, under: Datum) -> Datum:
        under = under.cast(divisor)
        quotient = pc.divide(over.cast(dividend), pc.if_else(pc.equal(under, zero), nothing, under))
        rounded = pc.round(quotient, ndigits=result.scale, round_mode="half_towards_infinity")
        value = rounded.cast(wide)
        return pc.if_else(pc.less(pc.abs(value), top), value, too_long).cast(into)

    return kernel
