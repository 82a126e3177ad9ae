"""Log compaction: many logs become one, and no reader sees a difference."""

import shutil
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.actions.services.compaction import compact, schedule_compaction
from lakewright.actions.services.log_compaction import log_compact, schedule_log_compaction
from lakewright.actions.services.plan import ServicePlan
from lakewright.api.table import Table
from lakewright.format.hudi.log.blocks import HeaderKey
from lakewright.format.hudi.log.read import read_data, scan_blocks
from lakewright.format.hudi.log.write import avro_block
from lakewright.model.errors import Unsupported
from lakewright.model.instant import Action
from lakewright.model.services import ServiceResult
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support.grouped import META, PLAIN, by_hudi, grouped_table, put, rows
from support.servicing import servicing

THRESHOLD = "hoodie__log__compaction__blocks__threshold"


@pytest.fixture(params=["n", None], ids=["event-time", "commit-time"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return made(tmp_path, 9, request.param)


def made(folder: Path, version: int = 9, order: str | None = "n") -> Table:
    kind = {"type": "MERGE_ON_READ", "buckets": 1, "schema": PLAIN}
    return grouped_table(folder, version=version, order_by=order, **kind)


def history(table: Table) -> list[str]:
    """Updates, late rows, a hard delete, a row after it, a soft delete that stays."""
    found = [put(table, 5, "a1", "a2", "a3", "a4", "b1")]
    found += [put(table, 7, "a1", "a5"), put(table, 3, "a2", "a1")]
    table.delete(["a3", "a4"])
    return [*found, put(table, 4, "a4")]


def run(table: Table, threshold: str = "2") -> ServiceResult:
    return log_compact(servicing(open_storage(table.path), **{THRESHOLD: threshold}))


def plan_of(table: Table, threshold: str = "2") -> ServicePlan | None:
    return schedule_log_compaction(
        servicing(open_storage(table.path), **{THRESHOLD: threshold}), dry_run=True
    )


def test_rows_stay_and_later_writes_meet_what_they_would_have_met(table: Table) -> None:
    instants = history(table)
    before = rows(table)
    seen = {instant: rows(table, as_of=instant) for instant in instants}
    done = run(table)
    assert done.instant is not None
    assert (done.instant.action, done.total.groups, done.total.files_read) == (
        Action.DELTACOMMIT,
        1,
        4,
    )
    assert rows(table) == before == by_hudi(table)
    assert {instant: rows(table, as_of=instant) for instant in instants} == seen
    latest = max(i.completed or "" for i in table.timeline.data() if i != done.instant)
    assert table.incremental(latest, None).to_arrow().num_rows == 0
    body = open_state(open_storage(table.path)).timeline.commit_metadata(done.instant)
    assert (body.operation, body.compacted) == ("LOG_COMPACT", True)
    # The same late rows on a table that was never log-compacted end alike.
    twin = Path(table.path + "-twin")
    other = made(twin, order="n" if table.definition.ordering else None)
    history(other)
    for one in (table, other):
        put(one, 4, "a1", "a2", "a3", "a4")
    run(table)
    values = [[(row["id"], row["n"]) for row in rows(one)] for one in (table, other)]
    assert values[0] == values[1]
    before = rows(table)
    compact(servicing(open_storage(table.path)))
    assert rows(table) == before == by_hudi(table)
    assert lw.open_table(table.path).fsck().ok


def test_slices_with_few_logs_are_left_alone(tmp_path: Path) -> None:
    table = made(tmp_path)
    history(table)
    assert plan_of(table, "5") is None
    assert run(table, "4").instant is not None
    # What stands for others counts as one.
    assert plan_of(table, "2") is None
    put(table, 9, "a1")
    plan = plan_of(table, "2")
    assert plan is not None
    assert [item.partition for item in plan.items] == ["p=a"]


def test_a_group_has_one_plan_at_a_time(tmp_path: Path) -> None:
    table = made(tmp_path)
    history(table)
    work = servicing(open_storage(table.path), **{THRESHOLD: "2"})
    assert schedule_log_compaction(work) is not None
    assert schedule_compaction(servicing(open_storage(table.path))) is None
    before = rows(table)
    put(table, 8, "a2")  # while it waits
    after = rows(table)
    assert run(table).instant is not None
    assert rows(table) == after != before
    assert compact(servicing(open_storage(table.path))).instant is not None
    assert rows(table) == after == by_hudi(table)


def test_version_6_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, version=6)
    with pytest.raises(Unsupported, match="version 6"):
        run(table)


def test_slices_of_partial_updates_are_not_planned(tmp_path: Path) -> None:
    table = made(tmp_path)
    for number in range(3):
        put(table, number, "a1", "b1")
    before = table.timeline.instants
    newest = max(Path(table.path).glob("p=a/.*.log.*"), key=lambda path: path.stat().st_mtime_ns)
    storage = open_storage(table.path)
    with storage.open(f"p=a/{newest.name}") as opened:
        (block,) = scan_blocks(opened, newest.stat().st_size, newest.name)
        records = read_data(opened, block)
    header = {**block.header, HeaderKey.IS_PARTIAL: "true"}
    newest.write_bytes(avro_block(records.select(["id", "p", "n", *META]), header))
    plan = plan_of(table)
    assert plan is not None and [item.partition for item in plan.items] == ["p=b"]
    assert plan.passed_over == (("records are merged column by column", 1),)
    shutil.rmtree(Path(table.path, "p=b"))
    assert plan_of(table) is None and run(table).instant is None
    assert table.timeline.instants == before


def test_logs_wait_for_a_write_that_began_before_the_newest_of_them(tmp_path: Path) -> None:
    table = made(tmp_path, order=None)
    put(table, 1, "a1", "a2")
    put(table, 2, "a1")
    put(table, 3, "a1")
    begun = table.timeline.data()[-1]
    folder = Path(table.path, ".hoodie", "timeline")
    done = folder / f"{begun.requested}_{begun.completed}.deltacommit"
    aside = done.rename(tmp_path / "aside")  # as if it were still under way
    put(table, 4, "a2")
    assert run(table).instant is None
    plan = plan_of(table)
    assert plan is None
    newest = table.timeline.data()[-1].completed or "0"
    aside.rename(folder / f"{begun.requested}_{int(newest) + 1}.deltacommit")
    before = rows(table)
    assert run(table).instant is not None
    assert rows(table) == before
