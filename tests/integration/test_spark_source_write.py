"""``df.write.format("lakewright")``: which way rows go, and what a failure leaves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from support.failing_rows import failing
from support.left_behind import left_behind, nothing_left

pytestmark = pytest.mark.spark

SCHEMA = "id string, n bigint, ts bigint, dt string"
Make = Callable[..., lw.Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def table(**details: Any) -> lw.Table:
        told = {"key": "id", "partition_by": "dt", "order_by": "ts", **details}
        return lw.create_table(tmp_path / "table", schema=SCHEMA, **told)

    return table


def rows_of(count: int, *, n: int = 0, ts: int = 1) -> list[tuple[str, int, int, str]]:
    return [(f"k{i:03d}", n + i, ts, f"d{i % 2}") for i in range(count)]


def save(spark: Any, table: lw.Table, rows: Any, mode: str = "append", **options: str) -> None:
    frame = spark.createDataFrame(rows, SCHEMA) if isinstance(rows, list) else rows
    frame.write.format("lakewright").mode(mode).options(**options).save(table.path)


def found(table: lw.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def test_appends_write_new_file_groups_from_the_executors(spark: Any, make: Make) -> None:
    table = make()
    save(spark, table, spark.createDataFrame(rows_of(10), SCHEMA).repartition(2))
    save(spark, table, [("k100", 1, 1, "d0")])
    assert found(table) == [*rows_of(10), ("k100", 1, 1, "d0")]
    first, second = table.timeline.data()
    body = table.timeline.commit_metadata(first)
    assert body.operation == "BULK_INSERT"
    tokens = {s.path.split("_")[1] for some in body.write_stats.values() for s in some if s.path}
    assert len(tokens) == 2  # of two tasks
    assert len(table.timeline.commit_metadata(second).write_stats) == 1
    assert left_behind(table) == []
    assert table.fsck(deep=True).ok


def test_upserts_are_staged_and_merged(spark: Any, make: Make) -> None:
    table = make(buckets=2, type="MERGE_ON_READ")
    save(spark, table, rows_of(10))
    both = spark.createDataFrame([*rows_of(6, n=50, ts=2), *rows_of(8, n=90, ts=0)], SCHEMA)
    save(spark, table, both.repartition(2), operation="upsert")  # half of them are late
    assert found(table) == sorted([*rows_of(6, n=50, ts=2), *rows_of(10)[6:]])
    assert left_behind(table) == []


def test_a_task_that_always_fails_leaves_nothing(spark: Any, make: Make, tmp_path: Path) -> None:
    table = make()
    frame = spark.createDataFrame(rows_of(10), SCHEMA).repartition(2)
    with pytest.raises(Exception, match="told to fail"):
        save(spark, table, failing(frame, 1, times=99, folder=tmp_path / "tries"))
    assert found(table) == []
    assert not table.timeline.pending() and nothing_left(table)


def test_what_is_refused_writes_nothing(spark: Any, make: Make) -> None:
    table = make()
    with pytest.raises(Exception, match="goes with mode append"):
        save(spark, table, rows_of(2), "overwrite", operation="upsert")
    with pytest.raises(Exception, match=r"(?i)append"):
        save(spark, table, rows_of(2), "errorifexists")
    assert len(table.timeline) == 0
