"""``Table.plan_orphans``, ``Table.quarantined``, ``TablePlan.purge``, by the clock of the day."""

import datetime as dt
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.lifecycle.letting_go import let_go
from lakewright.lifecycle.plans.records import PlanState
from lakewright.model.errors import HistoryGone, Invalid, InvalidOption, NotFound
from lakewright.storage.open import open_storage
from support.orphaned import age, old_table, strewn
from support.servicing import servicing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    storage = open_storage(tmp_path / "t")
    old_table(storage)
    for name in strewn(storage):
        age(storage, name)
    return tmp_path / "t"


def orphans(path: Path) -> list[str]:
    found = lw.open_table(path).fsck().notes
    return sorted(one.path for one in found if one.code == "orphan-file")


def test_a_plan_its_quarantine_and_its_undo(path: Path) -> None:
    table = lw.open_table(path)
    found = orphans(path)
    rows = table.scan().to_arrow().sort_by("id")
    plan = table.plan_orphans()
    assert [item.target for item in plan.items] == found and plan.state is PlanState.PLANNED
    assert table.quarantined() == [] and plan.quarantined() is None
    done = plan.apply()
    assert done.done == tuple(found) and orphans(path) == []
    (aside,) = table.quarantined()
    assert aside == plan.quarantined()
    assert (aside.plan, aside.bytes, aside.why) == (
        plan.id,
        plan.plan.bytes,
        "no instant claims them",
    )
    assert aside.until == done.undo_until
    assert str(aside).startswith(f"plan {plan.id}: 4 files of ")
    assert plan.preview_undo().targets == tuple(found)
    lw.open_table(path).plan(plan.id).undo()
    assert orphans(path) == found and table.quarantined() == []
    assert table.scan().to_arrow().sort_by("id").equals(rows)
    assert [run.verb for run in plan.runs()] == ["applying", "undoing"]


def test_a_purge_ends_the_retention(path: Path) -> None:
    plan = lw.open_table(path).plan_orphans()
    with pytest.raises(NotFound, match="no files in quarantine"):
        plan.purge()
    plan.apply()
    assert len(plan.purge().files) == 4
    assert plan.quarantined() is None
    with pytest.raises(HistoryGone, match="purged from quarantine"):
        plan.undo()
    assert "cannot be undone: its files were purged" in str(plan.preview_undo())
    assert [run.verb for run in plan.runs()] == ["applying", "purging"]


def test_deleting_at_once(path: Path) -> None:
    table = lw.open_table(path)
    plan = table.plan_orphans(purge=True)
    assert "without quarantine" in (plan.why_not_undoable() or "")
    assert len(plan.apply().done) == 4
    assert table.quarantined() == [] and orphans(path) == []
    assert "without quarantine" in (plan.why_not_undoable() or "")


def test_how_old_they_are(path: Path) -> None:
    table = lw.open_table(path)
    assert len(table.preview_orphans().items) == 4
    assert len(table.preview_orphans("29d").items) == 4
    assert table.preview_orphans("31d").empty
    assert table.preview_orphans(dt.timedelta(days=31)).empty
    assert table.preview_orphans(options={"lakewright.orphans.older-than": "31d"}).empty
    capped = table.preview_orphans(options={"lakewright.orphans.max-files": "1"})
    assert len(capped.items) == 1 and "3 more files are orphans" in str(capped)
    assert list(table.plans()) == [], "a preview is not kept"
    with pytest.raises(InvalidOption, match=r"'30m' is not allowed.*at least 1h"):
        table.plan_orphans("30m")
    with pytest.raises(InvalidOption, match="'soon' is not allowed"):
        table.plan_orphans("soon")
    with pytest.raises(Invalid, match="Give 1h or more"):
        table.plan_orphans(dt.timedelta(minutes=30))


def test_services_purge_what_has_lain_its_time(path: Path) -> None:
    table = lw.open_table(path)
    plan = table.plan_orphans(options={"lakewright.quarantine.retention": "2d"})
    assert plan.plan.options["lakewright.quarantine.retention"] == "2d"
    until = lw.open_table(path).plan(plan.id).apply().undo_until
    assert until is not None and until < dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    work = servicing(open_storage(path))
    let_go(work, until - dt.timedelta(seconds=1))
    assert len(table.quarantined()) == 1
    let_go(work, until)
    assert table.quarantined() == [] and plan.why_not_undoable() is not None
