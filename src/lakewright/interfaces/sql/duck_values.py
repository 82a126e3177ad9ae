"""Functions of numbers, choices among values, conversions."""

from sqlglot import exp

from lakewright.interfaces.sql.duck_calls import Call, Handler, plain
from lakewright.interfaces.sql.duck_casts import call, cast, number, plain_cast, text
from lakewright.interfaces.sql.duck_kinds import Kind, Value, joined
from lakewright.interfaces.sql.duck_numbers import computed, negative, rounded, whole
from lakewright.model.expression.types import is_floating, is_nested, is_numeric
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
)


def _conversion(kind: DataType) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        return cast(made.args[0], kind, strict=made.strict)

    return handle


def _abs(made: Call) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if kind is None or not is_numeric(kind):
        raise made.refuse()
    return Value(plain_cast(call("abs", made.args[0].node), kind), kind)


def _round(made: Call) -> Value:
    made.sized(1, 2)
    digits = made.count(1) if len(made.args) == 2 else 0
    return rounded(made.args[0], digits, strict=made.strict)


def _whole(made: Call) -> Value:
    made.sized(1)
    name = "floor" if made.name == "floor" else "ceil"
    return whole(name, made.args[0], strict=made.strict)


def _mod(made: Call) -> Value:
    made.sized(2)
    return computed(exp.Mod, *made.args, strict=made.strict)


def _pmod(made: Call) -> Value:
    made.sized(2)
    kinds = {arg.kind for arg in made.args}
    if not kinds <= {INT, LONG}:
        raise made.refuse()
    rest = computed(exp.Mod, *made.args, strict=made.strict)
    again = computed(exp.Add, rest, made.args[1], strict=made.strict)
    low = exp.LT(this=exp.paren(rest.node), expression=number(0))
    wrapped = computed(exp.Mod, again, made.args[1], strict=made.strict)
    picked = exp.Case(ifs=[exp.If(this=low, true=wrapped.node)], default=rest.node.copy())
    return Value(picked, rest.kind)


def _logarithm(duck: str) -> Handler:
    def handle(made: Call) -> Value:
        made.sized(1)
        given = made.get(0, DOUBLE)
        # Of 0 and less there is none, and Spark says null.
        above = exp.or_(
            exp.GT(this=exp.paren(given), expression=number(0)), call("isnan", given.copy())
        )
        inner = exp.Case(ifs=[exp.If(this=above, true=given.copy())])
        return Value(call(duck, inner), DOUBLE)

    return handle


def _sqrt(made: Call) -> Value:
    made.sized(1)
    given = made.get(0, DOUBLE)
    below = exp.LT(this=exp.paren(given), expression=number(0))
    nan = plain_cast(text("nan"), DOUBLE)
    return Value(
        exp.Case(ifs=[exp.If(this=below, true=nan)], default=call("sqrt", given.copy())), DOUBLE
    )


def _isnan(made: Call) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if kind is None or not is_floating(kind):
        raise made.refuse()
    return Value(call("coalesce", call("isnan", made.args[0].node), exp.false()), BOOLEAN)


def _nanvl(made: Call) -> Value:
    made.sized(2)
    one, other = made.get(0, DOUBLE), made.get(1, DOUBLE)
    chosen = exp.If(this=call("isnan", one.copy()), true=other)
    return Value(exp.Case(ifs=[chosen], default=one), DOUBLE)


def alike(values: list[Value], *, strict: bool) -> tuple[list[exp.Expression], Kind]:
    """Convert values to the type that holds all of them."""
    kind: Kind = None
    for value in values:
        kind = joined(kind, value.kind)
    return [cast(value, kind, strict=strict).node for value in values], kind


def _choice(duck: str) -> Handler:
    def handle(made: Call) -> Value:
        if not made.args:
            raise made.refuse()
        nodes, kind = alike(list(made.args), strict=made.strict)
        if duck != "coalesce" and kind is not None and is_nested(kind):
            raise made.refuse()
        return Value(call(duck, *nodes), kind)

    return handle


def _nvl2(made: Call) -> Value:
    made.sized(3)
    nodes, kind = alike(list(made.args[1:]), strict=made.strict)
    absent = exp.Is(this=exp.paren(made.args[0].node), expression=exp.Null())
    return Value(exp.Case(ifs=[exp.If(this=absent, true=nodes[1])], default=nodes[0]), kind)


def _nullif(made: Call) -> Value:
    made.sized(2)
    nodes, _ = alike(list(made.args), strict=made.strict)
    same = exp.EQ(this=exp.paren(nodes[0]), expression=exp.paren(nodes[1]))
    node = made.args[0].node.copy()
    return Value(
        exp.Case(ifs=[exp.If(this=same, true=exp.Null())], default=node), made.args[0].kind
    )


def _isnull(made: Call) -> Value:
    made.sized(1)
    absent = exp.Is(this=exp.paren(made.args[0].node), expression=exp.Null())
    return Value(absent if made.name == "isnull" else exp.not_(absent), BOOLEAN)


_D = DOUBLE

VALUES: dict[str, Handler] = {
    "abs": _abs,
    "negative": lambda made: negative(made.args[0]),
    "round": _round,
    **dict.fromkeys(("floor", "ceil", "ceiling"), _whole),
    "mod": _mod,
    "pmod": _pmod,
    "sqrt": _sqrt,
    **dict.fromkeys(("power", "pow"), plain("pow", (_D, _D), _D)),
    **dict.fromkeys(("sign", "signum"), plain("lw_sign", (_D,), _D)),
    "exp": plain("exp", (_D,), _D),
    **dict.fromkeys(("ln", "log"), _logarithm("ln")),
    "log10": _logarithm("log10"),
    "log2": _logarithm("log2"),
    "isnan": _isnan,
    "nanvl": _nanvl,
    **dict.fromkeys(("coalesce", "nvl", "ifnull"), _choice("coalesce")),
    "greatest": _choice("greatest"),
    "least": _choice("least"),
    "nvl2": _nvl2,
    "nullif": _nullif,
    **dict.fromkeys(("isnull", "isnotnull"), _isnull),
    "int": _conversion(INT),
    "bigint": _conversion(LONG),
    "double": _conversion(DOUBLE),
    "float": _conversion(FLOAT),
    "string": _conversion(STRING),
    "boolean": _conversion(BOOLEAN),
    "date": _conversion(DATE),
    "timestamp": _conversion(TIMESTAMP),
    "binary": _conversion(BINARY),
}
