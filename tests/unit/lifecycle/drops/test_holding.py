"""Savepoints hold the files of a drop where others clean the table, as long as its undo window."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from lakewright.actions.services.views import savepoints
from lakewright.lifecycle.drops.holding import release_ended, wants_savepoint
from lakewright.lifecycle.plans.plan import Plan
from lakewright.model.errors import Conflict, InvalidOption
from lakewright.model.instant import Action
from lakewright.storage.port import Storage
from lakewright.table.pins import Pin, add_pin, list_pins
from lakewright.table.state import open_state
from support.dropping import applied, made_table, memory, of_partition, planned, seen, undone
from support.servicing import servicing
from support.write_scenarios import rows, table_of

ALWAYS = {"lakewright__undo__savepoint": "true"}


def saved(storage: Storage) -> list[str]:
    return [one.note for one in savepoints(open_state(storage).timeline)]


def note(plan: Plan) -> str:
    return f"for the undo of the plan {plan.id}"


def test_a_savepoint_is_made_before_the_drop_and_goes_with_the_undo() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    before = seen(storage)
    last = table.timeline.latest_data()
    assert last is not None
    plan = planned(storage)
    applied(storage, plan, **ALWAYS)
    (found,) = savepoints(open_state(storage).timeline)
    assert (found.note, found.instant.requested) == (note(plan), last.requested)
    assert undone(storage, plan).how == "by a rollback"
    assert saved(storage) == [] and seen(storage) == before


def kept_folders(storage: Storage) -> list[str]:
    return [file.path for file in storage.list("p=x", stats=False) if "_9999" in file.path]


def test_folders_are_kept_from_the_cleaner_of_others_and_freed() -> None:
    storage = memory()
    table = made_table(storage, "mor-v6-plain")
    table.savepoint(note="mine")
    before = seen(storage)
    plan = planned(storage)
    applied(storage, plan, **ALWAYS)
    (kept,) = kept_folders(storage)
    assert kept.startswith("p=x/.99999999-") and storage.read(kept) == b""
    # No reader sees it, and nothing is wrong with it.
    assert of_partition(seen(storage), "x") == Counter()
    assert "p=x" not in table.ttl.statistics().partitions
    report = table.fsck(deep=True)
    assert report.ok, report.problems
    # An undo that was cut off left its pin, which ends before the window does.
    add_pin(storage, Pin(f"{plan.id}-undo-1", 0.0, "an undo that died", {}))
    release_ended(servicing(storage), datetime.now(UTC))
    assert kept_folders(storage) == [kept]
    undone(storage, plan)
    assert kept_folders(storage) == [] and seen(storage) == before
    again = planned(storage)
    applied(storage, again, **ALWAYS, lakewright__undo__window="0s")
    release_ended(servicing(storage), datetime.now(UTC) + timedelta(seconds=1))
    assert kept_folders(storage) == []


def test_rows_come_back_with_a_savepoint_that_is_there() -> None:
    storage = memory()
    table = made_table(storage, "mor-v9-buckets")
    old = of_partition(seen(storage), "x")
    table.savepoint(note="mine")
    plan = planned(storage)
    applied(storage, plan, **ALWAYS)
    table.upsert(table_of(rows("q", "y", 5)))
    undone(storage, plan)
    assert saved(storage) == ["mine"]
    assert of_partition(seen(storage), "x") == old


def test_what_holds_files_goes_when_the_window_ends() -> None:
    storage = memory()
    made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    applied(storage, plan, **ALWAYS, lakewright__undo__window="1h")
    now = datetime.now(UTC)
    assert release_ended(servicing(storage), now) == ()
    assert saved(storage) == [note(plan)] and list(list_pins(storage))
    assert release_ended(servicing(storage), now + timedelta(hours=2)) == (plan.id,)
    assert saved(storage) == [] and not list(list_pins(storage))


def test_a_plan_that_is_refused_leaves_no_savepoint() -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    plan = planned(storage)
    table.upsert(table_of(rows("k", "x", 9)))
    with pytest.raises(Conflict):
        applied(storage, plan, strict=True, **ALWAYS)
    assert not applied(storage, plan, **ALWAYS).done
    assert saved(storage) == []


def test_unless_told_otherwise_there_is_one_though_nobody_else_cleans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = memory()
    table = made_table(storage, "cow-v9-plain")
    for n in range(3):
        table.upsert(table_of(rows("q", "y", n + 5)))
    assert table.clean(retain=1) is not None
    view = open_state(storage).timeline
    assert view.by_action(Action.CLEAN)
    auto = {"lakewright.undo.savepoint": "auto"}
    assert not wants_savepoint(view, auto)
    assert wants_savepoint(view, {})
    # Other software does not say so.
    monkeypatch.setattr("lakewright.lifecycle.drops.holding.PLANNED_BY", "nobody.says.that")
    assert wants_savepoint(view, auto)
    assert not wants_savepoint(view, {"lakewright.undo.savepoint": "false"})
    with pytest.raises(InvalidOption):
        wants_savepoint(view, {"lakewright.undo.savepoint": "maybe"})
