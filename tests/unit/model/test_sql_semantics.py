"""The yardstick itself, measured against DuckDB where both speak the same SQL."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.expression.bind import bind
from lakewright.model.expression.parse import parse_expression
from support.expression_strategies import SCHEMA, rows
from support.sql_semantics import value_of

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
pa = pytest.importorskip("pyarrow")

# Written so that both dialects read them alike.
SHARED = [
    "small > 1",
    "small >= big",
    "NOT (small = 1)",
    "small = 1 AND flag",
    "small = 1 OR flag",
    "NOT (small = 1 OR flag)",
    "small IN (1, 2, NULL)",
    "small NOT IN (1, NULL)",
    "small IS NULL OR big IS NOT NULL",
    "small BETWEEN -1 AND 2",
    "NOT small BETWEEN -1 AND 2",
    "wide > 1.5e0",
    "wide >= CAST('NaN' AS DOUBLE)",
    "wide = CAST('NaN' AS DOUBLE)",
    "wide < CAST('NaN' AS DOUBLE)",
    "wide = 0e0",
    "wide <= narrow",
    "wide IN (0e0, 1.5e0)",
    "name < 'b'",
    "name > 'é'",
    "name LIKE 'a%'",
    "name LIKE '%b'",
    "name LIKE 'a_'",
    "name LIKE 'a!%_' ESCAPE '!'",
    "name NOT LIKE '%a%'",
    "length(name) = 2",
    "lower(name) = 'a_'",
    "trim(name) = 'a'",
    "name || 'x' = 'ax'",
    "coalesce(name, 'none') = 'none'",
    "CASE WHEN small > 0 THEN name ELSE 'low' END = 'low'",
    "CASE WHEN flag THEN 1 END = 1",
    "day >= DATE '2026-11-01'",
    "day = DATE '2024-02-29'",
    "year(day) = 2026",
    "month(day) = 12",
    "wall > TIMESTAMP_NTZ '2026-11-01 05:00:00'",
    "hour(wall) = 5",
    "money > 1.50",
    "money + 1 > 2",
    "money * 2 = 3.00",
    "abs(money) = 2.25",
    "floor(money) = -3",
    "ceil(money) = 2",
    "small % 2 = 1",
    "-small > 0",
    "`inner`.x = 1",
    "`inner`.deep.y = 'a'",
    "NULL = NULL",
    "NOT (flag AND NULL)",
]


BOUND = [bind(parse_expression(sql), SCHEMA) for sql in SHARED]


def duck_text(sql: str) -> str:
    """DuckDB spells two things in its own way."""
    return sql.replace("TIMESTAMP_NTZ '", "TIMESTAMP '").replace("`", '"')


@seed(11)
@settings(
    max_examples=5,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(some_rows=st.lists(rows, min_size=20, max_size=20))
def test_our_reading_of_sql_is_duckdbs(some_rows: list[dict[str, Any]]) -> None:
    drawn = pa.Table.from_pylist(some_rows, schema=to_arrow_schema(SCHEMA))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("drawn", drawn)
        chosen = ", ".join(f"({duck_text(sql)})" for sql in SHARED)
        found = connection.execute(f"SELECT {chosen} FROM drawn").fetchall()
    for row, outcomes in zip(some_rows, found, strict=True):
        for sql, bound, outcome in zip(SHARED, BOUND, outcomes, strict=True):
            assert value_of(bound, row) == outcome, (sql, row)
