"""Changing a table's version: rows, history and changes stay; crashes; what is refused."""

import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.services.archiving import archive
from lakewright.actions.services.compaction import schedule_compaction
from lakewright.actions.services.savepoints import savepoint
from lakewright.actions.services.upgrading import MARKER_PATH, plan_upgrade, upgrade
from lakewright.api.table import Table
from lakewright.format.hudi.metadata.restore import SavepointMetadata
from lakewright.model.errors import Conflict, Corrupt, HistoryGone, Invalid, Unsupported
from lakewright.model.instant import Action
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.load import load_timeline
from lakewright.timeline.relayout import completion_times
from support.faulty_storage import WRITING, Crash, Fault, FaultyStorage
from support.grouped import PLAIN, grouped_table, put
from support.servicing import servicing

Picture = dict[str, object]
KINDS = [("COPY_ON_WRITE", 2), ("MERGE_ON_READ", 2), ("MERGE_ON_READ", None)]


def made(folder: Path, version: int, kind: str = "MERGE_ON_READ", buckets: int | None = 2) -> Table:
    return grouped_table(folder, version=version, type=kind, buckets=buckets, schema=PLAIN)


def history(table: Table) -> None:
    """All kinds of writes, a savepoint among them, and the first ones archived."""
    put(table, 1, "a0")
    put(table, 2, "a1", "a2", "b1", "c1")
    kept = put(table, 4, "a1", "b1", "b2")
    savepoint(work(table), kept, "before the deletes", "me")
    table.delete(["a2", "c1"])
    table.insert_overwrite([{"id": "c2", "p": "c", "n": 5}])
    put(table, 6, "a1", "c2")
    put(table, 3, "a1", "a3")


def work(table: Table, **options: str) -> Any:
    return servicing(open_storage(table.path), **options)


def change(table: Table, version: int) -> Any:
    return upgrade(work(table), version)


def version_of(table: Table) -> int:
    return open_state(open_storage(table.path)).config.version


def rows(table: Table, **how: str) -> object:
    try:
        found = table.scan(columns=["*", "_hoodie_commit_time"], **how).to_arrow()
    except HistoryGone as error:
        return type(error)
    return sorted(map(repr, found.to_pylist()))


def states(table: Table) -> Picture:
    """The rows at the head and at every instant."""
    shown: Picture = {i.requested: rows(table, as_of=i.requested) for i in table.timeline.data()}
    return {**shown, "head": rows(table)}


def picture(table: Table) -> Picture:
    """The same, and all changes."""
    changes = table.changes().to_arrow().to_pylist()
    told = [(c["op"], c["before"], c["after"]) for c in changes]
    return {**states(table), "changes": sorted(map(repr, told))}


def by_hudi(table: Table) -> object:
    batches = hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    found = pa.Table.from_batches(batches).select(["id", "p", "n", "_hoodie_commit_time"])
    return sorted(map(repr, found.to_pylist()))


def assert_same(table: Table, before: Picture) -> None:
    after = picture(table)
    # A compaction has come since; what it shows is the head.
    assert {key: after[key] for key in before} == before
    assert by_hudi(table) == before["head"]
    report = table.fsck(deep=True)
    assert report.ok, report.problems


@pytest.mark.parametrize(("kind", "buckets"), KINDS)
@pytest.mark.parametrize("path", [(6, 9, 6, 8, 6), (9, 6, 9, 8, 9)], ids=str)
def test_rows_history_and_changes_stay_up_and_down(
    path: tuple[int, ...], kind: str, buckets: int | None, tmp_path: Path
) -> None:
    table = made(tmp_path, path[0], kind, buckets)
    history(table)
    before = picture(table)
    for version in path[1:]:
        done = change(table, version)
        assert (done.to_version, version_of(table)) == (version, version)
        assert_same(table, before)
    assert not list(Path(table.path, ".hoodie/.lakewright").glob("upgrade*"))


@pytest.mark.parametrize(("first", "then"), [(6, 9), (9, 6)])
def test_the_new_table_is_written_as_any_other(first: int, then: int, tmp_path: Path) -> None:
    table = made(tmp_path, first)
    history(table)
    change(table, then)
    put(table, 9, "a1", "d1")
    shown = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert (shown["a1"], shown["d1"]) == (9, 9)
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize(("first", "then"), [(6, 9), (9, 6)])
def test_archived_instants_are_carried_over(first: int, then: int, tmp_path: Path) -> None:
    table = made(tmp_path, first, "COPY_ON_WRITE")
    for n in range(6):
        put(table, n, "a1", f"b{n}")
    few = {"hoodie__keep__min__commits": "2", "hoodie__keep__max__commits": "3"}
    assert archive(work(table, **few)).instants
    told = [(i.requested, i.action) for i in table.timeline.with_history()]
    before = picture(table)
    change(table, then)
    assert [(i.requested, i.action) for i in table.timeline.with_history()] == told
    assert_same(table, before)
    change(table, first)
    assert [(i.requested, i.action) for i in table.timeline.with_history()] == told
    assert_same(table, before)


