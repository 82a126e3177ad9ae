"""Compaction beside real Hudi: it carries out our plans and we its, and both read the result."""

import uuid
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.services.compaction import compact, schedule_compaction
from lakewright.actions.services.log_compaction import log_compact, schedule_log_compaction
from lakewright.api.table import Table
from lakewright.model.instant import Action, Instant
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.hudi_writer import PLAIN
from support.servicing import servicing

pytestmark = pytest.mark.interop

NOW = ",".join(
    [
        *(f"{key}={value}" for key, value in PLAIN.items() if "max.delta.commits" not in key),
        "hoodie.compact.inline.max.delta.commits=1",
    ]
)


KINDS = [(9, 2), (9, None), (6, 2)]


@pytest.fixture(params=KINDS, ids=lambda kind: f"v{kind[0]}-{kind[1]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return table_of(tmp_path, *request.param)


def table_of(folder: Path, version: int, buckets: int | None) -> Table:
    made = lw.create_table(
        folder / f"t{uuid.uuid4().hex[:8]}",
        schema="id string, p string, n bigint, tags array<string>, at struct<x: int, y: string>",
        key="id",
        partition_by=["p"],
        order_by="n",
        type="MERGE_ON_READ",
        buckets=buckets,
        version=version,
    )
    put(made, 1, "a1", "a2", "a3", "b1", "b2")
    put(made, 3, "a1", "a4", "b1")
    put(made, 2, "b2", "a1")
    made.delete(where="id in ('a3', 'b1')")
    return made


def put(table: Table, n: int, *ids: str) -> None:
    rows = [{"id": i, "p": i[0], "n": n, "tags": [i, str(n)], "at": {"x": n, "y": i}} for i in ids]
    table.upsert(pa.Table.from_pylist(rows, schema=table.schema))


EXPECTED = {("a1", 3), ("a2", 1), ("a4", 3), ("b2", 2)}


def rows(found: Any) -> set[tuple[str, int]]:
    return {(row["id"], row["n"]) for row in found}


def check_readers(spark: Any, table: Table, expected: set[tuple[str, int]] = EXPECTED) -> None:
    """All readers see the rows, and each of them its commit time."""
    ours = lw.open_table(table.path).scan(meta=True).to_arrow().to_pylist()
    theirs = [r.asDict() for r in spark.read.format("hudi").load(table.path).collect()]
    rust = pa.Table.from_batches(
        hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    ).to_pylist()
    times = {(row["id"], row["_hoodie_commit_time"]) for row in ours}
    assert rows(ours) == rows(theirs) == rows(rust) == expected
    assert times == {(row["id"], row["_hoodie_commit_time"]) for row in theirs}
    assert times == {(row["id"], row["_hoodie_commit_time"]) for row in rust}


def call(spark: Any, table: Table, operation: str, instant: str | None = None) -> list[Any]:
    at = "" if instant is None else f", timestamp => {instant}"
    given = f"op => '{operation}', path => '{table.path}'{at}, options => '{NOW}'"
    return list(spark.sql(f"CALL run_compaction({given})").collect())


def is_compacted(table: Table) -> bool:
    view = open_state(open_storage(table.path)).timeline
    done = [e for e in view.entries if e.planned is Action.COMPACTION]
    return bool(done) and all(e.instant.is_completed for e in done)


def test_hudi_lists_and_carries_out_our_plan(hudi_spark: Any, table: Table) -> None:
    plan = schedule_compaction(servicing(open_storage(table.path)))
    assert plan is not None and plan.instant is not None
    shown = hudi_spark.sql(f"CALL show_compaction(path => '{table.path}')").collect()
    assert plan.instant.requested in str(shown)
    check_readers(hudi_spark, table)
    call(hudi_spark, table, "run", plan.instant.requested)
    assert is_compacted(table)
    check_readers(hudi_spark, table)
    put(table, 9, "a2")
    check_readers(hudi_spark, table, {*EXPECTED, ("a2", 9)} - {("a2", 1)})


def test_we_carry_out_the_plan_of_hudi(hudi_spark: Any, table: Table) -> None:
    call(hudi_spark, table, "schedule")
    done = compact(servicing(open_storage(table.path)))
    assert done.instant is not None
    assert is_compacted(table)
    check_readers(hudi_spark, table)
    # Its writer goes on, and it compacts what we compacted.
    put(table, 9, "a2")
    call(hudi_spark, table, "schedule")
    call(hudi_spark, table, "run")
    assert is_compacted(table)
    check_readers(hudi_spark, table, {*EXPECTED, ("a2", 9)} - {("a2", 1)})


def test_hudi_comes_back_to_partitions_that_our_plan_left_out(
    hudi_spark: Any, table: Table
) -> None:
    work = servicing(open_storage(table.path))
    plan = schedule_compaction(work, partitions=["p=a"])
    assert plan is not None
    assert {item.partition for item in plan.items} == {"p=a"}
    compact(servicing(open_storage(table.path)), plan.instant)
    put(table, 1, "c1")  # without a delta commit it plans nothing
    call(hudi_spark, table, "schedule")
    call(hudi_spark, table, "run")
    check_readers(hudi_spark, table, {*EXPECTED, ("c1", 1)})
    assert schedule_compaction(servicing(open_storage(table.path))) is None


def test_hudi_reads_and_compacts_what_a_log_compaction_left(
    hudi_spark: Any, tmp_path: Path
) -> None:
    table = table_of(tmp_path, 9, 2)
    work = servicing(open_storage(table.path), hoodie__log__compaction__blocks__threshold="2")
    assert schedule_log_compaction(work) is not None
    assert log_compact(servicing(open_storage(table.path))).instant is not None
    check_readers(hudi_spark, table)
    put(table, 9, "a2")
    after = {*EXPECTED, ("a2", 9)} - {("a2", 1)}
    check_readers(hudi_spark, table, after)
    call(hudi_spark, table, "schedule")
    call(hudi_spark, table, "run")
    assert is_compacted(table)
    check_readers(hudi_spark, table, after)


@pytest.mark.parametrize("order_by", ["n", None], ids=["event-time", "commit-time"])
def test_logs_of_writers_that_overlapped_are_merged_as_hudi_merges_them(
    hudi_spark: Any, tmp_path: Path, order_by: str | None
) -> None:
    """As by non-blocking concurrency control: the first that began is the last that ended."""
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, n bigint, v string",
        key="id",
        order_by=order_by,
        type="MERGE_ON_READ",
        buckets=1,
    )

    def put(value: str, *ids: str) -> Instant:
        table.upsert([{"id": i, "n": 1, "v": value} for i in ids])
        return table.timeline.data()[-1]

    put("base", "a", "b", "c")
    first = put("first", "a", "b")
    folder = Path(table.path, ".hoodie", "timeline")
    done = folder / f"{first.requested}_{first.completed}.deltacommit"
    aside = done.rename(tmp_path / "aside")
    second = put("second", "a", "c")
    aside.rename(folder / f"{first.requested}_{int(second.completed or 0) + 1}.deltacommit")
    expected = {("a", "second"), ("b", "first"), ("c", "second")}
    for _ in range(2):
        found = hudi_spark.read.format("hudi").load(table.path).collect()
        ours = table.scan().to_arrow().to_pylist()
        assert {(row["id"], row["v"]) for row in found} == expected
        assert {(row["id"], row["v"]) for row in ours} == expected
        table.compact()
