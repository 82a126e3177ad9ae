"""Rollbacks, savepoints and restores: rows after them, and what they refuse."""

import contextlib
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import hudi
import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.model.errors import AlreadyExists, Conflict, HistoryGone, InstantNotFound, Invalid
from lakewright.model.instant import Action, State
from lakewright.model.table import TableType
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_upkeep import StorageUpkeep
from support.faulty_storage import Crash, Fault, FaultyStorage

Rows = dict[str, tuple[str, int]]
KINDS = [
    pytest.param((version, kind, buckets), id=f"v{version}-{kind}-{buckets or 'lookup'}")
    for version in (9, 6)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for buckets in (None, 2)
]


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    version, kind, buckets = request.param
    return lw.create_table(
        tmp_path / "t",
        schema="id string, dt string, n bigint",
        key="id",
        partition_by=["dt"],
        order_by="n",
        type=kind,
        buckets=buckets,
        version=version,
    )


def rows(table: Table) -> Rows:
    found = table.scan().to_arrow().to_pylist()
    return {row["id"]: (row["dt"], row["n"]) for row in found}


def by_hudi(table: Table) -> Rows:
    batches = hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    found = [row for batch in batches for row in batch.to_pylist()]
    return {row["id"]: (row["dt"], row["n"]) for row in found}


def put(table: Table, *found: tuple[str, str, int]) -> str:
    result = table.upsert([{"id": i, "dt": dt, "n": n} for i, dt, n in found])
    assert result.instant is not None
    return result.instant.requested


STEPS: list[Callable[[Table], object]] = [
    lambda t: put(t, ("a", "1", 1), ("b", "1", 1), ("c", "2", 1)),
    lambda t: put(t, ("a", "1", 2), ("d", "3", 2)),
    lambda t: t.delete(["b"]),
    lambda t: t.insert_overwrite([{"id": "e", "dt": "2", "n": 5}]),
    lambda t: put(t, ("a", "1", 6), ("e", "2", 6), ("f", "4", 6)),
    lambda t: t.delete_partitions(["dt=3"]),
    lambda t: t.add_columns("more string"),
]


def history(table: Table) -> list[tuple[str, Rows]]:
    """Write a history of all kinds of writes; return instants with the rows after each."""
    found = []
    for step in STEPS:
        step(table)
        latest = table.timeline.latest_data()
        assert latest is not None
        found.append((latest.requested, rows(table)))
    return found


def test_the_newest_writes_are_rolled_back_one_after_the_other(table: Table) -> None:
    states = history(table)
    before: Rows = {}
    for (instant, _), (_, before) in zip(states[::-1], states[-2::-1], strict=False):
        done = table.rollback(instant)
        assert done.action is Action.ROLLBACK
        assert rows(table) == before
        assert by_hudi(table) == before
        assert table.fsck(deep=True).ok
        assert instant not in {i.requested for i in table.timeline.instants}
    put(table, ("z", "9", 9))
    assert rows(table) == {**before, "z": ("9", 9)}


def test_a_restore_goes_back_to_any_write_that_is_there(table: Table) -> None:
    states = history(table)
    for instant, wanted in states[::-2]:
        preview = table.plan_restore(instant)
        done = table.restore(instant)
        assert (done is None) == (not preview.undone)
        assert rows(table) == wanted
        assert by_hudi(table) == wanted
        assert table.fsck(deep=True).ok
    assert table.restore(states[0][0]) is None
    put(table, ("z", "9", 9))
    assert rows(table) == {**states[0][1], "z": ("9", 9)}


def test_a_savepoint_can_be_gone_back_to_many_times(table: Table) -> None:
    """Logs that later writes put into a slice of it are gone after the first time."""
    instant = put(table, ("a", "1", 1), ("c", "2", 1))
    wanted = rows(table)
    put(table, ("a", "1", 2))
    table.savepoint(instant)
    for n in (3, 4):
        put(table, ("a", "1", n), ("c", "2", n))
        table.restore(instant)
        assert table.restore(instant) is None
        assert rows(table) == wanted
        assert by_hudi(table) == wanted