def test_savepoints_name_renamed_logs(tmp_path: Path) -> None:
    table = made(tmp_path, 9)
    history(table)
    change(table, 6)
    (saved,) = table.timeline.by_action(Action.SAVEPOINT)
    body = table.timeline.metadata(saved)
    assert isinstance(body, SavepointMetadata)
    names = [(part, name) for part, held in body.partitions.items() for name in held.files]
    assert any(".log." in name for _, name in names)
    assert all(Path(table.path, part, name).is_file() for part, name in names)


@pytest.mark.parametrize(("first", "then"), [(6, 9), (9, 6)])
def test_a_savepoint_from_before_is_restored(first: int, then: int, tmp_path: Path) -> None:
    table = made(tmp_path, first)
    history(table)
    (saved,) = table.timeline.by_action(Action.SAVEPOINT)
    before = rows(table, as_of=saved.requested)
    change(table, then)
    assert table.restore(saved.requested) is not None
    assert rows(table) == before == by_hudi(table)
    put(table, 9, "a1")
    assert table.fsck(deep=True).ok


def test_a_plan_says_everything_and_changes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path, 9)
    history(table)
    before = {p: p.stat().st_mtime_ns for p in Path(table.path).rglob("*") if p.is_file()}
    plan = plan_upgrade(work(table), 6)
    after = {p: p.stat().st_mtime_ns for p in Path(table.path).rglob("*") if p.is_file()}
    assert after == before
    assert [step.what for step in plan.steps] == [
        "slices are compacted",
        "logs are renamed",
        "instants are written anew",
        "properties are replaced",
        "the old timeline is removed",
    ]
    told = json.loads(plan.to_json())
    assert (told["from"], told["to"], told["obstacles"]) == (9, 6, [])
    assert told["properties"]["hoodie.table.version"] == "6"
    assert "slices are compacted" in str(plan)


def test_planned_compactions_are_carried_out_first(tmp_path: Path) -> None:
    table = made(tmp_path, 6)
    history(table)
    assert schedule_compaction(work(table)) is not None
    put(table, 7, "a1")
    before = picture(table)
    done = change(table, 9)
    assert len(done.compactions) == 2
    assert_same(table, before)


def test_a_writer_from_before_meets_a_conflict(tmp_path: Path) -> None:
    table = made(tmp_path, 6, "COPY_ON_WRITE")
    put(table, 1, "a1")
    old = work(table)
    change(table, 9)
    with pytest.raises(Conflict, match="was changed since it was opened"):
        old.committer.begin(Action.COMMIT, "UPSERT")


def test_a_write_under_way_is_waited_for(tmp_path: Path) -> None:
    table = made(tmp_path, 9, "COPY_ON_WRITE")
    put(table, 1, "a1")
    busy = work(table)
    ticket = busy.committer.begin(Action.COMMIT, "UPSERT")
    for version in (8, 6):
        with pytest.raises(Unsupported, match=f"{ticket.instant} is under way"):
            change(table, version)
    busy.committer.abandon(ticket)
    assert change(table, 6).changed


def test_what_an_older_version_cannot_express_is_named(tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id string, n bigint, m bigint", key="id", order_by=["n", "m"]
    )
    table.upsert([{"id": "a", "n": 1, "m": 1}])
    for version in (6, 8):
        with pytest.raises(Unsupported, match="order rows by one column alone"):
            change(table, version)
    assert version_of(table) == 9


def test_a_metadata_table_is_refused_with_the_way_out(tmp_path: Path) -> None:
    table = made(tmp_path, 9)
    put(table, 1, "a1")
    place = Path(table.path, ".hoodie/metadata/files/x")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"x")
    with pytest.raises(Unsupported, match="disable-metadata"):
        change(table, 6)


def test_unknown_versions_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path, 9)
    with pytest.raises(Invalid, match="Allowed: 6, 8, 9"):
        change(table, 7)
    assert not change(table, 9).changed


def test_a_table_without_writes_changes_too(tmp_path: Path) -> None:
    table = made(tmp_path, 9)
    change(table, 6)
    put(table, 1, "a1")
    change(table, 9)
    assert table.fsck().ok


def test_a_cut_off_upgrade_of_others_is_not_overwritten(tmp_path: Path) -> None:
    table = made(tmp_path, 6, "COPY_ON_WRITE")
    put(table, 1, "a1")
    moved = Path(table.path, ".hoodie/timeline/20200101000000000_20200101000001000.commit")
    moved.parent.mkdir(parents=True, exist_ok=True)
    moved.write_bytes(b"")
    with pytest.raises(Corrupt, match="by other software was cut off"):
        change(table, 9)
    assert moved.exists()
    assert version_of(table) == 6


