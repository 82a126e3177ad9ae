"""The law of pruning: never no for a file that holds a matching row; unknown keeps."""

import math
import random
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import (
    BoundExpression,
    BoundLike,
    BoundReference,
    Path,
    walk,
)
from lakewright.model.expression.build import col
from lakewright.model.expression.nodes import Comparator, Comparison, Expression, Literal
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.prune import ColumnRange, compile_pruner, may_match
from lakewright.model.expression.render import to_sql
from lakewright.model.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    Field,
    Struct,
)
from support.expression_strategies import (
    COMPUTED_KINDS,
    POOLS,
    SAMPLE,
    SCHEMA,
    computed,
    conditions,
    conditions_on,
)
from support.sql_semantics import matches

LEAVES: list[Path] = [
    *((f.name,) for f in SCHEMA if not isinstance(f.type, Struct)),
    ("inner", "x"),
    ("inner", "deep", "y"),
]


def leaf(row: Mapping[str, Any], path: Path) -> Any:
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value


def statistics(some_rows: list[dict[str, Any]], chance: random.Random) -> dict[Path, ColumnRange]:
    """True statistics of the rows, as files have them: some missing, some loose, NaN left out."""
    ranges = {}
    for path in LEAVES:
        detail = chance.randrange(8)
        if detail == 0:
            continue
        column = [leaf(row, path) for row in some_rows]
        present = [v for v in column if v is not None]
        ordinary = [v for v in present if v == v]
        low, high = (min(ordinary), max(ordinary)) if ordinary else (None, None)
        ranges[path] = ColumnRange(
            loosened(low, chance, down=True),
            loosened(high, chance, down=False),
            None if detail == 1 else len(column) - len(present),
            None if detail == 2 else len(column),
            len(present) - len(ordinary) if detail == 3 else None,
        )
    return ranges


def loosened(bound: Any, chance: random.Random, *, down: bool) -> Any:
    """Leave a bound out, or widen it as cutting long texts does."""
    choice = chance.randrange(6)
    if choice == 0:
        return None
    if choice == 1 and isinstance(bound, str) and bound:
        cut = bound[: len(bound) // 2]
        return cut if down else cut + "\U0010ffff"
    if choice == 1 and isinstance(bound, float) and bound == 0:
        return 0.0 if down else -0.0  # either zero may stand in a footer
    return bound


def holds_the_law(condition: Expression, number: int) -> None:
    """Many small files are made of the sample, so that a condition meets them at its edges."""
    bound = bind(condition, SCHEMA)
    prune = compile_pruner(bound)
    matching = [matches(bound, row) for row in SAMPLE]
    chance = random.Random(number)
    files = [chance.sample(range(len(SAMPLE)), chance.randrange(4)) for _ in range(60)]
    for file in files:
        kept = prune(statistics([SAMPLE[at] for at in file], chance))
        if any(matching[at] for at in file):
            assert kept, (to_sql(condition), [SAMPLE[at] for at in file])


@settings(max_examples=100)
@given(condition=conditions(), number=st.integers(0, 2**32))
def test_pruning_never_drops_a_matching_row(condition: Expression, number: int) -> None:
    holds_the_law(condition, number)


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
def test_the_law_holds_for_columns_of_every_type(kind: DataType) -> None:
    @settings(max_examples=50)
    @given(condition=conditions_on(kind), number=st.integers(0, 2**32))
    def never_drops(condition: Expression, number: int) -> None:
        holds_the_law(condition, number)

    never_drops()


@pytest.mark.parametrize("kind", COMPUTED_KINDS, ids=str)
def test_the_law_holds_for_computed_values_of_every_type(kind: DataType) -> None:
    @settings(max_examples=30)
    @given(
        value=computed(kind),
        op=st.sampled_from(list(Comparator)),
        constant=st.sampled_from(POOLS[kind]),
        number=st.integers(0, 2**32),
    )
    def never_drops(value: Expression, op: Comparator, constant: Any, number: int) -> None:
        holds_the_law(Comparison(op, value, Literal(constant)), number)

    never_drops()


def is_open(bound: BoundExpression) -> bool:
    """Patterns with inner wildcards and whole structs are not looked into."""
    return any(
        isinstance(node, BoundLike)
        or (isinstance(node, BoundReference) and isinstance(node.type, Struct))
        for node in walk(bound)
    )


@settings(max_examples=100)
@given(condition=conditions(computed=False))
def test_a_row_of_known_values_is_decided_exactly(condition: Expression) -> None:
    """Pruning is worth something: constant columns, as partitions have, leave no doubt."""
    bound = bind(condition, SCHEMA)
    assume(not is_open(bound))
    for row in SAMPLE:
        if any(isinstance(value, float) and math.isnan(value) for value in row.values()):
            continue
        ranges = {path: ColumnRange.constant(leaf(row, path), 1) for path in LEAVES}
        assert may_match(bound, ranges) == matches(bound, row), (to_sql(condition), row)


TABLE = Struct(
    (
        Field("id", LONG),
        Field("i", INT),
        Field("d", DOUBLE),
        Field("s", STRING),
        Field("dt", DATE),
        Field("day", STRING),
        Field("ts", TIMESTAMP),
        Field("flag", BOOLEAN),
    )
)
NOV = ColumnRange(date(2026, 11, 1), date(2026, 11, 30), nulls=0, rows=30)
TEN = ColumnRange(10, 19, nulls=0, rows=10)
TIMES = ColumnRange(
    datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, 23, tzinfo=UTC), nulls=0, rows=9
)


