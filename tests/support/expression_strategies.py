"""Random rows, and random expressions that fit them.

The pools of values are small and full of edges, so that comparisons meet their equals often.
"""

import math
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal as PyDecimal
from typing import Any

from hypothesis import strategies as st

from lakewright.model.expression import nodes as n
from lakewright.model.expression.nodes import Comparator, Operator, TextTest
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
    Decimal,
    Field,
    Struct,
    Time,
    Timestamp,
    Unit,
)

MONEY = Decimal(10, 2)
WALL = Timestamp(Unit.MICROS, utc=False)
CLOCK = Time(Unit.MICROS)

SCHEMA = Struct(
    (
        Field("flag", BOOLEAN),
        Field("small", INT),
        Field("big", LONG),
        Field("narrow", FLOAT),
        Field("wide", DOUBLE),
        Field("name", STRING),
        Field("text", STRING),
        Field("raw", BINARY),
        Field("day", DATE),
        Field("at", TIMESTAMP),
        Field("wall", WALL),
        Field("clock", CLOCK),
        Field("money", MONEY),
        Field("inner", Struct((Field("x", INT), Field("deep", Struct((Field("y", STRING),)))))),
    )
)

_MOMENTS = [
    datetime(2026, 11, 1),
    datetime(2026, 11, 1, 5, 6, 7, 890000),
    datetime(2026, 12, 31, 23, 59, 59, 999999),
    datetime(1969, 12, 31, 23, 59, 59, 1),
    datetime(1970, 1, 1),
]
POOLS: dict[DataType, list[Any]] = {
    BOOLEAN: [True, False],
    INT: [-3, -1, 0, 1, 2, 7, 2**31 - 1, -(2**31)],
    LONG: [-3, -1, 0, 1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    FLOAT: [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5, 0.10000000149011612],
    DOUBLE: [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 1.5, 2.675, -2.5, 1e300, 1e-30],
    STRING: [
        "",
        "a",
        "ab",
        "abc",
        "b",
        "A_",
        "a%b",
        "é",
        "straße",
        "ΑΣ",
        " a ",
        "\U0001f600z",
        "a\nb",
    ],
    BINARY: [b"", b"\x00", b"a", b"ab", b"\xff\xfe"],
    DATE: [date(2026, 11, 1), date(2026, 12, 31), date(1969, 12, 31), date(2024, 2, 29)],
    TIMESTAMP: [m.replace(tzinfo=UTC) for m in _MOMENTS],
    WALL: _MOMENTS,
    CLOCK: [time(0), time(5, 6, 7), time(23, 59, 59, 999999)],
    MONEY: [PyDecimal(v) for v in ("0.00", "1.50", "-2.25", "99999999.99", "0.01")],
}
TEXTS = ["1", "-7", " 2 ", "1.5", "2e1", "NaN", "-inf", "x", "", "true", "No", "99999999999"]
TEXTS += ["2026-11-01", "2026-11-01 05:06:07.89", "2026-2-30", "2026-12-31T23:59:59+02:00", "2026"]

_COLUMNS: dict[DataType, list[n.Reference]] = {}
for _field in SCHEMA:
    if not isinstance(_field.type, Struct):
        _COLUMNS.setdefault(_field.type, []).append(n.Reference((_field.name,)))
_COLUMNS[INT].append(n.Reference(("inner", "x")))
_COLUMNS[STRING].append(n.Reference(("inner", "deep", "y")))


def nullable(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy, strategy, strategy)


def values(kind: DataType) -> st.SearchStrategy[Any]:
    return st.sampled_from(POOLS[kind])


_inner = nullable(
    st.fixed_dictionaries(
        {
            "x": nullable(values(INT)),
            "deep": nullable(st.fixed_dictionaries({"y": nullable(values(STRING))})),
        }
    )
)
rows: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        field.name: _inner
        if isinstance(field.type, Struct)
        else nullable(st.sampled_from(TEXTS))
        if field.name == "text"
        else nullable(values(field.type))
        for field in SCHEMA
    }
)


def _some_row(chance: random.Random) -> dict[str, Any]:
    def pick(pool: list[Any]) -> Any:
        return None if chance.random() < 0.15 else chance.choice(pool)

    row = {
        field.name: pick(TEXTS if field.name == "text" else POOLS[field.type])
        for field in SCHEMA
        if not isinstance(field.type, Struct)
    }
    deep = pick([{"y": pick(POOLS[STRING])}])
    return {**row, "inner": pick([{"x": pick(POOLS[INT]), "deep": deep}])}


