"""Rescaling by the tasks of a Spark session: the same rows, every one in its bucket."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.actions.buckets.rescale import rescale
from lakewright.actions.buckets.rescale_plan import plan_rescale
from lakewright.actions.buckets.rescale_undo import undo_rescale
from lakewright.actions.services.servicing import Servicing
from lakewright.api.table import Table
from lakewright.engine.spark.executor import SparkExecutor
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.left_behind import left_behind
from support.rescaling import check_law, content, filled_table, rows, rules, table_of
from support.servicing import servicing

pytestmark = pytest.mark.spark


def in_tasks(spark: Any, storage: Storage) -> Servicing:
    """Nothing is small enough for the driver's own threads, and memory is short."""
    options = {"lakewright__write__driver-work": "0", "lakewright__write__spill-bytes": "2000"}
    work = servicing(storage, **options)
    return replace(work, executor=SparkExecutor(spark, work.options))


@pytest.mark.parametrize("mor", [False, True], ids=["cow", "mor"])
def test_buckets_are_rescaled_by_tasks(spark: Any, tmp_path: Path, mor: bool) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage, mor=mor)
    table.upsert(table_of(rows(range(400), 4)))
    before = content(storage)
    work = in_tasks(spark, storage)
    done = rescale(work, plan_rescale(work, rules=rules(("p=x", 8), ("p=y", 3), default=4)))
    assert list(done.partitions) == ["p=x", "p=y"]
    assert content(storage) == before
    assert check_law(storage) == {"p=x": 8, "p=y": 3, "p=z": 4}
    table.upsert(table_of(rows(range(300, 420), 5)))
    before = content(storage)
    undo_rescale(in_tasks(spark, storage))
    assert content(storage) == before
    assert set(check_law(storage).values()) == {4}
    assert left_behind(Table(storage)) == []
    assert Table(storage).fsck().ok