def test_completion_times_keep_the_order_of_requests(tmp_path: Path) -> None:
    table = made(tmp_path, 6, "COPY_ON_WRITE")
    for n in range(3):
        put(table, n, "a1")
    savepoint(work(table), None, "", "me")
    state = open_state(open_storage(table.path))
    honest = completion_times(state.timeline)
    copied = tmp_path / "copied"
    shutil.copytree(table.path, copied, copy_function=shutil.copyfile)
    late = completion_times(load_timeline(open_storage(str(copied)), state.config))
    writes = [i.requested for i in state.timeline.data()]
    for found in (honest, late):
        ends = [found[time, Action.COMMIT] for time in writes]
        assert all(time < end for time, end in zip(writes, ends, strict=True))
        assert all(end < time for end, time in zip(ends, writes[1:], strict=False))
    assert late[writes[-1], Action.SAVEPOINT] > writes[-1]
    assert honest[writes[0], Action.COMMIT] != late[writes[0], Action.COMMIT]


def test_no_two_instants_complete_at_one_time(tmp_path: Path) -> None:
    """Files of the timeline that were written within one tick of the store's clock."""
    table = made(tmp_path, 6, "COPY_ON_WRITE")
    for n in range(3):
        put(table, n, "a1")
        savepoint(work(table), None, "", "me")
    tick = time.time()
    for file in Path(table.path, ".hoodie").iterdir():
        os.utime(file, (tick, tick))
    change(table, 9)
    ends = [i.completed for i in lw.open_table(table.path).timeline.completed()]
    assert len(ends) == len(set(ends)) == 6
    assert lw.open_table(table.path).fsck().ok


# ------------------------------------------------------------------------------ crashes


def _crash_table(folder: Path, version: int, kind: str) -> Table:
    table = made(folder, version, kind)
    put(table, 2, "a1", "b1")
    put(table, 3, "a1")
    table.delete(["b1"])
    if kind == "MERGE_ON_READ":
        # Crashes of compactions are tested with them.
        table.upsert([{"id": "a1", "p": "a", "n": 4}])
    return table


@pytest.mark.parametrize(
    ("first", "then", "kind", "every"),
    [
        (6, 9, "COPY_ON_WRITE", 5),
        (9, 6, "MERGE_ON_READ", 9),
        (6, 9, "MERGE_ON_READ", 9),
        (9, 8, "COPY_ON_WRITE", 1),
        pytest.param(6, 9, "COPY_ON_WRITE", 1, marks=pytest.mark.slow),
        pytest.param(9, 6, "MERGE_ON_READ", 1, marks=pytest.mark.slow),
        pytest.param(6, 9, "MERGE_ON_READ", 1, marks=pytest.mark.slow),
    ],
)
def test_a_crash_at_any_call_leaves_one_table_or_the_other(
    first: int, then: int, kind: str, every: int, tmp_path: Path
) -> None:
    table = _crash_table(tmp_path, first, kind)
    before = picture(table)
    calls = [c for c in _run(table, tmp_path / "whole", None, then).calls if c.verb in WRITING]
    numbers: dict[str, int] = {}
    for place, call in enumerate(calls):
        numbers[call.verb] = numbers.get(call.verb, -1) + 1
        if place % every:
            continue
        for after in (False, True) if every == 1 else (bool(place % 2),):
            copy = tmp_path / f"at{place}{after}"
            fault = Fault(call.verb, numbers[call.verb], after=after, error=Crash)
            assert _run(table, copy, fault, then).crashed
            _check_crashed(lw.open_table(copy), before, first, then)
            shutil.rmtree(copy)


def _run(table: Table, place: Path, fault: Fault | None, version: int) -> FaultyStorage:
    shutil.copytree(table.path, place)
    storage = FaultyStorage(open_storage(str(place)), [fault] if fault else [])
    with suppress(Crash):
        upgrade(servicing(storage), version)
    return storage


def _check_crashed(table: Table, before: Picture, first: int, then: int) -> None:
    assert version_of(table) in (first, then)
    after = states(table)
    assert {key: after[key] for key in before.keys() & after.keys()} == {
        key: value for key, value in before.items() if key != "changes"
    }
    with suppress(HistoryGone):  # logs have their new names, and commits the old ones
        assert picture(table)["changes"] == before["changes"]
    change(table, then)
    assert_same(table, before)
    meta = Path(table.path, ".hoodie")
    assert not (meta / MARKER_PATH.removeprefix(".hoodie/")).exists()
    if then == 6:
        assert not list((meta / "timeline").rglob("*.*commit*"))
    else:
        assert not list(meta.glob("*.commit"))
    if then != 8:
        put(table, 9, "z1")
        assert table.fsck(deep=True).ok


def test_a_change_that_was_given_up_is_swept_away(tmp_path: Path) -> None:
    table = _crash_table(tmp_path, 9, "MERGE_ON_READ")
    before = picture(table)
    fault = Fault("write", path="hoodie.properties", error=Crash)
    copy = tmp_path / "copy"
    assert _run(table, copy, fault, 6).crashed
    table = lw.open_table(copy)
    done = change(table, 9)
    assert not done.changed
    assert done.files_removed
    assert_same(table, before)
    assert not list(Path(table.path, ".hoodie").glob("*.deltacommit"))