_CHANCE = random.Random(64)
#: Many rows at once, the same every time: a condition is asked about all of them, which finds
#: more than drawing new rows for each condition would, and sooner.
SAMPLE: list[dict[str, Any]] = [_some_row(_CHANCE) for _ in range(64)]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3, *, computed: bool = True) -> n.Expression:
    """A boolean expression; without ``computed`` only columns meet constants."""
    shape = draw(st.integers(0, 9 if depth else 5))
    if shape >= 8:
        left, right = draw(_deeper(depth, computed)), draw(_deeper(depth, computed))
        return n.And(left, right) if shape == 8 else n.Or(left, right)
    if shape == 7:
        return n.Not(draw(_deeper(depth, computed)))
    if shape == 6:
        return n.IsNull(draw(_any_value(depth, computed)))
    if shape == 5:
        return draw(_text_conditions(depth, computed))
    if shape == 4:
        return draw(_constants_and_flags())
    return draw(_comparisons(depth, computed))


def _deeper(depth: int, computed: bool) -> st.SearchStrategy[n.Expression]:
    return conditions(depth - 1, computed=computed)


def _constants_and_flags() -> st.SearchStrategy[n.Expression]:
    return st.sampled_from(
        [n.Reference(("flag",)), n.Literal(True), n.Literal(False), n.Literal(None)]
    )


@st.composite
def conditions_on(draw: st.DrawFn, kind: DataType) -> n.Expression:
    """A short condition on columns of one type, so that few examples reach every edge of it."""

    def one() -> n.Expression:
        if kind == STRING and draw(st.integers(0, 2)) == 0:
            return draw(_text_conditions(0, False))
        if draw(st.integers(0, 9)) == 0:
            return n.IsNull(draw(st.sampled_from(_COLUMNS[kind])))
        return draw(_comparisons(0, False, kind))

    shape = draw(st.integers(0, 6))
    if shape == 0:
        return n.Not(n.And(one(), one()))
    if shape == 1:
        return n.Not(n.Or(one(), one()))
    if shape == 2:
        return n.And(one(), one())
    return n.Not(one()) if shape == 3 else one()


@st.composite
def _comparisons(
    draw: st.DrawFn, depth: int, computed: bool, of: DataType | None = None
) -> n.Expression:
    kind = of or draw(st.sampled_from(list(POOLS)))
    left = draw(operands(kind, depth - 1, computed=computed))
    shape = draw(st.integers(0, 5))
    if shape == 0:
        options = draw(st.lists(nullable(values(kind)), max_size=4))
        return n.In(left, tuple(n.Literal(o) for o in options))
    if shape == 1:
        low, high = draw(nullable(values(kind))), draw(nullable(values(kind)))
        return n.Between(left, n.Literal(low), n.Literal(high))
    right = (
        draw(operands(kind, depth - 1, computed=computed))
        if shape == 2
        else n.Literal(draw(nullable(values(kind))))
    )
    op = draw(st.sampled_from(list(Comparator)))
    return n.Comparison(op, *((right, left) if draw(st.booleans()) else (left, right)))


@st.composite
def _text_conditions(draw: st.DrawFn, depth: int, computed: bool) -> n.Expression:
    left = draw(operands(STRING, depth - 1, computed=computed))
    if draw(st.booleans()):
        piece = n.Literal(draw(nullable(values(STRING))))
        return n.TextMatch(draw(st.sampled_from(list(TextTest))), left, piece)
    return n.Like(left, draw(patterns()), draw(st.sampled_from(["!", "!", "\\"])))


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = ["%", "_", "a", "b", "A", "é", ".", "(", "\n", "\U0001f600"]
    return "".join(draw(st.lists(st.sampled_from(parts), max_size=5)))


@st.composite
def _any_value(draw: st.DrawFn, depth: int, computed: bool) -> n.Expression:
    kind = draw(st.sampled_from(list(POOLS)))
    whole_struct = draw(st.integers(0, 9)) == 0
    return (
        n.Reference(("inner",))
        if whole_struct
        else draw(operands(kind, depth - 1, computed=computed))
    )


@st.composite
def operands(draw: st.DrawFn, kind: DataType, depth: int, *, computed: bool = True) -> Any:
    """A value of this type: a column, a constant, or something computed."""
    if not computed or depth <= 0 or draw(st.booleans()):
        if draw(st.integers(0, 5)) == 0:
            return n.Literal(draw(nullable(values(kind))))
        return draw(st.sampled_from(_COLUMNS[kind]))
    makers = _MAKERS.get(kind, [])
    shape = draw(st.integers(0, len(makers) + 1))
    if shape < len(makers):
        return draw(makers[shape](depth))
    if shape == len(makers):
        first, second = draw(operands(kind, depth - 1)), draw(operands(kind, depth - 1))
        return n.Function("coalesce", (first, second))
    test = draw(conditions(depth - 1))
    chosen, other = draw(operands(kind, depth - 1)), draw(operands(kind, depth - 1))
    return n.Case(((test, chosen),), other)


