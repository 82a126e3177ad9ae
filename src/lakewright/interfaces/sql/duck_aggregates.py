"""Aggregates and functions over windows that DuckDB computes as Spark does."""

from collections.abc import Callable

from sqlglot import exp

from lakewright.interfaces.sql.duck_calls import Call
from lakewright.interfaces.sql.duck_casts import call, cast, number, plain_cast
from lakewright.interfaces.sql.duck_kinds import Value, adjusted, only_spark
from lakewright.interfaces.sql.duck_numbers import scaled, unscaled
from lakewright.model.expression.types import is_floating, is_integer, is_nested, is_numeric
from lakewright.model.schema import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    List,
)

#: Puts an aggregate of DuckDB under the FILTER and OVER that it was written with.
Under = Callable[[exp.Expression], exp.Expression]
Aggregate = Callable[[Call, Under, bool], Value]

_DIGITS = 38


def _apply(duck: str, nodes: list[exp.Expression], *, distinct: bool) -> exp.Expression:
    return call(duck, *([exp.Distinct(expressions=nodes)] if distinct else nodes))


def _count(made: Call, under: Under, distinct: bool) -> Value:
    nodes = [arg.node for arg in made.args]
    if len(nodes) == 1 or not nodes:
        return Value(under(_apply("count", nodes, distinct=distinct)), LONG)
    # Rows in which something is null do not count.
    absent = exp.or_(*(exp.Is(this=exp.paren(n.copy()), expression=exp.Null()) for n in nodes))
    row = exp.Case(ifs=[exp.If(this=absent, true=exp.Null())], default=call("row", *nodes))
    return Value(under(_apply("count", [row], distinct=distinct)), LONG)


