"""Every table of real Hudi gives on Spark exactly the rows that Hudi returned."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fixture_tables import CLEANED, fixtures_root, is_saved, table_names, table_params
from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan
from lakewright.model.errors import HistoryGone, Unsupported
from lakewright.model.files import ReadingMode
from lakewright.storage.open import open_storage
from lakewright.table.state import TableState, open_state

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.engine.spark.scan import to_spark
from support.spark_rows import golden_rows, in_order, sample_rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Table = Callable[[str], Path]
Row = dict[str, Any]

golden = pytest.mark.parametrize("name", table_params("golden"))


@cache
def expected(family: str) -> dict[str, Any]:
    root = fixtures_root()
    assert root is not None
    return json.loads((root / f"{family}-expected.json").read_text())  # type: ignore[no-any-return]


def plan_of(state: TableState, *, merging: str = "auto", **request: Any) -> ScanPlan:
    plan = plan_scan(state, ScanRequest(**request))
    options = {**plan.spec.options, "lakewright.spark.merging": merging}
    return replace(plan, spec=replace(plan.spec, options=options))


@golden
def test_the_snapshot(name: str, golden_table: Table, spark: Any) -> None:
    state = open_state(open_storage(golden_table(name)))
    assert (
        golden_rows(to_spark(plan_of(state, meta=True), spark))
        == expected("golden")[name]["snapshot"]
    )


@pytest.mark.parametrize("name", table_params("hudi"))
def test_sample_tables(name: str, hudi_table: Table, spark: Any) -> None:
    state = open_state(open_storage(hudi_table(name)))
    if "lance" in name:
        with pytest.raises(Unsupported, match="Lance"):
            plan_of(state)
        return
    wanted = [
        {k: sorted(v) if k == "mapField" else v for k, v in row.items()}
        for row in expected("hudi")[f"{name}.zip"]["data"]
    ]
    assert sample_rows(to_spark(plan_of(state), spark)) == in_order(wanted)


MERGED = [n for n in table_names("golden") if n.startswith("mor_")]
#: Tables whose overlay is tried in the normal suite; the rest are slow tests.
OVERLAID = {"mor_basic_v6", "mor_nested_v9", "mor_positions_v9", "mor_two_orderings_v9"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in OVERLAID else [pytest.mark.slow]) for n in MERGED]
    or table_params("golden"),
)
def test_the_snapshot_under_an_overlay(name: str, golden_table: Table, spark: Any) -> None:
    state = open_state(open_storage(golden_table(name)))
    frame = to_spark(plan_of(state, merging="overlay", meta=True), spark)
    assert golden_rows(frame) == expected("golden")[name]["snapshot"]


@pytest.mark.slow
@golden
def test_the_read_optimised_snapshot(name: str, golden_table: Table, spark: Any) -> None:
    entry = expected("golden")[name]
    state = open_state(open_storage(golden_table(name)))
    plan = plan_of(state, meta=True, mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED)
    assert golden_rows(to_spark(plan, spark)) == entry.get("read_optimized", entry["snapshot"])


@pytest.mark.slow
@golden
def test_every_instant(name: str, golden_table: Table, spark: Any) -> None:
    state = open_state(open_storage(golden_table(name)))
    for instant in expected("golden")[name]["history"]:
        wanted, time = instant.get("rows_as_of"), instant["requested"]
        if isinstance(wanted, list):
            assert golden_rows(to_spark(plan_of(state, meta=True, as_of=time), spark)) == wanted
        elif wanted is not None and CLEANED in wanted and is_saved(state, time):
            # Hudi keeps the files and refuses to read them; here they are read.
            assert golden_rows(to_spark(plan_of(state, meta=True, as_of=time), spark))
        elif wanted is not None and CLEANED in wanted:
            with pytest.raises(HistoryGone):
                plan_of(state, meta=True, as_of=time)


@pytest.mark.slow
@golden
def test_every_window(name: str, golden_table: Table, spark: Any) -> None:
    state = open_state(open_storage(golden_table(name)))
    for window in expected("golden")[name]["incremental"]:
        times = {"start": window["after"], "end": window["upto"]}
        plan = plan_of(state, meta=True, mode=ReadingMode.INCREMENTAL, **times)
        assert golden_rows(to_spark(plan, spark)) == window["rows"], times


CHANGING = [n for n in table_names("golden") if "cdc" in n]


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "cow_cdc_full_v9" else [pytest.mark.slow]) for n in CHANGING]
    or table_params("golden"),
)
def test_the_change_stream(name: str, golden_table: Table, spark: Any) -> None:
    state = open_state(open_storage(golden_table(name)))
    window = expected("golden")[name]["cdc"]
    plan = plan_of(state, mode=ReadingMode.CDC, start=window["after"], end=window["upto"])
    assert golden_rows(to_spark(plan, spark)) == window["rows"]