@pytest.mark.parametrize(
    ("sql", "ranges", "kept"),
    [
        ("id = 20", {"id": TEN}, False),
        ("id = 19", {"id": TEN}, True),
        ("id < 10", {"id": TEN}, False),
        ("10 > id", {"id": TEN}, False),
        ("id <= 10", {"id": TEN}, True),
        ("id > 19.5", {"id": TEN}, False),
        ("id IN (1, 30)", {"id": TEN}, False),
        ("id IN (1, 15)", {"id": TEN}, True),
        ("id BETWEEN 20 AND 30", {"id": TEN}, False),
        ("NOT id BETWEEN 10 AND 19", {"id": TEN}, False),
        ("NOT id > 5", {"id": TEN}, False),
        ("id != 5", {"id": ColumnRange.constant(5)}, False),
        ("id = 5 OR id = 50", {"id": TEN}, False),
        ("id = 5 AND s = 'x'", {"id": TEN}, False),
        ("id = 15 AND s = 'x'", {"id": TEN}, True),
        ("id IS NULL", {"id": TEN}, False),
        ("id IS NULL", {"id": ColumnRange(10, 19)}, True),
        ("id IS NOT NULL", {"id": ColumnRange(nulls=3, rows=3)}, False),
        ("id = 5", {"id": ColumnRange(nulls=3, rows=3)}, False),
        ("NOT id = 5", {"id": ColumnRange(nulls=3, rows=3)}, False),
        ("id <=> NULL", {"id": TEN}, False),
        ("id NOT IN (5, NULL)", {"id": TEN}, False),
        ("id = 5", {"id": ColumnRange(rows=0)}, False),
        ("id = NULL", {"id": TEN}, False),
        ("id + 1 > 20", {"id": TEN}, False),
        ("id + 1 = 20", {"id": TEN}, True),
        ("1 + id < 12", {"id": TEN}, True),
        ("id + i = 49", {"id": TEN, "i": ColumnRange(20, 30, 0, 9)}, True),
        ("id - i = -20", {"id": TEN, "i": ColumnRange(20, 30, 0, 9)}, True),
        ("id + 9223372036854775807 IS NULL", {"id": TEN}, True),
        ("id - 1 > 17", {"id": TEN}, True),
        ("-id > 0", {"id": TEN}, False),
        ("id > i", {"id": TEN, "i": ColumnRange(20, 30, 0, 9)}, False),
        ("id < i", {"id": TEN, "i": ColumnRange(20, 30, 0, 9)}, True),
        ("coalesce(id, 5) > 20", {"id": TEN}, False),
        ("CASE WHEN flag THEN id ELSE 7 END > 20", {"id": TEN}, False),
        ("d > 5", {"d": ColumnRange(0.0, 1.0, 0, 9)}, True),  # a NaN is above every bound
        ("d > 5", {"d": ColumnRange(0.0, 1.0, 0, 9, nans=0)}, False),
        ("d < 0", {"d": ColumnRange(0.0, 1.0, 0, 9)}, False),
        ("d = 5", {"d": ColumnRange(0.0, 1.0, 0, 9)}, False),
        ("d = 0", {"d": ColumnRange(-0.0, -0.0, 0, 9)}, True),
        ("d = CAST('NaN' AS DOUBLE)", {"d": ColumnRange(0.0, 1.0, 0, 9)}, True),
        ("d < 0", {"d": ColumnRange(math.nan, math.nan, 0, 9)}, True),
        ("s LIKE 'ab%'", {"s": ColumnRange("b", "c", 0, 9)}, False),
        ("s LIKE 'ab%'", {"s": ColumnRange("a", "aa", 0, 9)}, False),
        ("s LIKE 'ab%'", {"s": ColumnRange("a", "abz", 0, 9)}, True),
        ("s LIKE 'a_c%'", {"s": ColumnRange("b", "c", 0, 9)}, False),
        ("NOT startswith(s, 'ab')", {"s": ColumnRange("aba", "abz", 0, 9)}, False),
        ("endswith(s, 'x')", {"s": ColumnRange.constant("ab")}, False),
        ("substring(s, 1, 2) = 'ac'", {"s": ColumnRange("aba", "abz", 0, 9)}, False),
        ("lower(s) = 'eu'", {"s": ColumnRange.constant("US")}, False),
        ("lower(s) = 'eu'", {"s": ColumnRange.constant("EU")}, True),
        ("dt >= '2026-12-01'", {"dt": NOV}, False),
        ("dt >= TIMESTAMP '2026-11-30 12:00:00'", {"dt": NOV}, False),
        ("year(dt) = 2025", {"dt": NOV}, False),
        ("month(dt) = 10", {"dt": ColumnRange.constant(date(2026, 11, 1))}, False),
        ("month(dt) = 10", {"dt": NOV}, True),
        ("month(dt) = 2", {"dt": ColumnRange(date(2025, 12, 1), date(2026, 3, 1), 0, 9)}, True),
        ("upper(s) = 'B'", {"s": ColumnRange("a", "c", 0, 9)}, True),
        ("to_date(ts) = '2026-11-02'", {"ts": TIMES}, False),
        ("date_trunc('month', ts) = '2026-10-01'", {"ts": TIMES}, False),
        ("CAST(day AS DATE) >= '2026-12-01'", {"day": ColumnRange.constant("2026-11-30")}, False),
        (
            "CAST(day AS DATE) >= '2026-12-01'",
            {"day": ColumnRange("2026-11-01", "2026-11-30")},
            True,
        ),
        ("CAST(day AS DATE) IS NULL", {"day": ColumnRange.constant("soon")}, True),
        ("flag", {"flag": ColumnRange(False, False, 0, 9)}, False),
        ("NOT flag", {"flag": ColumnRange(False, True, 0, 9)}, True),
        ("flag = (id > 20)", {"flag": ColumnRange.constant(True), "id": TEN}, False),
        ("FALSE", {}, False),
        ("NULL", {}, False),
        ("id = 5", {}, True),
        ("id = 5", {"id": ColumnRange("written as text", "once", 0, 9)}, True),
        ("id = 5", {"id": ColumnRange(9, 1, 0, 9)}, True),  # bounds that contradict each other
    ],
)
def test_what_is_kept_and_what_is_not(sql: str, ranges: dict[str, ColumnRange], kept: bool) -> None:
    bound = bind(parse_expression(sql), TABLE)
    assert may_match(bound, {(name,): known for name, known in ranges.items()}) is kept


def test_a_pruner_is_asked_many_times() -> None:
    prune = compile_pruner(bind(col("dt") >= "2026-11-15", TABLE))
    days = [date(2026, 11, day) for day in range(1, 31)]
    kept = [day for day in days if prune({("dt",): ColumnRange.constant(day)})]
    assert kept == days[14:]
