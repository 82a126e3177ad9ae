"""Orphan files go into quarantine, come back, or go for good; what is another file stays."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.lifecycle.known import kind_of
from lakewright.lifecycle.orphans import claims
from lakewright.lifecycle.orphans.planning import plan_orphans
from lakewright.lifecycle.plans.apply import (
    PURGES,
    purge_overdue,
    purge_plan,
    why_not_undoable,
)
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.quarantine import (
    QUARANTINE_FOLDER,
    held,
    list_quarantined,
    overdue,
    purge,
    put_aside,
    put_back,
)
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import (
    AlreadyExists,
    Conflict,
    HistoryGone,
    Invalid,
    InvalidOption,
    LakewrightError,
    NotFound,
)
from lakewright.storage.port import Storage
from support.dropping import memory, seen
from support.faulty_storage import Fault, FaultyStorage
from support.orphaned import (
    KIND,
    UNKNOWN,
    applied,
    base_name,
    later,
    looked_for,
    old_table,
    planned,
    strewn,
    targets,
    tree,
    undone,
)
from support.retention import instant
from support.servicing import servicing
from support.write_scenarios import rows, table_of


@pytest.fixture
def storage() -> Storage:
    made = memory()
    old_table(made)
    return made


def why_not(storage: Storage, plan: Plan) -> str | None:
    return why_not_undoable(servicing(storage), KIND, plan.id)


def test_out_and_back(storage: Storage) -> None:
    content, found = seen(storage), strewn(storage)
    before = tree(storage)
    plan = planned(storage)
    assert targets(plan) == sorted(found) and kind_of(plan).name == "orphans"
    assert plan.files == 4 and plan.bytes == sum(map(len, found.values()))
    assert f"no instant {UNKNOWN} claims it" in plan.items[0].reason
    assert plan.base.requested == instant(8)
    assert tree(storage) == before, "planning changes nothing"
    done = applied(storage, plan)
    assert done.done == tuple(sorted(found)) and not done.skipped and done.instant is None
    assert "4 done, 0 skipped, files lie in quarantine, can be undone until" in str(done)
    assert done.undo_until is not None
    kept_for = done.undo_until - datetime.now(UTC)
    assert timedelta(days=6.9) < kept_for <= timedelta(days=7)
    assert tree(storage) == {path: data for path, data in before.items() if path not in found}
    assert seen(storage) == content
    (aside,) = list_quarantined(storage)
    assert (aside.plan, aside.until, aside.bytes) == (plan.id, done.undo_until, plan.bytes)
    assert looked_for(storage, now=later()).empty
    assert why_not(storage, plan) is None
    back = undone(storage, plan)
    assert (back.how, back.restored, back.instant) == ("out of quarantine", done.done, None)
    assert tree(storage) == before and seen(storage) == content
    assert list(list_quarantined(storage)) == []
    record = PlanStore(storage).record(plan.id)
    assert record.state is PlanState.UNDONE
    assert [run.verb for run in PlanStore(storage).runs(plan.id)] == ["applying", "undoing"]
    with pytest.raises(Conflict, match="was undone already"):
        applied(storage, plan)


def test_a_plan_that_purges(storage: Storage) -> None:
    found = strewn(storage)
    before = tree(storage)
    plan = planned(storage, purge=True)
    assert "deletes them at once: no undo" in str(plan)
    assert json.loads(plan.to_json())["purge"] is True
    assert Plan.from_json(plan.to_json()) == plan
    assert why_not(storage, plan) == PURGES
    done = applied(storage, plan)
    assert done.done == tuple(sorted(found)) and done.undo_until is None
    assert "files are deleted" in str(done)
    assert tree(storage) == {path: data for path, data in before.items() if path not in found}
    assert why_not(storage, plan) == PURGES
    with pytest.raises(HistoryGone, match="without quarantine"):
        undone(storage, plan)
    assert list(list_quarantined(storage)) == []


def test_plans_of_before_do_not_purge() -> None:
    storage = memory()
    old_table(storage)
    strewn(storage)
    value = json.loads(looked_for(storage, now=later()).to_json())
    del value["purge"]
    assert Plan.from_json(json.dumps(value)).purge is False


def changed_file(storage: Storage, path: str) -> str:
    storage.write(path, b"another content")
    return "it is another file than when the plan was made"


def same_bytes_again(storage: Storage, path: str) -> str:
    storage.write(path, storage.read(path))
    return "it is another file than when the plan was made"


def gone_file(storage: Storage, path: str) -> str:
    storage.delete([path])
    return claims.GONE


def archived(storage: Storage, path: str) -> str:
    Table(storage).archive(min_commits=1, max_commits=2)
    return claims.COMMITTED


@pytest.mark.parametrize("purges", [False, True])
@pytest.mark.parametrize("change", [changed_file, same_bytes_again, gone_file])
def test_what_changed_is_skipped(storage: Storage, change: Any, purges: bool) -> None:
    found = sorted(strewn(storage))
    plan = planned(storage, purge=purges)
    why = change(storage, found[1])
    with pytest.raises(Conflict, match=r"1 of 4 files would be skipped.* Nothing was changed"):
        applied(storage, plan, strict=True)
    assert [path for path in found if storage.stat(path) is None] in ([], [found[1]])
    done = applied(storage, plan)
    assert done.done == (found[0], *found[2:])
    assert [(one.target, one.reason) for one in done.skipped] == [(found[1], why)]
    assert (storage.stat(found[1]) is None) == (change is gone_file)


@pytest.mark.parametrize("purges", [False, True])
def test_what_readers_count_meanwhile_is_skipped(storage: Storage, purges: bool) -> None:
    found = strewn(storage)
    plan = planned(storage, purge=purges)
    archived(storage, "")
    done = applied(storage, plan)
    assert not done.done and {one.reason for one in done.skipped} == {claims.COMMITTED}
    assert all(storage.read(path) == data for path, data in found.items())
    assert "nothing had to be done" in str(done)
    with pytest.raises(Invalid, match="changed nothing"):
        undone(storage, plan)


def test_rows_that_would_come_to_life_stay_in_quarantine(storage: Storage) -> None:
    strewn(storage)
    plan = planned(storage)
    applied(storage, plan)
    archived(storage, "")
    why = why_not(storage, plan)
    assert why is not None and "readers would take their rows for committed" in why
    with pytest.raises(HistoryGone, match="would take their rows for committed"):
        undone(storage, plan)
    assert len(held(storage, plan.id).files) == 4  # type: ignore[union-attr]
    # An undo that had begun does not go on, either.
    PlanStore(storage).begin(plan.id, "undoing", "ann", datetime.now(UTC))
    with pytest.raises(HistoryGone, match="would take their rows for committed"):
        undone(storage, plan)


def test_a_file_has_come_under_the_name_of_one_that_went(storage: Storage) -> None:
    path = sorted(strewn(storage))[0]
    plan = planned(storage)
    applied(storage, plan)
    storage.write(path, b"new")
    with pytest.raises(AlreadyExists, match="another file now"):
        undone(storage, plan)
    assert storage.read(path) == b"new" and len(held(storage, plan.id).files) == 4  # type: ignore[union-attr]
    storage.delete([path])
    assert path in undone(storage, plan).restored


def test_after_the_retention(storage: Storage) -> None:
    strewn(storage)
    plan = planned(storage, lakewright__quarantine__retention="30m")
    done = applied(storage, plan)
    assert done.undo_until is not None
    assert done.undo_until - datetime.now(UTC) <= timedelta(minutes=30)
    work = servicing(storage)
    assert purge_overdue(work, datetime.now(UTC)) == ()
    (purged,) = purge_overdue(work, done.undo_until, by="the clock")
    assert [path for path, _ in purged.files] == list(done.done)
    last = list(PlanStore(storage).runs(plan.id))[-1]
    assert (last.verb, last.by) == ("purging", "the clock")
    assert why_not(storage, plan) == "its files were purged from quarantine"
    with pytest.raises(HistoryGone, match="purged from quarantine"):
        undone(storage, plan)


def test_a_purge_that_took_a_part(storage: Storage) -> None:
    found = sorted(strewn(storage))
    plan = planned(storage)
    applied(storage, plan)
    storage.delete([f"{QUARANTINE_FOLDER}/{plan.id}/{found[2]}"])
    assert why_not(storage, plan) == f"1 of its 4 files were purged, the first is {found[2]}"
    with pytest.raises(HistoryGone, match="1 of its 4 files"):
        undone(storage, plan)


def test_ending_the_retention_early(storage: Storage) -> None:
    found = strewn(storage)
    plan = planned(storage)
    with pytest.raises(NotFound, match="no files in quarantine"):
        purge_plan(servicing(storage), plan.id)
    applied(storage, plan)
    gone = purge_plan(servicing(storage), plan.id, by="bob")
    assert {path for path, _ in gone.files} == set(found)
    assert not list(storage.list(QUARANTINE_FOLDER, recursive=True))
    run = PlanStore(storage).runs(plan.id)[-1]
    assert (run.verb, run.by) == ("purging", "bob") and run.result.startswith("purged 4 files")
    assert "purged from quarantine" in (why_not(storage, plan) or "")
    with pytest.raises(NotFound):
        purge_plan(servicing(storage), plan.id)


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_no_purge_of_a_plan_that_was_cut_off(storage: Storage, verb: str) -> None:
    strewn(storage)
    plan = planned(storage)
    if verb == "undo":
        applied(storage, plan)
    cut_off(storage, plan, verb, moves=2)
    with pytest.raises(Conflict, match=f"{verb} it again"):
        purge_plan(servicing(storage), plan.id)


def cut_off(storage: Storage, plan: Plan, verb: str, moves: int, kind: str = "move") -> None:
    """Begin, and fail at a move, or deletion, of a file."""
    where = "p=" if verb == "apply" else QUARANTINE_FOLDER
    faulty = FaultyStorage(storage, [Fault(kind, at=moves, path=where)])
    with pytest.raises(LakewrightError, match="told to fail"):
        (applied if verb == "apply" else undone)(faulty, plan)


def nothing_moves(storage: Storage, plan: Plan) -> None:
    faulty = FaultyStorage(storage, [Fault("move", at=at, path="p=") for at in range(4)])
    with pytest.raises(LakewrightError, match="told to fail"):
        applied(faulty, plan)


def test_an_apply_that_was_cut_off_goes_on(storage: Storage) -> None:
    found = strewn(storage)
    plan = planned(storage)
    cut_off(storage, plan, "apply", moves=2)
    assert 0 < sum(storage.stat(path) is not None for path in found) < 4
    done = applied(storage, plan)
    assert done.resumed and done.done == tuple(sorted(found)) and not done.skipped
    assert undone(storage, plan).restored == done.done
    assert {path: storage.read(path) for path in found} == found


def test_what_goes_later_has_its_whole_time_in_quarantine(storage: Storage) -> None:
    strewn(storage)
    plan = planned(storage)
    cut_off(storage, plan, "apply", moves=2)
    done = applied(storage, plan, lakewright__quarantine__retention="30d")
    aside = held(storage, plan.id)
    assert aside is not None and aside.until == done.undo_until
    assert aside.until > datetime.now(UTC) + timedelta(days=29)


@pytest.mark.parametrize("purges", [False, True])
def test_what_was_not_moved_is_looked_at_again(
    storage: Storage, purges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days may lie between: the timeline may have moved past the instants of the files."""
    monkeypatch.setattr("lakewright.lifecycle.orphans.removing._BATCH", 1)
    found = strewn(storage)
    plan = planned(storage, purge=purges)
    cut_off(storage, plan, "apply", moves=2, kind="delete" if purges else "move")
    left = {path for path in found if storage.stat(path) is not None}
    assert 0 < len(left) < 4
    archived(storage, "")
    done = applied(storage, plan)
    assert {one.target: one.reason for one in done.skipped} == dict.fromkeys(left, claims.COMMITTED)
    assert set(done.done) == found.keys() - left and done.resumed
    assert {path for path in found if storage.stat(path) is not None} == left
    aside = held(storage, plan.id)
    assert (aside is None) == purges
    assert aside is None or {path for path, _ in aside.files} == set(done.done)


