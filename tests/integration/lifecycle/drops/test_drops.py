"""Plans drop partitions in one commit, leave alone what changed, and bring the rows back."""

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewright.api.table import Table
from lakewright.format.hudi.metadata.commit import PLAN_ENTRY, UNDO_ENTRY, CommitMetadata
from lakewright.lifecycle.drops.dropping import DropKind
from lakewright.lifecycle.drops.held import planned_services
from lakewright.lifecycle.plans.apply import apply_plan, undo_notes, why_not_undoable
from lakewright.lifecycle.plans.plan import Skipped
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import Conflict, HistoryGone, Invalid, Unavailable
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.pins import list_pins, load_pins
from lakewright.table.state import open_state
from support.dropping import (
    FEW,
    KIND,
    SHAPES,
    applied,
    by_hudi,
    made_table,
    memory,
    of_partition,
    planned,
    seen,
    undone,
    without,
)
from support.faulty_storage import Fault, FaultyStorage
from support.pairwise import thinned
from support.servicing import servicing
from support.write_scenarios import rows, table_of

pytest.importorskip("hudi", reason="the hudi package is not installed")


def newest(storage: Storage) -> CommitMetadata:
    view = open_state(storage).timeline
    last = view.latest_data()
    assert last is not None
    return view.commit_metadata(last)


