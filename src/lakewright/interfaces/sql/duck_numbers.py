"""Arithmetic as Spark computes it, in DuckDB's words."""

from collections.abc import Callable
from decimal import Decimal as Exact

from sqlglot import exp

from lakewright.interfaces.sql.duck_casts import call, cast, must, number, plain_cast, text
from lakewright.interfaces.sql.duck_kinds import (
    Value,
    adjusted,
    number_kind,
    only_spark,
    product_kind,
    quotient_kind,
    rest_kind,
    sum_kind,
)
from lakewright.model.expression.types import is_floating, is_integer, is_numeric
from lakewright.model.schema import DOUBLE, FLOAT, INT, LONG, STRING, DataType, Decimal

_DIGITS = 38
_SIGNS: dict[type[exp.Expression], tuple[str, Callable[[Decimal, Decimal], Decimal]]] = {
    exp.Add: ("+", sum_kind),
    exp.Sub: ("-", sum_kind),
    exp.Mul: ("*", product_kind),
    exp.Mod: ("%", rest_kind),
}


def computed(sign: type[exp.Expression], left: Value, right: Value, *, strict: bool) -> Value:
    """Return ``+``, ``-``, ``*``, ``/`` or ``%`` of two numbers."""
    left, right = (_as_number(one, other, strict) for one, other in ((left, right), (right, left)))
    one, other = left.kind, right.kind
    if one is None or other is None:
        known = one or other
        kind = DOUBLE if sign is exp.Div and not isinstance(known, Decimal) else known
        if kind is None or isinstance(kind, Decimal):
            raise only_spark("arithmetic with a bare NULL")
        return Value(plain_cast(exp.Null(), kind), kind)
    if is_floating(one) or is_floating(other):
        kind = FLOAT if sign is not exp.Div and _in_floats(one, other) else DOUBLE
        return _fast(sign, left, right, kind, strict=strict)
    if isinstance(one, Decimal) or isinstance(other, Decimal):
        return _exact(sign, left, right, strict=strict)
    if sign is exp.Div:
        return _fast(sign, left, right, DOUBLE, strict=strict)
    return _fast(sign, left, right, LONG if LONG in (one, other) else INT, strict=strict)


def _in_floats(one: DataType, other: DataType) -> bool:
    return {one, other} <= {FLOAT}


def _as_number(value: Value, other: Value, strict: bool) -> Value:
    if value.kind is None or is_numeric(value.kind):
        return value
    if value.kind == STRING:
        # Beside a whole number a text is one, beside anything else it is a double.
        kind = LONG if other.kind is not None and is_integer(other.kind) else DOUBLE
        return cast(value, kind, strict=strict)
    raise only_spark(f"arithmetic with {value.kind}")


def _fast(
    sign: type[exp.Expression], left: Value, right: Value, kind: DataType, *, strict: bool
) -> Value:
    one: exp.Expression = exp.paren(cast(left, kind, strict=strict).node)
    other: exp.Expression = exp.paren(cast(right, kind, strict=strict).node)
    if sign in (exp.Div, exp.Mod):
        other = divisor(one, other, strict=strict)
    # Written as it is: a division of two doubles is what both mean by "/".
    made = _operation(sign, one, other)
    return Value(plain_cast(made, kind), kind)


def _operation(
    sign: type[exp.Expression], one: exp.Expression, other: exp.Expression
) -> exp.Expression:
    if sign is exp.Div:
        return exp.Div(this=one, expression=other, typed=False, safe=True)
    return sign(this=one, expression=other)


def divisor(one: exp.Expression, other: exp.Expression, *, strict: bool) -> exp.Expression:
    """Return a divisor that is never 0: null, or an error where there is something to divide."""
    constant = other.unnest()
    if isinstance(constant, exp.Literal) and constant.is_number and float(constant.this) != 0:
        return other
    if not strict:
        return call("nullif", other, number(0))
    nothing = exp.and_(
        exp.EQ(this=exp.paren(other), expression=number(0)),
        exp.not_(exp.Is(this=exp.paren(one.copy()), expression=exp.Null())),
    )
    error = call("error", text("Division by zero"))
    # DuckDB divides by 0 without a word, whatever the dividend: 0 is never handed to it.
    return exp.paren(
        exp.Case(
            ifs=[exp.If(this=nothing, true=error)],
            default=call("nullif", other.copy(), number(0)),
        )
    )


def _exact(sign: type[exp.Expression], left: Value, right: Value, *, strict: bool) -> Value:
    one, other = number_kind(left), number_kind(right)
    if sign is exp.Div:
        return _quotient(left, right, one, other, strict=strict)
    kind = _SIGNS[sign][1](one, other)
    # DuckDB computes decimals of few digits in few: in many it computes all of them whole.
    sides: list[exp.Expression] = [
        exp.paren(plain_cast(plain_cast(left.node, one), Decimal(_DIGITS, one.scale))),
        exp.paren(plain_cast(right.node, other)),
    ]
    if sign is exp.Mod:
        sides[1] = divisor(sides[0], sides[1], strict=strict)
    return Value(plain_cast(sign(this=sides[0], expression=sides[1]), kind), kind)


