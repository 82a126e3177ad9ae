"""Compaction by the tasks of a Spark session: the same rows, nothing left behind."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.actions.services.compaction import compact
from lakewright.actions.services.log_compaction import log_compact
from lakewright.api.table import Table
from lakewright.engine.spark.executor import SparkExecutor
from lakewright.model.instant import Action
from lakewright.storage.open import open_storage
from support.left_behind import left_behind
from support.servicing import servicing

pytestmark = pytest.mark.spark

#: Nothing is small enough for the driver's own threads.
IN_TASKS = {
    "lakewright__write__driver-work": "0",
    "hoodie__log__compaction__blocks__threshold": "2",
}


def on_spark(spark: Any, table: Table) -> Any:
    work = servicing(open_storage(table.path), **IN_TASKS)
    return replace(work, executor=SparkExecutor(spark, work.options))


def test_slices_are_merged_by_tasks(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, p string, n bigint, tags array<string>",
        key="id",
        partition_by=["p"],
        order_by="n",
        type="MERGE_ON_READ",
        buckets=2,
    )
    for n in range(1, 4):
        ids = [f"{p}{i}" for p in "abc" for i in range(n, 20)]
        table.upsert([{"id": i, "p": i[0], "n": n, "tags": [i]} for i in ids])
    table.delete(["a5", "b6"])

    def rows() -> list[dict[str, Any]]:
        found = lw.open_table(table.path).scan(columns=["*", "_hoodie_commit_time"])
        return found.to_arrow().sort_by("id").to_pylist()

    before = rows()
    merged = log_compact(on_spark(spark, table))
    assert merged.instant is not None
    assert merged.instant.action is Action.DELTACOMMIT
    assert rows() == before
    done = compact(on_spark(spark, table))
    assert done.total.groups == 6
    assert done.total.rows == len(before)
    assert rows() == before
    assert left_behind(lw.open_table(table.path)) == []
    assert lw.open_table(table.path).fsck().ok
