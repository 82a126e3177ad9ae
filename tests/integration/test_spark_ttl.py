"""Partitions that a lake with a session drops and brings back: Spark's tasks write the rows."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.engine.spark.executor import SparkExecutor
from support.left_behind import left_behind

pytestmark = pytest.mark.spark

#: Nothing is small enough for the driver's own threads.
IN_TASKS = {"lakewright.write.driver-work": "0", "lakewright.write.driver-bytes": "0"}
OLD, NEW = "2026-01-01", "2026-02-28"
NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)


@pytest.fixture
def in_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What executors were asked to do."""
    ran: list[str] = []
    real = SparkExecutor._in_tasks

    def noted(self: SparkExecutor, job: Any, items: Any, sizes: Any) -> Any:
        ran.append(job.function.__name__)
        return real(self, job, items, sizes)

    monkeypatch.setattr(SparkExecutor, "_in_tasks", noted)
    yield ran


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("buckets", [None, 2])
def test_rows_come_back_by_tasks_beside_later_ones(
    spark: Any, tmp_path: Path, in_tasks: list[str], kind: str, buckets: int | None
) -> None:
    lake = lw.connect(tmp_path, spark=spark)
    table = lake.create_table(
        "shop.t",
        schema="id string, dt string, n bigint",
        key="id",
        partition_by="dt",
        type=kind,
        buckets=buckets,
    )
    rows = "SELECT concat(dt, '-', id) AS id, dt, id AS n FROM range(40), (VALUES ('{}')) AS d(dt)"
    for day, at in ((OLD, "20260101120000000"), (NEW, "20260228120000000")):
        table.upsert(spark.sql(rows.format(day)), instant=at)
    table.ttl.add("/", "KEEP_BY_TIME", 30)
    plan = table.ttl.plan(NOW, options=IN_TASKS)
    assert [item.target for item in plan.items] == [f"dt={OLD}"]
    plan.apply()
    assert held(table) == {NEW: (40, 780)}
    table.upsert(spark.sql(f"SELECT '{OLD}-3' AS id, '{OLD}' AS dt, 1000L AS n"))
    in_tasks.clear()
    undone = plan.undo()
    assert (undone.rows, undone.kept_out) == (39, 1)
    assert in_tasks == ["rescale_class" if buckets else "return_slice"]
    assert held(table) == {OLD: (40, 780 - 3 + 1000), NEW: (40, 780)}
    assert left_behind(table) == []
    assert table.fsck().ok


def held(table: lw.Table) -> dict[str, tuple[int, int]]:
    frame = table.scan().to_spark().groupBy("dt").agg({"id": "count", "n": "sum"})
    return {row["dt"]: (row["count(id)"], row["sum(n)"]) for row in frame.collect()}
