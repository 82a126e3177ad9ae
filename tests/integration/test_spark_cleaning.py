"""Cleaning by the tasks of a Spark session: the same files go."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.actions.services.cleaning import clean
from lakewright.engine.spark.executor import SparkExecutor
from lakewright.storage.open import open_storage
from support.servicing import servicing

pytestmark = pytest.mark.spark


def test_files_are_deleted_by_tasks(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, p string, n bigint",
        key="id",
        partition_by=["p"],
        order_by="n",
        buckets=2,
    )
    for n in range(1, 6):
        table.upsert([{"id": f"{p}{i}", "p": p, "n": n} for p in "abc" for i in range(8)])
    before = table.scan().to_arrow().sort_by("id")
    work = servicing(
        open_storage(table.path),
        **{"hoodie.clean.commits.retained": "1", "lakewright.write.driver-work": "0"},
    )
    result = clean(replace(work, executor=SparkExecutor(spark, work.options)))
    assert result.total.files_deleted == 3 * 2 * 3
    assert len(list(tmp_path.glob("t/p=*/*.parquet"))) == 3 * 2 * 2
    assert table.scan().to_arrow().sort_by("id") == before