def test_an_undo_of_what_was_cut_off(storage: Storage) -> None:
    found = strewn(storage)
    before = tree(storage)
    plan = planned(storage)
    cut_off(storage, plan, "apply", moves=2)
    assert 0 < len(undone(storage, plan).restored) < 4
    assert tree(storage) == before and list(list_quarantined(storage)) == []
    record = PlanStore(storage).record(plan.id)
    assert record.applied is not None
    assert {one.target for one in record.applied.skipped} < found.keys()
    assert record.state is PlanState.UNDONE


def test_an_undo_of_what_had_moved_nothing(storage: Storage) -> None:
    strewn(storage)
    before = tree(storage)
    plan = planned(storage)
    nothing_moves(storage, plan)
    assert held(storage, plan.id) is not None
    with pytest.raises(Invalid, match="was not applied"):
        undone(storage, plan)
    assert tree(storage) == before and held(storage, plan.id) is None
    assert len(applied(storage, plan).done) == 4


def test_an_undo_does_not_delete_what_a_purge_left(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewright.lifecycle.orphans.removing._BATCH", 1)
    found = strewn(storage)
    plan = planned(storage, purge=True)
    cut_off(storage, plan, "apply", moves=1, kind="delete")
    left = {path for path in found if storage.stat(path) is not None}
    assert len(left) == 3
    with pytest.raises(HistoryGone, match="without quarantine"):
        undone(storage, plan)
    assert {path for path in found if storage.stat(path) is not None} == left


def test_a_file_that_goes_while_others_move(storage: Storage) -> None:
    """Somebody else deletes it between the last look and the move."""
    found = sorted(strewn(storage))
    plan = planned(storage)

    class Racing(FaultyStorage):
        def move(self, source: str, target: str) -> None:
            if source == found[1]:
                self.inner.delete([source])
            super().move(source, target)

    done = applied(Racing(storage), plan)
    assert done.done == (found[0], *found[2:])
    assert [(one.target, one.reason) for one in done.skipped] == [(found[1], "it is gone")]
    assert len(undone(storage, plan).restored) == 3


def test_a_copy_that_was_not_deleted_yet(storage: Storage) -> None:
    """A store that copies and deletes was cut off between the two, or within the copy."""
    found = sorted(strewn(storage))
    plan = planned(storage)
    nothing_moves(storage, plan)
    here = [path for path in found if storage.stat(path) is not None and storage.read(path)]
    whole, part = here[0], here[1]
    storage.write(f"{QUARANTINE_FOLDER}/{plan.id}/{whole}", storage.read(whole))
    storage.write(f"{QUARANTINE_FOLDER}/{plan.id}/{part}", b"")
    data = {path: storage.read(path) for path in here}
    done = applied(storage, plan)
    assert done.done == tuple(found) and not done.skipped
    assert not [path for path in found if storage.stat(path) is not None]
    undone(storage, plan)
    assert {path: storage.read(path) for path in here} == data


def test_the_cap(storage: Storage) -> None:
    found = strewn(storage)
    work = servicing(storage)
    capped = replace(work, options={**work.options, "lakewright.orphans.max-files": "3"})
    plan = plan_orphans(capped, now=later())
    assert len(plan.items) == 3
    (left,) = plan.skipped
    assert left.target == "*" and left.reason == (
        "1 more files are orphans, and a plan takes 3 at most (lakewright.orphans.max-files); "
        "the next plan takes them"
    )
    PlanStore(storage).save(plan)
    applied(storage, plan)
    assert set(targets(looked_for(storage, now=later()))) == found.keys() - set(targets(plan))


def test_kept_files_are_named_up_to_a_number(storage: Storage) -> None:
    for _ in range(30):
        storage.write(f"p=x/{base_name(token='a')}", b"")
    plan = looked_for(storage, now=later())
    named = [one for one in plan.skipped if one.target != "*"]
    (rest,) = [one for one in plan.skipped if one.target == "*"]
    assert len(named) == 20 and {one.reason for one in named} == {claims.NAMED_OTHERWISE}
    assert rest.reason == f"10 more files are kept: {claims.NAMED_OTHERWISE}"
    assert claims.NAMED_OTHERWISE in plan.explain(named[0].target)


def test_ages(storage: Storage) -> None:
    strewn(storage)
    with pytest.raises(Invalid, match=r"59m old .* Give 1h or more; 3d is the default"):
        looked_for(storage, older_than=timedelta(minutes=59))
    work = servicing(storage)
    short = replace(work, options={**work.options, "lakewright.orphans.older-than": "59m"})
    with pytest.raises(InvalidOption, match="at least 1h"):
        plan_orphans(short)
    day = replace(work, options={**work.options, "lakewright.orphans.older-than": "1d"})
    for clock, count in ((later(0.9), 0), (later(1.1), 4)):
        assert len(plan_orphans(day, now=clock).items) == count
        plan = looked_for(storage, now=clock, older_than=timedelta(days=1))
        assert len(plan.items) == count
        assert plan.options["lakewright.orphans.older-than"] == "1d"


def test_two_applies_at_once(storage: Storage) -> None:
    """The second comes while the first moves files."""
    strewn(storage)
    plan = planned(storage)
    told = []

    class Meanwhile(FaultyStorage):
        def move(self, source: str, target: str) -> None:
            if not told:
                told.append(source)
                with pytest.raises(Conflict, match="another process is applying"):
                    applied(self.inner, plan)
            super().move(source, target)

    assert len(applied(Meanwhile(storage), plan).done) == 4
    assert told
    with pytest.raises(Conflict, match="was applied already"):
        applied(storage, plan)


def test_two_plans_of_the_same_files(storage: Storage) -> None:
    strewn(storage)
    first, second = planned(storage), planned(storage)
    assert targets(first) == targets(second)
    applied(storage, first)
    done = applied(storage, second)
    assert not done.done and {one.reason for one in done.skipped} == {claims.GONE}
    assert len(undone(storage, first).restored) == 4


def test_writes_go_on_beside_it(storage: Storage) -> None:
    strewn(storage)
    plan = planned(storage)
    table = Table(storage)
    table.upsert(table_of(rows("zq", "x", 99)))
    applied(storage, plan)
    table.upsert(table_of(rows("kl", "y", 99)))
    content = seen(storage)
    undone(storage, plan)
    assert seen(storage) == content and Table(storage).fsck(deep=True).ok


def test_a_put_back_keeps_the_purger_away(storage: Storage) -> None:
    """Files whose time is over can still come back, and nothing takes them while they move."""
    found = strewn(storage)
    plan = planned(storage)
    put_aside(storage, plan.id, found, until=datetime(2026, 1, 1, tzinfo=UTC), why="test")

    class Purging(FaultyStorage):
        def move(self, source: str, target: str) -> None:
            assert overdue(self.inner, datetime.now(UTC)) == ()
            super().move(source, target)

    put_back(Purging(storage), plan.id)
    assert {path: storage.read(path) for path in found} == found
    with pytest.raises(NotFound):
        purge(storage, plan.id)
