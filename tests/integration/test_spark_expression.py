"""Expressions as Spark columns mean what they mean elsewhere, in every session."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from lakewright.model.errors import Unsupported
from lakewright.model.expression.bind import bind
from lakewright.model.expression.build import col
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.render import to_sql
from lakewright.model.schema import STRING, Field, Struct, Time, Unit
from support import long_decimals
from support.expression_strategies import SCHEMA, conditions, rows
from support.sql_semantics import value_of

pytestmark = pytest.mark.spark


def drawn(strategy: st.SearchStrategy[Any], count: int, number: int) -> list[Any]:
    """The same examples every time, so that one Spark job can be asked about all of them."""
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


@contextmanager
def session_settings(spark: Any, **changed: str) -> Iterator[None]:
    names = {"zone": "spark.sql.session.timeZone", "ansi": "spark.sql.ansi.enabled"}
    before = {names[key]: spark.conf.get(names[key]) for key in changed}
    try:
        for key, value in changed.items():
            spark.conf.set(names[key], value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.fixture(scope="module")
def some_rows() -> list[dict[str, Any]]:
    return drawn(rows, 40, 7)


@pytest.fixture(scope="module")
def frame(spark: Any, some_rows: list[dict[str, Any]]) -> Any:
    from lakewright.engine.spark.schema import to_spark_schema

    plain = [
        (*(_as_number(row[field.name]) for field in SCHEMA), at) for at, row in enumerate(some_rows)
    ]
    schema = to_spark_schema(SCHEMA).add("position", "integer")
    with session_settings(spark, zone="UTC"):
        return spark.createDataFrame(plain, schema).coalesce(1).cache()


def _as_number(value: Any) -> Any:
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    return value


def answers(frame: Any, bounds: list[Any]) -> list[list[bool | None]]:
    """The outcome of every condition for every row, in one job."""
    from lakewright.engine.spark.expression import to_column

    columns = [to_column(bound).alias(f"c{at}") for at, bound in enumerate(bounds)]
    found = frame.select("position", *columns).orderBy("position").collect()
    return [list(row[1:]) for row in found]


@pytest.mark.parametrize(
    ("zone", "ansi", "number"),
    [("UTC", "true", 1), ("America/New_York", "true", 2), ("Asia/Kathmandu", "false", 3)],
)
def test_spark_gives_every_row_the_same_outcome(
    spark: Any, frame: Any, some_rows: list[dict[str, Any]], zone: str, ansi: str, number: int
) -> None:
    pairs = []
    for condition in drawn(conditions(), 60, number):
        bound = bind(condition, SCHEMA)
        try:
            _translated(bound)
        except Unsupported:
            continue
        pairs.append((condition, bound))
    assert len(pairs) > 40
    with session_settings(spark, zone=zone, ansi=ansi):
        found = answers(frame, [bound for _, bound in pairs])
    for row, outcomes in zip(some_rows, found, strict=True):
        for (condition, bound), outcome in zip(pairs, outcomes, strict=True):
            assert outcome == value_of(bound, row), (to_sql(condition), row)


def _translated(bound: Any) -> str:
    from lakewright.engine.spark.expression import spark_sql

    return spark_sql(bound)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_longest_decimals_and_the_largest_doubles(spark: Any, ansi: str) -> None:
    from lakewright.engine.spark.schema import to_spark_schema

    plain = [(*row.values(), at) for at, row in enumerate(long_decimals.ROWS)]
    schema = to_spark_schema(long_decimals.SCHEMA).add("position", "integer")
    # A cache keeps Spark from computing the answers while it plans.
    frame = spark.createDataFrame(plain, schema).coalesce(1).cache()
    bounds = [bind(parse_expression(s), long_decimals.SCHEMA) for s in long_decimals.CONDITIONS]
    with session_settings(spark, ansi=ansi):
        found = answers(frame, bounds)
    for row, outcomes in zip(long_decimals.ROWS, found, strict=True):
        for sql, bound, outcome in zip(long_decimals.CONDITIONS, bounds, outcomes, strict=True):
            assert outcome == value_of(bound, row), (sql, row)


def test_a_scan_of_files_gets_the_filters(frame: Any, tmp_path: Path) -> None:
    """Comparisons with constants reach the parquet reader; computed ones stay above it."""
    from lakewright.engine.spark.expression import to_column

    frame.write.parquet(str(tmp_path / "rows"))
    files = frame.sparkSession.read.parquet(str(tmp_path / "rows"))
    for condition, pushed in (
        (col("day") >= "2026-11-01", "GreaterThanOrEqual(day,2026-11-01)"),
        (col("big").is_in([1, 7]), "In(big, [1,7])"),
        (col("name") != "it's", "Not(EqualTo(name,it's))"),
        (col("name").like("a%"), "StringStartsWith(name,a)"),
        (col("wide") > 1.5, "GreaterThan(wide,1.5)"),
    ):
        filtered = files.select("day", "big", "name", "wide").where(
            to_column(bind(condition, SCHEMA))
        )
        assert pushed in filtered._jdf.queryExecution().executedPlan().toString()


TEXTS = ["it's", "back\\slash", 'dou"ble', "new\nline", "tab\t", "é\U0001f600", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_reaches_spark_unchanged(spark: Any, text: str) -> None:
    from lakewright.engine.spark.expression import to_column

    row = spark.createDataFrame([(text,)], "name string")
    schema = Struct((Field("name", STRING),))
    for condition in (col("name") == text, col("name").is_in([text]), col("name").startswith(text)):
        assert row.where(to_column(bind(condition, schema))).count() == 1
    like = col("name").like(f"{text}_%", "!")
    assert row.where(to_column(bind(like, schema))).count() == 0


def test_times_of_day_are_numbers_on_spark(spark: Any) -> None:
    from lakewright.engine.spark.expression import to_column

    clocks = Struct((Field("ms", Time(Unit.MILLIS)), Field("us", Time(Unit.MICROS))))
    one = spark.createDataFrame([(1, 1000), (2, 3000)], "ms int, us bigint")
    assert one.where(to_column(bind(col("ms") == col("us"), clocks))).count() == 1
    assert one.where(to_column(bind(col("ms") > "00:00:00.001", clocks))).count() == 1
    with pytest.raises(Unsupported, match="cannot convert"):
        to_column(bind(col("ms").cast("string") == "x", clocks))
