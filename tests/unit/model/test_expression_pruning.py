"""The law of pruning: never no for a file that holds a matching row; unknown keeps."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import Path
from lakewright.model.expression.build import col
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.prune import ColumnRange, compile_pruner, may_match
from lakewright.model.expression.render import to_sql
from lakewright.model.schema import DATE, DOUBLE, INT, LONG, STRING, Field, Struct
from support.expression_strategies import SCHEMA, conditions, rows
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


@st.composite
def statistics(draw: st.DrawFn, some_rows: list[dict[str, Any]]) -> dict[Path, ColumnRange]:
    """True statistics of the rows, as files have them: some missing, some loose, NaN left out."""
    ranges = {}
    for path in LEAVES:
        detail = draw(st.integers(0, 7))
        if detail == 0:
            continue
        column = [leaf(row, path) for row in some_rows]
        present = [v for v in column if v is not None]
        ordinary = [v for v in present if v == v]
        low, high = (min(ordinary), max(ordinary)) if ordinary else (None, None)
        ranges[path] = ColumnRange(
            draw(loosened(low, down=True)),
            draw(loosened(high, down=False)),
            None if detail == 1 else len(column) - len(present),
            None if detail == 2 else len(column),
            len(present) - len(ordinary) if detail == 3 else None,
        )
    return ranges


@st.composite
def loosened(draw: st.DrawFn, bound: Any, *, down: bool) -> Any:
    """Leave a bound out, or widen it as cutting long texts does."""
    choice = draw(st.integers(0, 3))
    if choice == 0 or bound is None:
        return None
    if choice == 1 and isinstance(bound, str) and bound:
        cut = bound[: len(bound) // 2]
        return cut if down else cut + "\U0010ffff"
    if choice == 1 and isinstance(bound, float) and bound == 0:
        return -0.0 if down else 0.0
    return bound


@settings(max_examples=300)
@given(data=st.data(), condition=conditions(), some_rows=st.lists(rows, max_size=4))
def test_pruning_never_drops_a_matching_row(data, condition, some_rows) -> None:
    bound = bind(condition, SCHEMA)
    ranges = data.draw(statistics(some_rows))
    kept = may_match(bound, ranges)
    event(f"kept: {kept}")
    if any(matches(bound, row) for row in some_rows):
        assert kept, to_sql(condition)


@settings(max_examples=200)
@given(condition=conditions(computed=False), row=rows)
def test_a_single_row_of_known_values_is_decided(condition, row) -> None:
    """With one row and exact statistics, keeping a row that does not match has a reason."""
    bound = bind(condition, SCHEMA)
    ranges = {path: ColumnRange.constant(leaf(row, path), 1) for path in LEAVES}
    if matches(bound, row):
        assert may_match(bound, ranges), to_sql(condition)
    event(f"pruned: {not may_match(bound, ranges)}")
