"""Followers and streams that remember a write which a rollback or a restore took back since."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.actions.follow import Follow, WhenGone, check_read, plan_window
from lakewright.actions.scan import ScanRequest
from lakewright.model.files import ReadingMode
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.table.undone import undone_by

Make = Callable[..., lw.Table]


def row(key: str, n: int, p: str = "x") -> dict[str, Any]:
    return {"id": key, "n": n, "p": p}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(**details: Any) -> lw.Table:
        return lw.create_table(
            tmp_path / "t",
            schema="id string, n int, p string",
            key="id",
            partition_by="p",
            **details,
        )

    return made


def newest(table: lw.Table) -> str:
    return table.timeline.data()[-1].requested


def take_back(table: lw.Table, way: str) -> None:
    """Take the newest write back; there is a savepoint of the one before."""
    if way == "rollback":
        table.rollback(newest(table))
    else:
        table.restore(table.timeline.data()[-2].requested)


def read_to_end(table: lw.Table, start: str, **how: Any) -> str:
    for window in table.follow(start, **how):
        window.scan.to_arrow()
        start = window.end
    return start


@pytest.mark.parametrize("way", ["rollback", "restore"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("changes", [False, True])
def test_who_read_what_was_taken_back_is_told(
    make: Make, way: str, version: int, kind: str, changes: bool
) -> None:
    table = make(version=version, type=kind)
    table.upsert([row("a", 1)])
    table.savepoint(newest(table))
    before = read_to_end(table, "earliest", changes=changes)
    table.upsert([row("a", 2), row("b", 2)])
    after = read_to_end(table, before, changes=changes)

    take_back(table, way)
    with pytest.raises(lw.HistoryGone, match=f"{way} .* took writes back"):
        list(table.follow(after, changes=changes))
    table.upsert([row("c", 3)])
    with pytest.raises(lw.HistoryGone):
        list(table.follow(after, changes=changes))
    # Who had not read it yet has nothing to mend.
    assert read_to_end(table, before, changes=changes) > after
    assert read_to_end(table, "earliest", changes=changes) > after


def test_a_drop_that_was_undone_is_told_to_who_read_it(make: Make) -> None:
    table = make()
    table.upsert([row("a", 1, "x"), row("b", 1, "y")])
    plan = table.plan_delete_partitions([{"p": "x"}])
    plan.apply()
    done = read_to_end(table, "earliest", changes=True)
    plan.undo()
    with pytest.raises(lw.HistoryGone, match="follow it from latest"):
        list(table.follow(done, changes=True))


def test_going_on_is_a_choice(make: Make) -> None:
    table = make()
    table.upsert([row("a", 1)])
    table.upsert([row("b", 2)])
    after = read_to_end(table, "earliest")
    table.rollback(newest(table))
    state = open_state(open_storage(table.path, {}))
    request = ScanRequest(mode=ReadingMode.INCREMENTAL)
    check_read(state, Follow(request, when_gone=WhenGone.SKIP), after)
    # A reader of Spark before 4.2 may then be told of an end before its start.
    end = state.timeline.latest_completion()
    assert end is not None and end < after
    assert not plan_window(state, Follow(request, when_gone=WhenGone.SKIP), after, end).tasks


def test_what_changed_no_rows_may_be_taken_back(make: Make) -> None:
    table = make(type="MERGE_ON_READ", buckets=1)
    table.upsert([row("a", 1)])
    table.upsert([row("a", 2)])
    table.compact(strategy="unbounded")
    after = read_to_end(table, "earliest")
    table.rollback(newest(table))
    assert list(table.follow(after)) == []


def test_times_that_somebody_chose_are_no_windows(make: Make) -> None:
    table = make()
    table.upsert([row("a", 1)])
    table.upsert([row("b", 2)])
    table.rollback(newest(table))
    assert list(table.follow("2100-01-01")) == []
    assert list(table.follow("latest")) == []
    assert list(table.follow(newest(table)))  # by its instant time, which is before its effect


def test_archived_windows_stand(make: Make) -> None:
    table = make()
    table.upsert([row("a", 0)])
    done = read_to_end(table, "earliest")
    for n in range(1, 6):
        table.upsert([row("a", n)])
    table.rollback(newest(table))
    table.archive(min_commits=2, max_commits=3)
    assert table.timeline.is_archived(done)
    state = open_state(open_storage(table.path, {}))
    assert undone_by(state, done) is None
    assert len(list(table.follow(done))) == 1


@pytest.mark.parametrize("way", ["rollback", "restore"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_batch_that_was_taken_back_is_written_when_it_runs_again(
    make: Make, way: str, version: int
) -> None:
    table = make(version=version)
    write = table.stream_writer(stream="feed")
    write([row("a", 0)], 0)
    table.savepoint(newest(table))
    write([row("b", 1)], 1)
    take_back(table, way)

    assert write([row("a", 0)], 0) is None  # that one stands
    assert write([row("b", 1)], 1) is not None
    assert write([row("b", 1)], 1) is None
    assert write([row("c", 2)], 2) is not None
    assert sorted(r["id"] for r in table.scan().to_arrow().to_pylist()) == ["a", "b", "c"]


def test_a_stream_that_begins_again_after_a_restore_finds_what_was_archived(make: Make) -> None:
    table = make()
    write = table.stream_writer(stream="feed")
    for number in range(6):
        write([row(f"k{number}", number)], number)
    table.archive(min_commits=2, max_commits=3)
    assert len(table.timeline.data()) < 5
    table.rollback(newest(table))
    again = [write([row(f"k{number}", number)], number) is not None for number in range(6)]
    assert again == [False] * 5 + [True]
    assert table.scan().count() == 6


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("details", [{}, {"buckets": 2}], ids=["simple", "buckets"])
def test_rows_that_came_back_by_a_commit_reach_who_never_saw_them(
    make: Make, kind: str, details: dict[str, Any]
) -> None:
    table = make(type=kind, **details)
    table.upsert([row("a", 1, "y")])
    done = read_to_end(table, "earliest")
    table.upsert([row("b", 2, "x"), row("c", 2, "x")])
    plan = table.plan_delete_partitions([{"p": "x"}])
    plan.apply()
    dropped = read_to_end(table, done)
    table.upsert([row("d", 3, "y")])
    assert plan.undo().instant is not None
    table.upsert([row("c", 4, "x")])

    (window,) = table.follow(dropped)
    rows = window.scan.to_arrow().to_pylist()
    assert sorted((r["id"], r["n"]) for r in rows) == [("b", 2), ("c", 4), ("d", 3)]
    assert window.scan.count() == 3
    # A window that holds the drop too needs nothing of the kind.
    (window,) = table.follow(done)
    rows = window.scan.to_arrow().to_pylist()
    assert sorted((r["id"], r["n"]) for r in rows) == [("b", 2), ("c", 4), ("d", 3)]
    (window,) = table.follow(done, max_instants=None, where="p = 'x' and n = 2")
    assert [r["id"] for r in window.scan.to_arrow().to_pylist()] == ["b"]
