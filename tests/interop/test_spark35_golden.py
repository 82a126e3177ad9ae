"""On PySpark 3.5, in one session with real Hudi: our DataFrames and Hudi's hold the same rows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from fixture_tables import table_names, table_params
from support.spark_rows import golden_rows

pytestmark = pytest.mark.interop

Table = Callable[[str], Path]


@pytest.mark.parametrize("name", table_params("golden"))
def test_our_frame_holds_what_hudi_reads(golden_table: Table, hudi_spark: Any, name: str) -> None:
    path = golden_table(name)
    ours = lw.open_table(path).scan(meta=True).to_spark(hudi_spark)
    theirs = hudi_spark.read.format("hudi").load(str(path))
    assert golden_rows(ours) == golden_rows(theirs.select(*ours.columns))


#: Tables whose overlay CI tries.
OVERLAID = {"mor_basic_v6", "mor_nested_v9", "mor_positions_v9", "mor_two_orderings_v9"}
MERGED = [n for n in table_names("golden") if n.startswith("mor_")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in OVERLAID else [pytest.mark.rest]) for n in MERGED]
    or table_params("golden"),
)
def test_so_does_the_overlay(golden_table: Table, hudi_spark: Any, name: str) -> None:
    from lakewright.engine.spark.scan import to_spark

    path = golden_table(name)
    plan = lw.open_table(path).scan(meta=True).plan()
    spec = replace(plan.spec, options={"lakewright.spark.merging": "overlay"})
    ours = to_spark(replace(plan, spec=spec), hudi_spark)
    theirs = hudi_spark.read.format("hudi").load(str(path))
    assert golden_rows(ours) == golden_rows(theirs.select(*ours.columns))


def test_the_data_source_says_what_it_needs() -> None:
    with pytest.raises(lw.LakewrightError, match=r"needs Spark 4\.0 or later.*to_spark"):
        import pyspark_lakewright  # noqa: F401
