"""The exact row filter and the scan filter on Arrow, against SQL's meaning row by row."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.expression import residual_filter, to_arrow
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import Unsupported
from lakewright.model.expression import nodes as n
from lakewright.model.expression.bind import bind
from lakewright.model.expression.build import col, function, lit
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.render import to_sql
from support.expression_strategies import SCHEMA, conditions, rows
from support.sql_semantics import matches

ARROW = to_arrow_schema(SCHEMA)


def batch_of(some_rows: list[dict[str, Any]]) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist(some_rows, schema=ARROW)
    return batch.append_column("position", pa.array(range(len(some_rows)), pa.int64()))


def kept(batch: pa.RecordBatch) -> list[int]:
    return batch.column("position").to_pylist()


def expected(bound: Any, some_rows: list[dict[str, Any]]) -> list[int]:
    return [at for at, row in enumerate(some_rows) if matches(bound, row)]


@settings(max_examples=300)
@given(condition=conditions(), some_rows=st.lists(rows, max_size=6))
def test_the_residual_filter_keeps_exactly_the_matching_rows(condition, some_rows) -> None:
    bound = bind(condition, SCHEMA)
    keep = residual_filter(bound)
    batch = batch_of(some_rows)
    result = batch if keep is None else keep(batch)
    assert kept(result) == expected(bound, some_rows), to_sql(condition)


@settings(max_examples=200)
@given(condition=conditions(), some_rows=st.lists(rows, max_size=6))
def test_the_scan_filter_keeps_at_least_the_matching_rows(condition, some_rows) -> None:
    bound = bind(condition, SCHEMA)
    found = to_arrow(bound)
    batch = batch_of(some_rows)
    result = kept(batch if found.expression is None else batch.filter(found.expression))
    wanted = expected(bound, some_rows)
    assert set(wanted) <= set(result), to_sql(condition)
    if found.exact:
        assert result == wanted, to_sql(condition)