def _quotient(left: Value, right: Value, one: Decimal, other: Decimal, *, strict: bool) -> Value:
    kind = quotient_kind(one, other)
    shift = kind.scale + other.scale - one.scale
    if one.precision + shift > _DIGITS or one.precision + one.scale + 1 > _DIGITS:
        raise only_spark(
            f"a division of {one} by {other} (convert to fewer digits first, such as DECIMAL(18,2))"
        )
    top, below = unscaled(left.node, one), unscaled(right.node, other)
    below = exp.paren(divisor(left.node, below, strict=strict))
    return Value(scaled(top, shift, below, kind), kind)


def unscaled(node: exp.Expression, kind: Decimal) -> exp.Expression:
    """Return the digits of a decimal as one whole number."""
    exact = plain_cast(node, kind)
    whole = exp.Mul(this=exp.paren(exact), expression=_power(kind.scale)) if kind.scale else exact
    return exp.Cast(this=whole, to=_huge())


def scaled(top: exp.Expression, shift: int, below: exp.Expression, kind: Decimal) -> exp.Expression:
    """Divide whole numbers into a decimal: halves are rounded away from 0."""
    lifted = exp.paren(
        exp.Mul(this=exp.paren(top), expression=exp.Cast(this=_power(shift), to=_huge()))
    )
    rounded = call("lw_rounded", lifted, exp.Cast(this=below, to=_huge()))
    digits = plain_cast(rounded, Decimal(_DIGITS, 0))
    if not kind.scale:
        return plain_cast(digits, kind)
    unit = plain_cast(text(f"{Exact(1).scaleb(-kind.scale):f}"), Decimal(kind.scale, kind.scale))
    return plain_cast(exp.Mul(this=exp.paren(digits), expression=unit), kind)


def _power(exponent: int) -> exp.Expression:
    return exp.Literal.number("1" + "0" * exponent)


def _huge() -> exp.DataType:
    return exp.DataType.build("HUGEINT", dialect="duckdb")


def whole_quotient(left: Value, right: Value, *, strict: bool) -> Value:
    """Return ``DIV``."""
    for side in (left, right):
        if side.kind is None or not is_integer(side.kind):
            raise only_spark(f"DIV of {left.kind} by {right.kind}")
    one, other = (exp.paren(cast(side, LONG, strict=strict).node) for side in (left, right))
    made = exp.IntDiv(this=one, expression=divisor(one, other, strict=strict))
    return Value(plain_cast(made, LONG), LONG)


def rounded(value: Value, digits: int, *, strict: bool) -> Value:
    """Return ``round``: halves go away from 0, by the digits that are written."""
    kind = value.kind
    if isinstance(kind, Decimal):
        if digits < 0:
            raise only_spark("round of a decimal to tens")
        scale = min(kind.scale, digits)
        to = adjusted(kind.precision - kind.scale + 1 + scale, scale)
        return Value(plain_cast(value.node, to), to)
    if kind is not None and is_integer(kind):
        if digits >= 0:
            return value
        return Value(plain_cast(call("round", value.node, number(digits)), kind), kind)
    if kind is None or not is_floating(kind) or not 0 <= digits <= 15:
        raise only_spark(f"round of {kind} to {digits} digits")
    near = plain_cast(plain_cast(value.node, STRING), Decimal(_DIGITS, digits), safe=True)
    far = exp.If(this=call("lw_far", value.node), true=value.node.copy())
    made = exp.Case(ifs=[far], default=plain_cast(near, DOUBLE))
    return Value(plain_cast(made, kind), kind)


def whole(name: str, value: Value, *, strict: bool) -> Value:
    """Return ``floor`` or ``ceil``."""
    kind = value.kind
    if isinstance(kind, Decimal):
        to = adjusted(kind.precision - kind.scale + (1 if kind.scale else 0), 0)
        return Value(plain_cast(call(name, value.node), to), to)
    if kind is None or not is_numeric(kind):
        raise only_spark(f"{name} of {kind}")
    if is_integer(kind):
        return Value(plain_cast(value.node, LONG), LONG)
    made = call("lw_long", call(name, plain_cast(value.node, DOUBLE)))
    return Value(must(value.node, made, f"{name} is no long", strict=strict), LONG)


def negative(value: Value) -> Value:
    """Return a number with the other sign."""
    if value.kind is None or not is_numeric(value.kind):
        raise only_spark(f"minus {value.kind}")
    return Value(exp.Neg(this=exp.paren(value.node)), value.kind)


def literal(node: exp.Literal) -> Value:
    """Return a number as it is written, with the type that Spark reads it as."""
    written = str(node.this).lower()
    if "e" in written:
        return Value(plain_cast(text(written), DOUBLE), DOUBLE)
    digits = Exact(written)
    if "." not in written:
        if digits < 2**31:
            return Value(node, INT)
        if digits < 2**63:
            return Value(node, LONG)
    _, places, exponent = digits.as_tuple()
    scale = -int(exponent)
    kind = Decimal(max(len(places), scale), scale)
    return Value(plain_cast(text(written), kind), kind)
