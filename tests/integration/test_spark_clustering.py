"""Clustering by the tasks of a Spark session: the same rows, nothing left behind."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.actions.services.clustering import cluster
from lakewright.engine.spark.executor import SparkExecutor
from lakewright.storage.open import open_storage
from support.left_behind import left_behind
from support.servicing import servicing

pytestmark = pytest.mark.spark

#: Nothing is small enough for the driver's own threads, and row groups are copied.
IN_TASKS = {
    "lakewright__write__driver-work": "0",
    "lakewright__clustering__copied-row-group-bytes": "0",
}
SORTED = {
    "hoodie__clustering__plan__strategy__sort__columns": "n,id",
    "hoodie__layout__optimize__strategy": "HILBERT",
}


def test_groups_are_rewritten_by_tasks(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, p string, n bigint, tags array<string>",
        key="id",
        partition_by=["p"],
    )
    for n in range(1, 4):
        ids = [f"{p}{n}{i}" for p in "abc" for i in range(20)]
        table.bulk_insert([{"id": i, "p": i[0], "n": n, "tags": [i]} for i in ids])

    def rows() -> list[dict[str, Any]]:
        found = lw.open_table(table.path).scan(columns=["*", "_hoodie_commit_time"])
        return found.to_arrow().sort_by("id").to_pylist()

    before = rows()
    for options in (IN_TASKS, {**IN_TASKS, **SORTED}):
        work = servicing(open_storage(table.path), **options)
        done = cluster(replace(work, executor=SparkExecutor(spark, work.options)))
        assert (done.total.files_written, done.total.rows) == (3, len(before))
        assert rows() == before
    assert left_behind(lw.open_table(table.path)) == []
    assert lw.open_table(table.path).fsck().ok
