"""A change of version gives logs other names: what was dropped before comes back all the same."""

import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.actions.services.upgrading import upgrade
from lakewright.api.plans import TablePlan
from lakewright.api.table import Table
from lakewright.lifecycle.letting_go import let_go
from lakewright.model.errors import Corrupt
from lakewright.storage.open import open_storage
from lakewright.table.pins import load_pins
from lakewright.table.renamed_logs import RENAMED_FOLDER, note_renames, other_names
from support.faulty_storage import WRITING, Crash, Fault, FaultyStorage
from support.servicing import servicing

Rows = list[tuple[str, int]]
WANTED: Rows = [("a", 2), ("b", 1)]


def dropped(
    folder: Path,
    version: int = 9,
    *,
    later: bool = False,
    savepoint: str = "false",
    buckets: int | None = None,
) -> tuple[Table, TablePlan, Rows]:
    """A table of which the partition with logs went by a plan, and what an undo leads to."""
    table = lw.create_table(
        folder,
        schema="id string, v int, d string",
        key="id",
        partition_by=["d"],
        type="MERGE_ON_READ",
        version=version,
        buckets=buckets,
    )
    table.upsert([{"id": "a", "v": 1, "d": "a"}, {"id": "b", "v": 1, "d": "b"}])
    table.upsert([{"id": "a", "v": 2, "d": "a"}])
    given = {"lakewright.undo.savepoint": savepoint}
    plan = table.plan_delete_partitions(["d=a"], options=given)
    plan.apply()
    if later:
        table.upsert([{"id": "c", "v": 1, "d": "b"}])
    return table, plan, [*WANTED, ("c", 1)] if later else WANTED


def rows(table: Table) -> Rows:
    return sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("savepoint", ["false", "true"])
@pytest.mark.parametrize("path", [(9, 6), (9, 6, 9), (9, 8), (6, 9), (6, 9, 6)])
def test_rows_come_back_after_changes_of_version(
    path: tuple[int, ...], savepoint: str, later: bool, tmp_path: Path
) -> None:
    table, plan, wanted = dropped(tmp_path / "t", path[0], later=later, savepoint=savepoint)
    for version in path[1:]:
        table.upgrade(version)
        table = lw.open_table(tmp_path / "t")
    if path[-1] == 8:
        table.upgrade(9)  # version 8 is not written here
        table = lw.open_table(tmp_path / "t")
    back = table.plan(plan.id)
    assert back.why_not_undoable() is None
    assert back.undo().how.startswith("by a commit" if later else "by a rollback")
    assert rows(table) == wanted
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("buckets", [None, 1])
@pytest.mark.parametrize("later", [False, True])
def test_logs_under_their_new_names_are_pinned(
    later: bool, buckets: int | None, tmp_path: Path
) -> None:
    table, plan, wanted = dropped(tmp_path / "t", later=later, buckets=buckets)
    table.downgrade(6)
    table = lw.open_table(tmp_path / "t")
    there = {path.name for path in (tmp_path / "t/d=a").iterdir() if ".log." in path.name}
    assert there
    assert there <= load_pins(open_storage(table.path), 0.0).names("d=a")
    for _ in range(2):
        table.upsert([{"id": "b", "v": 1, "d": "b"}], options={"hoodie.clean.automatic": "false"})
    table.clean(retain=1, grace="0s")
    assert table.plan(plan.id).why_not_undoable() is None
    table.plan(plan.id).undo()
    assert rows(table) == wanted


@pytest.mark.parametrize("later", [False, True])
def test_an_apply_that_was_cut_off_before_is_undone_after(later: bool, tmp_path: Path) -> None:
    table, plan, wanted = dropped(tmp_path / "t", later=later)
    kept = tmp_path / "t/.hoodie/.lakewright/plans" / plan.id
    (kept / "applied.json").unlink()
    table.downgrade(6)
    table = lw.open_table(tmp_path / "t")
    table.plan(plan.id).undo()
    assert rows(table) == wanted


@pytest.mark.parametrize(("later", "every"), [(False, 3), (True, 4)])
def test_a_downgrade_that_was_cut_off_leaves_the_undo(
    later: bool, every: int, tmp_path: Path
) -> None:
    table, plan, wanted = dropped(tmp_path / "t", later=later)
    whole = _downgrade(table, tmp_path / "whole", None)
    calls = [call for call in whole.calls if call.verb in WRITING]
    numbers: dict[str, int] = {}
    for place, call in enumerate(calls):
        numbers[call.verb] = numbers.get(call.verb, -1) + 1
        if place % every:
            continue
        copy = tmp_path / f"at{place}"
        fault = Fault(call.verb, numbers[call.verb], after=bool(place % 2), error=Crash)
        assert _downgrade(table, copy, fault).crashed
        cut = lw.open_table(copy)
        assert cut.plan(plan.id).why_not_undoable() is None, call
        if place % 4 == 1:
            cut.upgrade(9)  # given up
            cut = lw.open_table(copy)
        cut.plan(plan.id).undo()
        assert rows(cut) == wanted, call
        cut.upgrade(6)
        assert rows(lw.open_table(copy)) == wanted, call
        shutil.rmtree(copy)


def _downgrade(table: Table, place: Path, fault: Fault | None) -> FaultyStorage:
    shutil.copytree(table.path, place)
    storage = FaultyStorage(open_storage(str(place)), [fault] if fault else [])
    with suppress(Crash):
        upgrade(servicing(storage), 6)
    return storage


def test_names_are_forgotten_with_the_last_plan_that_needs_them(tmp_path: Path) -> None:
    table, plan, _ = dropped(tmp_path / "t")
    table.downgrade(6)
    table = lw.open_table(tmp_path / "t")
    storage = open_storage(table.path)
    let_go(servicing(storage))
    assert other_names(storage)
    table.plan(plan.id).undo()
    let_go(servicing(storage), datetime.now(UTC) + timedelta(days=1))
    assert not other_names(storage)


def test_all_names_of_a_log_are_one(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    note_renames(storage, [("p/x", "p/y"), ("q/x", "q/z")])
    note_renames(storage, [("p/y", "p/w")])
    note_renames(storage, [("p/y", "p/w")])
    note_renames(storage, [])
    found = other_names(storage)
    assert found["p/x"] == found["p/w"] == {"p/x", "p/y", "p/w"}
    assert found["q/z"] == {"q/x", "q/z"}
    assert len(list((tmp_path / RENAMED_FOLDER).iterdir())) == 2


@pytest.mark.parametrize("text", ["{", "[1]", '["a"]', "[" * 100_000])
def test_damaged_names_stop_cleaning(text: str, tmp_path: Path) -> None:
    dropped(tmp_path / "t")
    storage = open_storage(tmp_path / "t")
    storage.write(f"{RENAMED_FOLDER}/x.jsonl", text.encode())
    with pytest.raises(Corrupt, match="Restore it from a copy"):
        load_pins(storage, 0.0)