def _sum(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(1)
    value = made.args[0]
    kind: DataType
    match value.kind:
        case Decimal(precision, scale):
            kind = adjusted(min(precision + 10, _DIGITS), scale)
        case known if known is not None and is_integer(known):
            kind = LONG
        case known if known is not None and (is_floating(known) or known == STRING):
            kind = DOUBLE
        case _:
            raise made.refuse()
    node = cast(value, DOUBLE, strict=made.strict).node if kind == DOUBLE else value.node
    return Value(plain_cast(under(_apply("sum", [node], distinct=distinct)), kind), kind)


def _avg(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(1)
    value = made.args[0]
    if isinstance(value.kind, Decimal):
        kind = adjusted(value.kind.precision + 4, value.kind.scale + 4)
        total = Decimal(min(_DIGITS, value.kind.precision + 10), value.kind.scale)
        if total.precision + total.scale + 1 > _DIGITS or kind.scale < value.kind.scale:
            raise only_spark(f"avg of {value.kind} (convert to fewer digits first)")
        top = unscaled(under(_apply("sum", [value.node], distinct=distinct)), total)
        below = under(_apply("count", [value.node.copy()], distinct=distinct))
        return Value(scaled(top, kind.scale - value.kind.scale, below, kind), kind)
    node = made.get(0, DOUBLE)
    return Value(under(_apply("avg", [node], distinct=distinct)), DOUBLE)


def _same(duck: str) -> Aggregate:
    def handle(made: Call, under: Under, distinct: bool) -> Value:
        made.sized(1)
        kind = made.args[0].kind
        if kind is None or (duck in ("min", "max") and is_nested(kind)):
            raise made.refuse()
        return Value(under(_apply(duck, [made.args[0].node], distinct=distinct)), kind)

    return handle


def _logical(duck: str) -> Aggregate:
    def handle(made: Call, under: Under, distinct: bool) -> Value:
        made.sized(1)
        return Value(under(_apply(duck, [made.get(0, BOOLEAN)], distinct=distinct)), BOOLEAN)

    return handle


def _count_if(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(1)
    held = exp.Case(ifs=[exp.If(this=made.get(0, BOOLEAN), true=number(1))])
    if distinct:
        raise only_spark("count_if(DISTINCT …)")
    return Value(under(call("count", held)), LONG)


def _by(duck: str) -> Aggregate:
    def handle(made: Call, under: Under, distinct: bool) -> Value:
        made.sized(2)
        if distinct or any(arg.kind is None or is_nested(arg.kind) for arg in made.args):
            raise made.refuse()
        row = exp.Struct(
            expressions=[exp.PropertyEQ(this=exp.to_identifier("v"), expression=made.args[0].node)]
        )
        found = under(call(duck, row, made.args[1].node))
        return Value(call("struct_extract", found, exp.Literal.string("v")), made.args[0].kind)

    return handle


def _deviation(duck: str) -> Aggregate:
    def handle(made: Call, under: Under, distinct: bool) -> Value:
        made.sized(1)
        node = made.get(0, DOUBLE)
        return Value(under(_apply(duck, [node], distinct=distinct)), DOUBLE)

    return handle


def _collect(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(1)
    kind = made.args[0].kind
    if kind is None or is_nested(kind):
        raise made.refuse()
    once = distinct or made.name == "collect_set"
    whole = under(_apply("list", [made.args[0].node], distinct=once))
    return Value(call("lw_collected", whole), List(kind))


def _median(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(1)
    if distinct or made.args[0].kind is None or not is_numeric(made.args[0].kind):
        raise made.refuse()
    return Value(
        under(call("quantile_cont", made.get(0, DOUBLE), exp.Literal.number("0.5"))), DOUBLE
    )


def _percentile(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(2)
    place = made.args[1].node.unnest()
    written = place.this if isinstance(place, exp.Cast) else place
    kind = made.args[0].kind
    if distinct or kind is None or not is_numeric(kind) or not isinstance(written, exp.Literal):
        raise made.refuse()
    parts = made.get(0, DOUBLE), exp.Literal.number(str(written.this))
    return Value(under(call("quantile_cont", *parts)), DOUBLE)


def _ranking(duck: str, kind: DataType) -> Aggregate:
    def handle(made: Call, under: Under, distinct: bool) -> Value:
        if distinct:
            raise made.refuse()
        made.sized(0)
        return Value(plain_cast(under(call(duck)), kind), kind)

    return handle


def _ntile(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(1)
    return Value(plain_cast(under(call("ntile", made.get(0, INT))), INT), INT)


def _neighbour(made: Call, under: Under, distinct: bool) -> Value:
    made.sized(1, 2, 3)
    value = made.args[0]
    nodes = [value.node]
    if len(made.args) > 1:
        nodes.append(number(made.count(1)))
    if len(made.args) > 2:
        nodes.append(cast(made.args[2], value.kind, strict=made.strict).node)
    return Value(under(call(made.name, *nodes)), value.kind)


AGGREGATES: dict[str, Aggregate] = {
    "count": _count,
    "sum": _sum,
    **dict.fromkeys(("avg", "mean"), _avg),
    "min": _same("min"),
    "max": _same("max"),
    **dict.fromkeys(("first", "first_value"), _same("first")),
    **dict.fromkeys(("last", "last_value"), _same("last")),
    "any_value": _same("first"),
    **dict.fromkeys(("bool_and", "every"), _logical("bool_and")),
    **dict.fromkeys(("bool_or", "any", "some"), _logical("bool_or")),
    "count_if": _count_if,
    "max_by": _by("arg_max"),
    "min_by": _by("arg_min"),
    **dict.fromkeys(("stddev", "stddev_samp", "std"), _deviation("stddev_samp")),
    "stddev_pop": _deviation("stddev_pop"),
    **dict.fromkeys(("variance", "var_samp"), _deviation("var_samp")),
    "var_pop": _deviation("var_pop"),
    **dict.fromkeys(("collect_list", "collect_set", "array_agg"), _collect),
    "median": _median,
    "percentile": _percentile,
}

#: Functions that stand over a window alone.
WINDOWS: dict[str, Aggregate] = {
    "row_number": _ranking("row_number", INT),
    "rank": _ranking("rank", INT),
    "dense_rank": _ranking("dense_rank", INT),
    "percent_rank": _ranking("percent_rank", DOUBLE),
    "cume_dist": _ranking("cume_dist", DOUBLE),
    "ntile": _ntile,
    **dict.fromkeys(("lag", "lead"), _neighbour),
}
