"""Conversions as Spark makes them, in DuckDB's words."""

from sqlglot import exp

from lakewright.interfaces.sql.duck_kinds import Kind, Value, duck_type, only_spark
from lakewright.model.expression.types import is_floating, is_integer, is_numeric
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    DataType,
    Decimal,
    Timestamp,
)


def call(name: str, *parts: exp.Expression) -> exp.Expression:
    """Call a function of DuckDB by its own name."""
    return exp.Anonymous(this=name, expressions=list(parts))


def number(value: int) -> exp.Expression:
    """Return a whole number."""
    if value < 0:
        return exp.paren(exp.Neg(this=exp.Literal.number(-value)))
    return exp.Literal.number(value)


def text(value: str) -> exp.Expression:
    """Return a text."""
    return exp.Literal.string(value)


def plain_cast(node: exp.Expression, kind: DataType, *, safe: bool = False) -> exp.Expression:
    """Convert as DuckDB does; ``safe`` gives null where there is no value."""
    form = exp.TryCast if safe else exp.Cast
    return form(this=node, to=exp.DataType.build(duck_type(kind), dialect="duckdb"))


def must(given: exp.Expression, made: exp.Expression, told: str, *, strict: bool) -> exp.Expression:
    """Fail, if ``strict``, where something was given and nothing could be made of it."""
    if not strict:
        return made
    lost = exp.and_(
        exp.Is(this=exp.paren(made), expression=exp.Null()),
        exp.not_(exp.Is(this=exp.paren(given.copy()), expression=exp.Null())),
    )
    return exp.Case(ifs=[exp.If(this=lost, true=call("error", text(told)))], default=made.copy())


def local(node: exp.Expression) -> exp.Expression:
    """Return a moment without its zone, as the clocks of UTC show it."""
    return plain_cast(node, Timestamp(TIMESTAMP.unit, utc=False))


def moment(node: exp.Expression) -> exp.Expression:
    """Return what the clocks of UTC show as a moment."""
    return plain_cast(node, TIMESTAMP)


def cast(value: Value, to: Kind, *, strict: bool) -> Value:
    """Convert by Spark's ANSI rules; what has no value is null, or fails if ``strict``."""
    given = value.kind
    if to is None or given == to:
        return value
    if given is None:
        return Value(plain_cast(value.node, to), to)
    made = _made(value.node, given, to)
    if made is None:
        raise only_spark(f"CAST of {given} as {to}")
    if _always(given, to):
        return Value(made, to)
    if isinstance(to, Decimal) and is_floating(given):
        # NaN and infinity are null as decimals, by all rules.
        finite = call("lw_number", plain_cast(value.node, STRING))
        return Value(must(finite, made, f"Cannot convert a {given} to {to}", strict=strict), to)
    return Value(must(value.node, made, f"Cannot convert a {given} to {to}", strict=strict), to)


def _always(given: DataType, to: DataType) -> bool:
    """Whether every value has one of the other type."""
    if to in (STRING, BINARY) or {given, to} == {DATE, TIMESTAMP}:
        return True
    return (is_numeric(given) or given == BOOLEAN) and (is_floating(to) or to == BOOLEAN)


def _made(node: exp.Expression, given: DataType, to: DataType) -> exp.Expression | None:
    if to == STRING:
        return _as_text(node, given)
    if given == STRING:
        return _of_text(node, to)
    if isinstance(given, Timestamp):
        return _of_moment(node, given, to)
    if to == TIMESTAMP:
        return _as_moment(node, given)
    if given == BOOLEAN and (is_integer(to) or is_floating(to)):
        return plain_cast(node, to)
    if not is_numeric(given):
        return None
    if to == BOOLEAN:
        return exp.NEQ(this=exp.paren(node), expression=number(0))
    if is_integer(to):
        whole = node if is_integer(given) else call("trunc", node)
        return plain_cast(whole, to, safe=True)
    if isinstance(to, Decimal) and is_floating(given):
        # By the digits that are written, as Java has them, and not by those of the binary number.
        written = plain_cast(node, STRING)
        return plain_cast(call("lw_number", written), to, safe=True)
    if is_floating(to):
        return plain_cast(node, to)
    return plain_cast(node, to, safe=True) if isinstance(to, Decimal) else None


def _as_text(node: exp.Expression, given: DataType) -> exp.Expression | None:
    if is_floating(given):
        return call("lw_text", node)
    if isinstance(given, Timestamp):
        return plain_cast(local(node) if given.utc else node, STRING)
    if given == BINARY:
        return call("decode", node)
    if is_numeric(given) or given in (BOOLEAN, DATE):
        return plain_cast(node, STRING)
    return None


def _of_text(node: exp.Expression, to: DataType) -> exp.Expression | None:
    if is_integer(to):
        return plain_cast(call("lw_whole", node), to, safe=True)
    if to == DOUBLE:
        return call("lw_double", node)
    if to == FLOAT:
        return plain_cast(call("lw_double", node), FLOAT)
    if to == BOOLEAN:
        return call("lw_boolean", node)
    if to == DATE:
        return call("lw_date", node)
    if to == TIMESTAMP:
        return moment(call("lw_moment", node))
    if to == BINARY:
        return call("encode", node)
    return plain_cast(call("lw_number", node), to, safe=True) if isinstance(to, Decimal) else None


def _of_moment(node: exp.Expression, given: Timestamp, to: DataType) -> exp.Expression | None:
    if to == DATE:
        return plain_cast(local(node) if given.utc else node, DATE)
    if isinstance(to, Timestamp):
        return plain_cast(node, to)
    if not given.utc:
        return None
    micros = call("epoch_us", node)
    if is_integer(to):
        return plain_cast(call("lw_floor_div", micros, number(1_000_000)), to, safe=True)
    if to == DOUBLE:
        return exp.Div(this=plain_cast(micros, DOUBLE), expression=exp.Literal.number("1e6"))
    return None


def _as_moment(node: exp.Expression, given: DataType) -> exp.Expression | None:
    if given == DATE:
        return moment(plain_cast(node, Timestamp(TIMESTAMP.unit, utc=False)))
    if is_integer(given):
        return moment(call("lw_at", node))
    return None