@st.composite
def _calculations(draw: st.DrawFn, kind: DataType, depth: int, ops: list[Operator]) -> Any:
    op = draw(st.sampled_from(ops))
    left, right = draw(operands(kind, depth - 1)), draw(operands(kind, depth - 1))
    return n.Arithmetic(op, left, right)


@st.composite
def _calls(draw: st.DrawFn, names: list[str], kind: DataType, depth: int) -> Any:
    return n.Function(draw(st.sampled_from(names)), (draw(operands(kind, depth - 1)),))


@st.composite
def _casts(draw: st.DrawFn, sources: list[DataType], to: DataType, depth: int) -> Any:
    return n.Cast(draw(operands(draw(st.sampled_from(sources)), depth - 1)), to)


@st.composite
def _substrings(draw: st.DrawFn, depth: int) -> Any:
    text = draw(operands(STRING, depth - 1))
    position = n.Literal(draw(st.integers(-4, 4)))
    if draw(st.booleans()):
        return n.Function("substring", (text, position))
    return n.Function("substring", (text, position, n.Literal(draw(st.integers(-1, 4)))))


@st.composite
def _truncations(draw: st.DrawFn, kind: DataType, depth: int) -> Any:
    units = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
    unit = n.Literal(draw(st.sampled_from(units)))
    return n.Function("date_trunc", (unit, draw(operands(kind, depth - 1))))


@st.composite
def _rounded(draw: st.DrawFn, kind: DataType, depth: int) -> Any:
    digits = n.Literal(draw(st.integers(0, 3)))
    return n.Function("round", (draw(operands(kind, depth - 1)), digits))


_WHOLE = [Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.MODULO]
_BROKEN = [Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE]
_SCALARS = [BOOLEAN, INT, LONG, FLOAT, DOUBLE, MONEY, STRING]
_MAKERS: dict[DataType, list[Any]] = {
    INT: [
        lambda d: _casts([k for k in _SCALARS if k != INT], INT, d),
        lambda d: _calls(["year", "quarter", "month", "day"], DATE, d),
        lambda d: _calls(["hour", "minute", "second"], TIMESTAMP, d),
        lambda d: _calls(["length"], STRING, d),
    ],
    LONG: [
        lambda d: _calculations(LONG, d, _WHOLE),
        lambda d: _casts([*_SCALARS, TIMESTAMP], LONG, d),
        lambda d: _calls(["abs"], LONG, d),
        lambda d: _calls(["floor", "ceil"], DOUBLE, d),
        lambda d: operands(LONG, d - 1).map(n.Negate),
    ],
    FLOAT: [lambda d: _casts([INT, DOUBLE, STRING], FLOAT, d)],
    DOUBLE: [
        lambda d: _calculations(DOUBLE, d, _BROKEN),
        lambda d: _casts(_SCALARS, DOUBLE, d),
        lambda d: _rounded(DOUBLE, d),
        lambda d: operands(DOUBLE, d - 1).map(n.Negate),
    ],
    STRING: [
        lambda d: _calls(["lower", "upper", "trim", "ltrim", "rtrim"], STRING, d),
        lambda d: _substrings(d),
        lambda d: st.tuples(operands(STRING, d - 1), operands(STRING, d - 1)).map(
            lambda pair: n.Function("concat", pair)
        ),
        lambda d: _casts([BOOLEAN, INT, LONG, DATE, TIMESTAMP, MONEY], STRING, d),
    ],
    DATE: [
        lambda d: _casts([TIMESTAMP, WALL, STRING], DATE, d),
        lambda d: _calls(["to_date"], TIMESTAMP, d),
    ],
    TIMESTAMP: [
        lambda d: _casts([DATE, WALL, STRING, INT], TIMESTAMP, d),
        lambda d: _truncations(TIMESTAMP, d),
    ],
    WALL: [lambda d: _casts([DATE, TIMESTAMP, STRING], WALL, d), lambda d: _truncations(WALL, d)],
    CLOCK: [lambda d: _casts([STRING], CLOCK, d)],
    MONEY: [
        lambda d: _casts(_SCALARS, MONEY, d),
        lambda d: _calculations(MONEY, d, _BROKEN).map(lambda e: n.Cast(e, MONEY)),
        lambda d: _rounded(MONEY, d),
        lambda d: _calls(["floor", "ceil", "abs"], MONEY, d),
    ],
}


def computed(kind: DataType, depth: int = 2) -> st.SearchStrategy[Any]:
    """A value of this type that is computed, never a bare column."""
    return st.one_of([make(depth) for make in _MAKERS[kind]])


COMPUTED_KINDS = list(_MAKERS)
