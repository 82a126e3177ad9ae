"""The exact row filter and the scan filter on Arrow, against SQL's meaning row by row."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from lakewright.format.arrow.expression import column, residual_filter, to_arrow
from lakewright.format.arrow.expression_values import compile_value
from lakewright.format.arrow.schema import from_arrow_schema, to_arrow_schema
from lakewright.model.errors import Unsupported
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.build import col
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.render import to_sql
from lakewright.model.schema import DataType
from support.expression_strategies import (
    COMPUTED_KINDS,
    POOLS,
    SAMPLE,
    SCHEMA,
    computed,
    conditions,
    conditions_on,
)
from support.sql_semantics import matches, value_of

ARROW = to_arrow_schema(SCHEMA)


BATCH = pa.RecordBatch.from_pylist(SAMPLE, schema=ARROW).append_column(
    "position", pa.array(range(len(SAMPLE)), pa.int64())
)


def kept(batch: pa.RecordBatch) -> list[int]:
    return batch.column("position").to_pylist()


def expected(bound: BoundExpression) -> list[int]:
    return [at for at, row in enumerate(SAMPLE) if matches(bound, row)]


@settings(max_examples=150)
@given(condition=conditions())
def test_the_residual_filter_keeps_exactly_the_matching_rows(condition: Expression) -> None:
    bound = bind(condition, SCHEMA)
    keep = residual_filter(bound)
    result = BATCH if keep is None else keep(BATCH)
    assert kept(result) == expected(bound), to_sql(condition)


@settings(max_examples=100)
@given(condition=conditions())
def test_the_scan_filter_keeps_at_least_the_matching_rows(condition: Expression) -> None:
    bound = bind(condition, SCHEMA)
    found = to_arrow(bound)
    result = kept(BATCH if found.expression is None else BATCH.filter(found.expression))
    wanted = expected(bound)
    assert set(wanted) <= set(result), to_sql(condition)
    if found.exact:
        assert result == wanted, to_sql(condition)


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
def test_both_filters_are_exact_on_columns_of_every_type(kind: DataType) -> None:
    @settings(max_examples=60)
    @given(condition=conditions_on(kind))
    def filters_agree(condition: Expression) -> None:
        bound = bind(condition, SCHEMA)
        keep, scan = residual_filter(bound), to_arrow(bound)
        assert scan.exact
        wanted = expected(bound)
        assert kept(BATCH if keep is None else keep(BATCH)) == wanted, to_sql(condition)
        assert kept(BATCH.filter(scan.expression)) == wanted, to_sql(condition)

    filters_agree()


@pytest.mark.parametrize("kind", COMPUTED_KINDS, ids=str)
def test_computed_values_are_those_of_sql(kind: DataType) -> None:
    @settings(max_examples=50)
    @given(value=computed(kind))
    def values_agree(value: Expression) -> None:
        bound = bind(value, SCHEMA, predicate=False)
        found = compile_value(bound, lazy=False)(lambda reference: column(BATCH, reference))
        ours = [found.as_py()] * len(SAMPLE) if isinstance(found, pa.Scalar) else found.to_pylist()
        for row, one in zip(SAMPLE, ours, strict=True):
            assert same(one, value_of(bound, row)), (to_sql(value), row)

    values_agree()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other and (one is None) == (other is None)


TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "s": pa.array(["ab", "Cé", None, "x%y"]).dictionary_encode(),
        "large": pa.array(["ab", "Cé", None, "x%y"], pa.large_string()),
        "d": pa.array([1.5, math.nan, -0.0, None]),
        "ms": pa.array([0, 1, -1, None], pa.timestamp("ms", "UTC")),
        "ns": pa.array([0, 1_999, -1, None], pa.timestamp("ns")),
        "clock": pa.array([0, 1, 2, None], pa.time32("ms")),
        "code": pa.array([b"ab", b"cd", b"ef", None], pa.binary(2)),
        "tiny": pa.array([1, -1, 0, None], pa.int8()),
        "n": pa.array(
            [{"x": 1, "y": {"z": "a"}}, None, {"x": None, "y": None}, {"x": 7, "y": {"z": "b"}}]
        ),
        "row": [0, 1, 2, 3],
    }
)
COLUMNS = from_arrow_schema(TABLE.schema)


@pytest.mark.parametrize(
    ("sql", "rows_kept"),
    [
        ("s = 'Cé'", [1]),
        ("large = s", [0, 1, 3]),
        ("upper(s) = 'CÉ'", [1]),
        ("s LIKE 'x\\\\%_'", [3]),
        ("d > 100", [1]),
        ("d >= CAST('NaN' AS DOUBLE)", [1]),
        ("d = CAST('NaN' AS DOUBLE)", [1]),
        ("d != 1.5", [1, 2]),
        ("NOT d < 100", [1]),
        ("d IN (0, 7)", [2]),
        ("d NOT IN (0, 7)", [0, 1]),
        ("d IN (CAST('NaN' AS DOUBLE))", [1]),
        ("id NOT IN (1, NULL)", []),
        ("id IN (1, NULL)", [0]),
        ("id <=> NULL", [3]),
        ("NOT id <=> 1", [1, 2, 3]),
        ("ms > TIMESTAMP '1970-01-01 00:00:00.0005Z'", [1]),
        ("ms < TIMESTAMP '1970-01-01 00:00:00Z'", [2]),
        ("ns = TIMESTAMP_NTZ '1970-01-01 00:00:00.000001'", [1]),
        ("clock >= '00:00:00.001'", [1, 2]),
        ("code > X'6364'", [2]),
        ("tiny < 0", [1]),
        ("n.x = 7", [3]),
        ("n.y.z = 'a' OR n IS NULL", [0, 1]),
        ("TRUE", [0, 1, 2, 3]),
        ("NULL", []),
        ("1 = 1 AND 2 > 1", [0, 1, 2, 3]),
        ("startswith(s, NULL)", []),
    ],
)
def test_forms_that_batches_come_in(sql: str, rows_kept: list[int]) -> None:
    bound = bind(parse_expression(sql), COLUMNS)
    keep = residual_filter(bound)
    (batch,) = TABLE.to_batches()
    assert (batch if keep is None else keep(batch)).column("row").to_pylist() == rows_kept
    assert (batch.slice(0, 0) if keep is None else keep(batch.slice(0, 0))).num_rows == 0


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("startswith(s, large)", "startswith"),
        ("d % 2 = 1", "%"),
        ("CAST(d AS STRING) = '1.5'", "CAST of double to string"),
        ("substring(s, id) = 'a'", "substring"),
        ("round(d, 20) = 1", "round"),
        ("CAST(d AS DECIMAL(38,30)) = 1", "CAST of double"),
        ("CAST(id AS DECIMAL(38,10)) * CAST(id AS DECIMAL(38,10)) = 1", r"\*"),
    ],
)
def test_what_arrow_cannot_compute_exactly_is_refused_while_planning(sql: str, named: str) -> None:
    with pytest.raises(Unsupported, match=named):
        residual_filter(bind(parse_expression(sql), COLUMNS))


@pytest.mark.parametrize(
    ("sql", "scanned", "exact"),
    [
        ("id > 1", 2, True),
        ("id > 1 AND abs(id) = 3", 2, False),
        ("id > 1 OR abs(id) = 3", 4, False),
        ("NOT (id <= 1 OR abs(id) = 3)", 2, False),
        ("NOT abs(id) = 3", 4, False),
        ("id > 1 OR 0.00 BETWEEN NULL AND 1.50", 2, True),
        ("id > 1 AND 0.00 < 1.50", 2, True),
        ("id > 1 AND 1 IN (0.5, 2.25, 1.000)", 2, True),
        ("id > 1 AND 0.25 <> 0.1D", 2, True),
    ],
)
def test_a_scan_uses_what_it_can(sql: str, scanned: int, exact: bool) -> None:
    found = to_arrow(bind(parse_expression(sql), COLUMNS))
    assert found.exact is exact
    (batch,) = TABLE.to_batches()
    kept_rows = batch if found.expression is None else batch.filter(found.expression)
    assert kept_rows.num_rows == scanned


def test_a_scan_of_a_file_does_not_lose_nan(tmp_path: Path) -> None:
    """The footer's bounds leave NaN out; the filter must not let the scan skip the row group."""
    pq.write_table(TABLE.select(["d", "row"]), tmp_path / "f.parquet")
    found = to_arrow(bind(col("d") > 100.0, COLUMNS))
    scanned = ds.dataset(tmp_path / "f.parquet").to_table(filter=found.expression)
    assert scanned.column("row").to_pylist() == [1]