@pytest.mark.parametrize("policy", ["commits", "versions"])
def test_groups_that_came_and_went_since_are_not_missed(table: Table, policy: str) -> None:
    """Overwrites replace each other's groups, and a cleaning takes those."""
    put(table, ("a", "1", 1), ("b", "1", 1), ("c", "2", 1))
    wanted = rows(table)
    saved = table.savepoint()
    for n in (2, 3, 4):
        table.insert_overwrite_table([{"id": "a", "dt": "1", "n": n}])
        if n == 3:
            put(table, ("d", "1", n))
    assert table.clean(policy=policy, retain=1).total.files_deleted
    table.restore(saved.requested)
    assert rows(table) == wanted
    assert by_hudi(table) == wanted
    assert table.fsck(deep=True).ok


def test_a_write_comes_back_while_its_own_files_are_there(tmp_path: Path) -> None:
    """Without a savepoint too: the undone writes tell which groups are theirs."""
    table = lw.create_table(tmp_path / "t", schema="id string, dt string, n bigint", key="id")
    first = put(table, ("a", "1", 1))
    saved = table.savepoint()
    table.insert_overwrite_table([{"id": "b", "dt": "1", "n": 2}])
    put(table, ("c", "1", 3))
    table.cluster(sort_by=["id"])
    table.insert_overwrite_table([{"id": "d", "dt": "1", "n": 4}])
    put(table, ("e", "1", 5))
    assert table.clean(policy="versions", retain=1).total.files_deleted
    table.delete_savepoint(saved.requested)
    table.restore(first)
    assert rows(table) == {"a": ("1", 1)}


def test_the_state_of_a_savepoint_comes_back_whatever_came_after(table: Table) -> None:
    put(table, ("a", "1", 1), ("c", "2", 1))
    wanted = rows(table)
    saved = table.savepoint(note="before the load", by="me")
    assert saved.action is Action.SAVEPOINT
    history(table)
    assert "7 instants are undone" in str(table.plan_restore(saved.requested))
    table.restore(saved.requested)
    assert rows(table) == wanted
    assert table.scan(as_of=saved.requested).count() == 2
    metadata = table.timeline.metadata(saved)
    assert (metadata.by, metadata.comments) == ("me", "before the load")  # type: ignore[union-attr]


def test_what_would_lose_rows_is_refused(table: Table) -> None:
    first = put(table, ("a", "1", 1))
    second = put(table, ("a", "1", 2))
    with pytest.raises(Conflict, match="took effect after"):
        table.rollback(first)
    table.savepoint(second)
    with pytest.raises(AlreadyExists, match="already"):
        table.savepoint(second)
    with pytest.raises(Conflict, match="savepoint"):
        table.rollback(second)
    with pytest.raises(Conflict, match="savepoint"):
        table.restore(first)
    table.delete_savepoint(second)
    with pytest.raises(InstantNotFound, match="no savepoint"):
        table.delete_savepoint(second)
    with pytest.raises(InstantNotFound):
        table.rollback("20200101000000000")
    with pytest.raises(InstantNotFound):
        table.restore("20200101000000000")
    table.restore(first)
    assert rows(table) == {"a": ("1", 1)}