@pytest.fixture(params=thinned({name: (name,) for name in SHAPES}))
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=FEW)
def some(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check_readers(storage: Storage) -> None:
    """Ours and the hudi package see the same, and the table is sound."""
    assert by_hudi(storage.uri) == seen(storage, meta=False)
    report = Table(storage).fsck(deep=True)
    assert report.ok, report.problems


def test_partitions_go_and_come_back_by_a_rollback(shape: str, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    made_table(storage, shape)
    before = seen(storage)
    plan = planned(storage, "p=x", "p=nowhere")
    assert [item.target for item in plan.items] == ["p=x"]
    assert plan.skipped == (Skipped("p=nowhere", "it holds no rows"),)
    assert plan.files and plan.bytes
    done = applied(storage, plan)
    assert (done.done, done.skipped) == (("p=x",), ())
    assert seen(storage) == without(before, "x")
    check_readers(storage)
    body = newest(storage)
    assert body.extra[PLAN_ENTRY] == plan.id
    assert body.operation == "DELETE_PARTITION"
    assert set(body.replaced) == {"p=x"}
    assert why_not_undoable(servicing(storage), KIND, plan.id) is None
    back = undone(storage, plan)
    assert back.how == "by a rollback"
    assert seen(storage) == before
    check_readers(storage)
    assert not list(list_pins(storage))
    assert PlanStore(storage).record(plan.id).state is PlanState.UNDONE
    Table(storage).upsert(table_of(rows("az", "x", 9)))
    check_readers(storage)


def test_rows_come_back_beside_those_written_since(shape: str, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = made_table(storage, shape)
    before = seen(storage)
    plan = planned(storage)
    applied(storage, plan)
    # One key of before with an older ordering value, one that is new, one in another partition.
    table.upsert(table_of(rows("az", "x", 0), rows("q", "y", 5)))
    table.upsert(table_of(rows("z", "x", 1)))
    since = seen(storage)
    back = undone(storage, plan)
    assert back.how.startswith("by a commit")
    old = of_partition(before, "x")
    won = Counter({row: n for row, n in old.items() if row[2] not in ("a", "id:a")})
    assert seen(storage) == since + won
    assert (back.rows, back.kept_out) == (sum(won.values()), 1)
    assert newest(storage).extra[UNDO_ENTRY] == plan.id
    check_readers(storage)
    table.upsert(table_of(rows("abz", "x", 9)))
    check_readers(storage)


def test_a_row_that_was_deleted_since_stays_out(shape: str, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = made_table(storage, shape)
    before = seen(storage)
    plan = planned(storage)
    applied(storage, plan)
    # Two keys of before are written anew, and one of them is deleted.
    table.upsert(table_of(rows("ab", "x", 9)))
    table.delete(table_of(rows("a", "x", 9)))
    since = seen(storage)
    (note,) = undo_notes(servicing(storage), KIND, plan.id)
    assert note.startswith("2 writes came since")
    back = undone(storage, plan)
    old = of_partition(before, "x")
    out = {row for row in old if row[2].removeprefix("id:") in ("a", "b")}
    assert len(out) == 2
    assert seen(storage) == since + Counter({r: n for r, n in old.items() if r not in out})
    assert (back.kept_out, back.deleted, back.untold) == (1, 1, 0)
    assert "1 stayed out because they were deleted since" in str(back)
    check_readers(storage)


@pytest.mark.parametrize("shape", ["cow-v9-plain", "mor-v9-plain", "mor-v6-buckets"])
def test_a_delete_counts_after_services_rewrote_the_files(shape: str) -> None:
    storage = memory()
    table = made_table(storage, shape)
    plan = planned(storage)
    applied(storage, plan)
    table.upsert(table_of(rows("abz", "x", 9)))
    table.delete(table_of(rows("a", "x", 9)))
    if shape.startswith("mor"):
        table.compact()
    table.upsert(table_of(rows("bz", "x", 10)))
    back = undone(storage, plan)
    assert (back.kept_out, back.deleted, back.untold) == (1, 1, 0)
    assert "a" not in [row[0] for row in of_partition(seen(storage, meta=False), "x")]


def test_rows_of_a_later_drop_are_not_given_way_to_older_ones() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    first = planned(storage)
    applied(storage, first)
    table.upsert(table_of(rows("a", "x", 7)))
    newer = of_partition(seen(storage), "x")
    second = planned(storage)
    applied(storage, second)
    assert undone(storage, first).deleted == 1
    assert undone(storage, second).rows == 1
    assert of_partition(seen(storage), "x") & newer == newer


def test_deletes_that_no_file_tells_any_more_are_told() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    applied(storage, plan, **{"lakewright.undo.savepoint": "false"})
    table.upsert(table_of(rows("az", "x", 9)))
    table.delete(table_of(rows("a", "x", 9)))
    for number in range(3):
        table.upsert(table_of(rows("z", "x", 10 + number)))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    _, untold = undo_notes(servicing(storage), KIND, plan.id)
    assert untold == "1 later write deleted rows which no file tells any more: such rows come back"
    back = undone(storage, plan)
    assert (back.kept_out, back.deleted, back.untold) == (0, 0, 1)
    assert untold in str(back)
    assert "a" in [row[0] for row in of_partition(seen(storage, meta=False), "x")]


def test_a_key_that_moved_and_was_deleted_there_stays_out() -> None:
    storage = memory()
    table = made_table(storage, "mor-v6-global")
    plan = planned(storage)
    applied(storage, plan)
    table.upsert(table_of(rows("a", "y", 5)))
    table.delete(table_of(rows("a", "y", 5)))
    assert undone(storage, plan).deleted == 1
    assert "a" not in [row[0] for row in seen(storage, meta=False)]


def test_rows_come_back_into_an_empty_partition(some: str, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = made_table(storage, some)
    before = seen(storage)
    plan = planned(storage, "p=x", "p=y")
    applied(storage, plan)
    assert not seen(storage)
    table.upsert(table_of(rows("uvw", "z", 5)))
    back = undone(storage, plan)
    assert back.rows == sum(before.values())
    assert without(seen(storage), "z") == before
    check_readers(storage)


def test_a_key_that_moved_to_another_partition_stays_there(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = made_table(storage, "cow-v9-global")
    plan = planned(storage)
    applied(storage, plan)
    table.upsert(table_of(rows("a", "y", 5)))
    undone(storage, plan)
    where = [row[1] for row in seen(storage, meta=False) if row[0] == "a"]
    assert where == ["y"]
    check_readers(storage)


def test_rows_come_back_after_the_number_of_buckets_changed(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = made_table(storage, "cow-v9-rules")
    before = seen(storage)
    plan = planned(storage)
    applied(storage, plan)
    table.buckets.set("p=x,6;p=y,2")
    table.upsert(table_of(rows("az", "x", 0)))
    since = seen(storage)
    undone(storage, plan)
    old = of_partition(before, "x")
    assert seen(storage) == since + Counter({r: n for r, n in old.items() if r[2] != "a"})
    assert table.buckets.check().ok
    check_readers(storage)


def test_logs_that_deleted_rows_count(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = made_table(storage, "mor-v9-plain")
    table.delete(table_of(rows("c", "x", 9)))
    before = seen(storage)
    plan = planned(storage)
    applied(storage, plan)
    table.upsert(table_of(rows("ab", "x", 5)))
    table.delete(table_of(rows("a", "x", 9)))
    undone(storage, plan)
    found = Counter(row[0] for row in seen(storage, meta=False) if row[1] == "x")
    assert found == Counter("bde"), "a was deleted since, and c was gone before"
    assert sum(before.values())
    check_readers(storage)


def test_partitions_that_were_written_since_are_left_alone(some: str) -> None:
    storage = memory()
    table = made_table(storage, some)
    plan = planned(storage, "p=x", "p=y")
    table.upsert(table_of(rows("klt", "x", 7)))
    now = seen(storage)
    last = table.timeline.latest_data()
    assert last is not None
    with pytest.raises(Conflict, match="would be skipped"):
        applied(storage, plan, strict=True)
    assert seen(storage) == now
    done = applied(storage, plan)
    assert done.done == ("p=y",)
    assert [one.target for one in done.skipped] == ["p=x"]
    assert last.requested in done.skipped[0].reason or "files are others" in done.skipped[0].reason
    assert seen(storage) == without(now, "y")


def test_services_since_the_plan_are_no_writes() -> None:
    storage = memory()
    table = made_table(storage, "mor-v9-plain")
    plan = planned(storage)
    table.compact()
    assert applied(storage, plan, strict=True).done == ("p=x",)


@pytest.mark.parametrize("before_plan", [True, False])
def test_planned_services_come_first(before_plan: bool) -> None:
    storage = memory()
    table = made_table(storage, "mor-v9-plain")
    plan = None if before_plan else planned(storage)
    assert table.schedule_compaction() is not None
    if plan is None:
        plan = planned(storage)
        assert not plan.items and "compaction" in plan.skipped[0].reason
        return
    with pytest.raises(Conflict, match="compaction"):
        applied(storage, plan, strict=True)
    done = applied(storage, plan)
    assert not done.done and done.instant is None
    assert "compaction" in done.skipped[0].reason
    with pytest.raises(Invalid, match="changed nothing"):
        undone(storage, plan)


def test_a_write_that_was_taken_back_is_told() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    last = table.timeline.latest_data()
    assert last is not None
    table.rollback(last.requested)
    with pytest.raises(Conflict, match="that write was taken back"):
        applied(storage, plan)


def test_a_write_that_vanishes_while_it_is_looked_at_stops_nobody() -> None:
    storage = memory()
    made_table(storage, "cow-v9-plain")
    begun = ".hoodie/timeline/29990101000000000.replacecommit.requested"
    storage.write(begun, b"")
    seen = open_state(storage)
    storage.delete([begun])  # its writer takes it back
    assert planned_services(seen) == {}


def test_a_plan_is_applied_once() -> None:
    storage = memory()
    made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    with pytest.raises(Invalid, match="was not applied"):
        undone(storage, plan)
    applied(storage, plan)
    with pytest.raises(Conflict, match="was applied by"):
        applied(storage, plan)
    undone(storage, plan)
    with pytest.raises(Conflict, match="was undone already"):
        applied(storage, plan)
    with pytest.raises(Invalid, match="undone already"):
        undone(storage, plan)
    again = planned(storage)
    assert applied(storage, again).done == ("p=x",)
    assert planned(storage).empty, "what is empty is not picked again"


def test_a_lock_that_storage_cannot_tell_of_is_not_held_by_others(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "t"))
    made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    with pytest.raises(Unavailable, match="told to fail"):
        applied(FaultyStorage(storage, [Fault("create", path=f"{plan.id}.lock")]), plan)
    applied(storage, plan)


def test_a_plan_is_stale_by_what_it_was_made_by() -> None:
    storage = memory()
    made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    stale = DropKind(looks=lambda plan, state: ("the policy of p=* is another",))
    before = seen(storage)
    with pytest.raises(Conflict, match=r"the policy of p=\* is another"):
        apply_plan(servicing(storage), stale, plan.id)
    assert seen(storage) == before
    with pytest.raises(Invalid, match="of the kind"):
        apply_plan(servicing(storage), replace(stale, name="ttl"), plan.id)


def test_the_window_keeps_files_from_cleaning_and_then_lets_them_go() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    began = datetime.now(UTC)
    done = applied(storage, plan, lakewright__undo__window="2h")
    assert done.undo_until is not None
    assert abs(done.undo_until - began - timedelta(hours=2)) < timedelta(minutes=1)
    for n in range(3):
        table.upsert(table_of(rows("q", "y", n + 5)))
    table.clean(retain=1)
    assert why_not_undoable(servicing(storage), KIND, plan.id) is None
    undone(storage, plan)
    assert sum(of_partition(seen(storage), "x").values()) == 5


def test_what_was_cleaned_cannot_come_back() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    applied(storage, plan, lakewright__undo__window="0s")
    assert not load_pins(storage, time.time() + 1).ids
    for n in range(3):
        table.upsert(table_of(rows("q", "y", n + 5)))
    table.clean(retain=1)
    before = seen(storage)
    why = why_not_undoable(servicing(storage), KIND, plan.id)
    assert why is not None and "'p=x'" in why and "cleaned away" in why
    with pytest.raises(HistoryGone, match="'p=x'"):
        undone(storage, plan)
    assert seen(storage) == before


def test_a_drop_that_somebody_rolled_back_is_undone_already() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    before = seen(storage)
    plan = planned(storage)
    done = applied(storage, plan)
    assert done.instant is not None
    table.rollback(done.instant)
    table.upsert(table_of(rows("q", "y", 5)))
    assert undone(storage, plan).how == "by a rollback"
    assert of_partition(seen(storage), "x") == of_partition(before, "x")


def test_runs_are_recorded() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    plan = planned(storage, "p=x", "p=y")
    table.upsert(table_of(rows("klt", "x", 7)))
    with pytest.raises(Conflict):
        applied(storage, plan, strict=True)
    applied(storage, plan)
    undone(storage, plan)
    runs = PlanStore(storage).runs(plan.id)
    assert [run.verb for run in runs] == ["applying", "applying", "undoing"]
    assert "would be skipped" in runs[0].result
    assert all(run.by == "ann" and run.began <= run.ended for run in runs)