def test_files_that_are_gone_are_missed_before_anything_is_undone(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id", order_by="n")
    first = table.upsert([{"id": "a", "n": 1}]).instant
    second = table.upsert([{"id": "a", "n": 2}]).instant
    assert first is not None
    assert second is not None
    old = next(p for p in (tmp_path / "t").glob(f"*_{first.requested}.parquet"))
    old.unlink()
    for undo in (table.rollback, table.restore):
        target = second if undo == table.rollback else first
        with pytest.raises(HistoryGone, match="1 files of the earlier state are gone"):
            undo(target.requested)
    assert table.scan().to_arrow().to_pylist() == [{"id": "a", "n": 2}]


def test_an_empty_table_has_nothing_to_keep(table: Table) -> None:
    with pytest.raises(Invalid, match="no write yet"):
        table.savepoint()


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("verb", ["rollback", "restore"])
def test_cut_off_anywhere_the_next_write_finishes_it(
    every: int, version: int, kind: str, verb: str, tmp_path: Path
) -> None:
    for calls in count(every, every):
        table = lw.create_table(
            tmp_path / str(calls),
            schema="id string, dt string, n bigint",
            key="id",
            partition_by=["dt"],
            order_by="n",
            type=kind,
            buckets=2,
            version=version,
        )
        states = []
        for step in STEPS[:4]:
            step(table)
            latest = table.timeline.latest_data()
            assert latest is not None
            states.append((latest.requested, rows(table)))
        target = states[-1][0] if verb == "rollback" else states[0][0]
        storage = FaultyStorage(open_storage(table.path), [Fault(at=calls, error=Crash)])
        try:
            getattr(Table(storage), verb)(target)
        except Crash:
            pass
        else:
            break
        known = [state for _, state in states]
        assert rows(table) in known
        assert by_hudi(table) in known
        # The dead one is found to be so at once: it was of this process, and stopped.
        put(table, ("z", "9", 9))
        after = rows(table)
        assert after.pop("z") == ("9", 9)
        expected = states[-2][1] if verb == "rollback" else states[0][1]
        begun = any(
            i.action in (Action.ROLLBACK, Action.RESTORE) for i in table.timeline.completed()
        )
        assert after == (expected if begun else states[-1][1])
        assert not [i for i in table.timeline.pending() if i.state is not State.COMPLETED]
        assert table.fsck(deep=True).ok
    assert calls > 10


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("finish", ["restore", "clean", "look_after"])
def test_a_restore_that_was_cut_off_is_finished(tmp_path: Path, version: int, finish: str) -> None:
    """By calling it again, wherever it was cut off; by services once it is on the timeline."""
    begun = 0
    for calls in count(0, 2):
        path = tmp_path / str(calls)
        table = lw.create_table(path, schema="id string, n bigint", key="id", version=version)
        times = [table.upsert([{"id": "a", "n": n}]).instant for n in range(3)]
        assert times[0] is not None
        storage = FaultyStorage(open_storage(table.path), [Fault(at=calls, error=Crash)])
        try:
            Table(storage).restore(times[0])
        except Crash:
            pass
        else:
            break
        announced = bool(table.timeline.by_action(Action.RESTORE))
        begun += announced
        match finish:
            case "restore":
                table.restore(times[0])
            case "clean":
                table.clean()
            case _:
                table.look_after()
        wanted = 0 if announced or finish == "restore" else 2
        assert table.scan().to_arrow()["n"].to_pylist() == [wanted]
        assert not table.timeline.pending()
        assert table.fsck(deep=True).ok
    assert begun > 3


@pytest.mark.parametrize("version", [9, 6])
def test_a_rollback_that_was_cut_off_is_finished_by_itself(tmp_path: Path, version: int) -> None:
    for calls in count(0, 2):
        path = tmp_path / str(calls)
        table = lw.create_table(path, schema="id string, n bigint", key="id", version=version)
        last = [table.upsert([{"id": "a", "n": n}]).instant for n in range(2)][-1]
        assert last is not None
        storage = FaultyStorage(open_storage(table.path), [Fault(at=calls, error=Crash)])
        try:
            Table(storage).rollback(last)
        except Crash:
            pass
        else:
            break
        finished = [i for i in table.timeline.completed() if i.action is Action.ROLLBACK]
        if not finished:
            assert table.rollback(last).action is Action.ROLLBACK
        assert table.scan().to_arrow()["n"].to_pylist() == [0]
        assert not table.timeline.pending()
        assert table.fsck(deep=True).ok
    assert calls > 10


def test_a_restore_takes_a_dead_write_back_first(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id")
    first = table.upsert([{"id": "a", "n": 0}]).instant
    assert first is not None
    table.upsert([{"id": "a", "n": 1}])
    fault = Fault("create", path=".commit", at=1, error=Crash)
    with contextlib.suppress(Crash):
        Table(FaultyStorage(open_storage(table.path), [fault])).upsert([{"id": "a", "n": 2}])
    assert table.timeline.pending()
    table.restore(first)
    assert table.scan().to_arrow()["n"].to_pylist() == [0]


def test_a_restore_that_another_one_began_keeps_writers_out(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id", order_by="n")
    table.upsert([{"id": "a", "n": 1}])
    state = open_state(open_storage(table.path))
    # As Hudi begins one: no heartbeat, and files of this moment.
    upkeep = StorageUpkeep(state.storage, state.config, {})
    begun = upkeep.schedule(Action.RESTORE, lambda view, instant: b"")
    assert begun is not None
    with pytest.raises(Conflict, match="has not finished"):
        table.upsert([{"id": "a", "n": 2}])


def _cut_off_savepoints(folder: Path, version: int, **options: str) -> list[Table]:
    """Return tables whose savepoint stopped at each of its storage calls, those without one."""
    found = []
    for number in count():
        properties = {key.replace("__", "."): value for key, value in options.items()}
        table = lw.create_table(
            folder / f"t{number}",
            schema="id string, n bigint",
            key="id",
            version=version,
            properties=properties,
        )
        table.upsert([{"id": "a", "n": 1}])
        faulty = FaultyStorage(open_storage(table.path), [Fault(at=number, error=Crash)])
        with contextlib.suppress(Crash):
            Table(faulty).savepoint(note="kept")
        if len(faulty.calls) <= number:
            return found
        if not list(table.savepoints()):
            found.append(table)
    raise AssertionError


@pytest.mark.parametrize("version", [9, 6])
def test_a_savepoint_that_was_cut_off_is_cleared_away(tmp_path: Path, version: int) -> None:
    eager = {"hoodie__cleaner__policy__failed__writes": "EAGER"}
    tables = _cut_off_savepoints(tmp_path, version, **eager)
    begun = [t for t in tables if t.timeline.by_action(Action.SAVEPOINT)]
    assert begun and len(begun) < len(tables)
    for table in begun:
        table.upsert([{"id": "a", "n": 2}])
        assert not table.timeline.by_action(Action.SAVEPOINT)
        table.savepoint(note="again")
        (saved,) = table.savepoints()
        assert saved.note == "again" and table.fsck().ok


def test_a_savepoint_of_others_is_left_for_as_long_as_it_may_be_alive(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id")
    table.upsert([{"id": "a", "n": 1}])
    (write,) = table.timeline.data()
    begun = Path(table.path, ".hoodie/timeline", f"{write.requested}.savepoint.inflight")
    begun.touch()
    table.upsert([{"id": "a", "n": 2}])
    assert begun.exists()
    os.utime(begun, (1, 1))
    table.upsert([{"id": "a", "n": 3}])
    assert not begun.exists()


def test_a_savepoint_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id")
    for number in range(3):
        table.upsert([{"id": "a", "n": number}])
    first = table.timeline.data()[0]
    # The plan waits: its files are there, and are going to be deleted.
    assert table.schedule_cleaning(policy="versions", retain=1) is not None
    for act in (table.plan_savepoint, table.savepoint):
        with pytest.raises((Conflict, HistoryGone)):
            act(first)
    assert not table.timeline.by_action(Action.SAVEPOINT)


def archived_all_but_one(table: Table) -> str:
    """Write rows into partitions of their own; return the only write that was not archived."""
    for key in "abcdabcd":
        put(table, (key, key, 1))
    if table.definition.table_type is TableType.MERGE_ON_READ:
        table.compact()
    else:
        table.clean(policy="versions", retain=1)
        put(table, ("e", "e", 1))
    table.archive(min_commits=1, max_commits=2)
    (last,) = table.timeline.data()
    return last.requested


def test_archived_rows_are_there_under_a_savepoint_on_all_that_is_left(table: Table) -> None:
    last = archived_all_but_one(table)
    before = rows(table)
    assert before.keys() >= set("abcd")
    table.savepoint(last)
    assert rows(table) == by_hudi(table) == before
    later = put(table, ("a", "a", 2), ("f", "f", 2))
    assert rows(table) == {**before, "a": ("a", 2), "f": ("f", 2)}
    table.rollback(later)
    assert rows(table) == by_hudi(table) == before
    put(table, ("a", "a", 3))
    table.restore(last)
    assert rows(table) == by_hudi(table) == before
    put(table, ("a", "a", 4))
    assert rows(table) == by_hudi(table) == {**before, "a": ("a", 4)}
    assert table.fsck(deep=True).ok


def test_the_only_write_that_is_left_is_not_taken_back(table: Table) -> None:
    last = archived_all_but_one(table)
    before = rows(table)
    with pytest.raises(HistoryGone, match="only write that has not been archived"):
        table.plan_rollback(last)
    with pytest.raises(HistoryGone, match="only write that has not been archived"):
        table.rollback(last)
    assert rows(table) == by_hudi(table) == before
