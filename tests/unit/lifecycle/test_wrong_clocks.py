"""Clocks that are ahead, late, or set back: nothing goes too early, and what is wrong is told."""

import datetime as dt
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine

import lakewright as lw
from lakewright.model.errors import Conflict
from lakewright.storage.open import open_storage
from lakewright.timeline import store_clock
from support.orphaned import age, base_name, old_table
from support.retention import day, held, partition, row, users_table

DAYS = {1: range(3)}
WHOLE = [partition(1, number) for number in range(3)]
CLEAN = {"policy": "commits", "retain": 1, "grace": "0s"}
MINUTE = dt.timedelta(minutes=1)


def kept_for_30_days(path: Path) -> lw.Table:
    with time_machine.travel(day(3)):
        table = users_table(path, DAYS)
        table.ttl.add("user_id=*/", "KEEP_BY_TIME", 30)
    return table


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dt.datetime]]:
    """The clock of a store, where one stands in the list."""
    shown: list[dt.datetime] = []
    monkeypatch.setattr(
        store_clock,
        "store_time",
        lambda storage: shown[-1].timestamp() if shown else time.time(),
    )
    return shown


def test_a_plan_that_was_made_by_a_clock_ahead_drops_nothing(tmp_path: Path) -> None:
    table = kept_for_30_days(tmp_path / "t")
    with time_machine.travel(day(50)):
        plan = table.ttl.plan()
    assert [item.target for item in plan.items] == WHOLE
    with time_machine.travel(day(31.5)):  # the first and the second have expired by now
        applied = table.plan(plan.id).apply()
    assert applied.done == (partition(1, 0), partition(1, 1))
    (left,) = applied.skipped
    assert left.target == partition(1, 2)
    assert "goes after 2026-02-02 12:00:00 UTC" in left.reason
    assert "the clock shows 2026-02-02 00:00:00 UTC" in left.reason
    assert held(table) == [partition(1, 2)]


def test_a_clock_that_was_given_counts(tmp_path: Path) -> None:
    table = kept_for_30_days(tmp_path / "t")
    with time_machine.travel(day(4)):
        plan = table.ttl.plan(day(50))
        assert len(plan.apply().done) == 3


def test_a_store_whose_clock_is_behind_is_believed(
    tmp_path: Path, store: list[dt.datetime]
) -> None:
    table = kept_for_30_days(tmp_path / "t")
    store.append(day(4))
    with time_machine.travel(day(50)):
        ran = table.ttl.run()
        assert ran.applied is not None
        assert (ran.applied.done, len(ran.applied.skipped)) == ((), 3)
    assert held(table) == WHOLE


def test_what_an_undo_by_a_late_clock_brought_back_is_not_dropped_by_an_older_plan(
    tmp_path: Path,
) -> None:
    table = kept_for_30_days(tmp_path / "t")
    with time_machine.travel(day(50)):
        first = table.ttl.plan()
        first.apply()
        first.undo()
        one = table.plan_delete_partitions([WHOLE[0]])
    with time_machine.travel(day(50) + 5 * MINUTE):
        other = table.plan_delete_partitions([WHOLE[0]])
    with time_machine.travel(day(50) + MINUTE):
        one.apply()
        one.undo()
        with pytest.raises(Conflict, match=f"an undo brought '{WHOLE[0]}' back"):
            other.apply()
        # Who has seen that it came back, and wants it gone, is heard.
        assert table.plan_delete_partitions([WHOLE[0]]).apply().done == (WHOLE[0],)


def test_a_clock_that_was_set_back_ends_no_window(tmp_path: Path) -> None:
    table = kept_for_30_days(tmp_path / "t")
    with time_machine.travel(day(50)):
        plan = table.ttl.plan()
    with time_machine.travel(day(40)):
        plan.apply()
    with time_machine.travel(day(51)):
        table.clean(**CLEAN)
        assert plan.why_not_undoable() is None
    with time_machine.travel(day(19)):
        plan.undo()
    with time_machine.travel(day(51)):
        assert table.ttl.expired() == []
        assert held(table) == WHOLE


@pytest.mark.parametrize("version", [6, 9])
def test_a_drop_by_a_late_clock_can_be_undone_for_the_whole_window(
    version: int, tmp_path: Path
) -> None:
    """The last write tells that it is later than the clock says."""
    with time_machine.travel(day(50)):
        table = users_table(tmp_path / "t", {1: [0, 49]}, version=version)
        table.upsert([row(2, 50)])
    with time_machine.travel(day(20)):
        plan = table.plan_delete_partitions([partition(1, 0)])
        plan.apply()
        for _ in range(3):
            table.upsert([row(2, 50)])
    with time_machine.travel(day(51)):
        table.clean(**CLEAN)
        assert plan.why_not_undoable() is None
    with time_machine.travel(day(58)):
        table.clean(**CLEAN)
        assert "cleaned away" in (plan.why_not_undoable() or "")


def test_a_write_of_a_far_future_holds_nothing_for_ever(tmp_path: Path) -> None:
    with time_machine.travel(day(50)):
        table = users_table(tmp_path / "t", DAYS)
        table.upsert([row(2, 50)], instant="98000101000000000")
        plan = table.plan_delete_partitions([WHOLE[0]])
        until = plan.apply().undo_until
    assert until is not None and day(56) < until < day(58)


@pytest.mark.parametrize("late", [True, False], ids=["applied-late", "cleaned-ahead"])
def test_a_window_ends_by_both_clocks(late: bool, tmp_path: Path, store: list[dt.datetime]) -> None:
    """Whoever drops may be late, and whoever cleans ahead: the store's clock knows better."""
    table = kept_for_30_days(tmp_path / "t")
    store.append(day(50))
    with time_machine.travel(day(20 if late else 50)):
        plan = table.ttl.plan(day(50))
        plan.apply()
        for _ in range(3):
            table.upsert([row(2, 50)])
    with time_machine.travel(day(50 if late else 80)):
        table.clean(**CLEAN)
        assert plan.why_not_undoable() is None
    store.append(day(58))
    with time_machine.travel(day(58)):
        table.clean(**CLEAN)
        assert "cleaned away" in (plan.why_not_undoable() or "")


def test_quarantine_ends_by_both_clocks(tmp_path: Path, store: list[dt.datetime]) -> None:
    storage = open_storage(str(tmp_path / "t"))
    table = old_table(storage)
    path = f"p=x/{base_name()}"
    storage.write(path, b"a base file that was never committed")
    age(storage, path)
    now = dt.datetime.now(dt.UTC)
    store.append(now)
    plan = table.plan_orphans()
    with time_machine.travel(now - dt.timedelta(days=30)):
        assert plan.apply().done == (path,)
    with time_machine.travel(now + dt.timedelta(days=60)):
        table.clean()
    assert plan.undo().restored == (path,)


@pytest.mark.parametrize("span", ["9999999d", "999999999d"])
def test_spans_may_be_longer_than_calendars(span: str, tmp_path: Path) -> None:
    names = ("undo.window", "plans.retention", "quarantine.retention", "orphans.older-than")
    table = users_table(tmp_path / "t", DAYS, properties={f"lakewright.{n}": span for n in names})
    plan = table.plan_delete_partitions([WHOLE[0]])
    plan.apply()
    table.clean()
    assert table.preview_orphans().empty
    assert table.preview_orphans(dt.timedelta.max).empty
    table.look_after()
    plan.undo()
    table.ttl.add("/", "KEEP_BY_COUNT", 1)
    assert table.ttl.expired() == [v for v in table.ttl.expired() if v.partition != WHOLE[0]]
    assert held(table) == WHOLE


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    os.environ.pop("TZ", None)
    monkeypatch.undo()
    time.tzset()


def local_table(path: Path, schema: str, **more: Any) -> lw.Table:
    """Create a table whose instants are times of whichever machine writes, as Hudi does."""
    lw.create_table(path, schema=schema, key="id", **more)
    properties = path / ".hoodie/hoodie.properties"
    text = properties.read_text()
    properties.write_text(text.replace("timezone=UTC", "timezone=LOCAL"))
    return lw.open_table(path)


#: Clocks of Berlin show 02:00 to 03:00 twice: from 00:00 and from 01:00 UTC on.
TWICE = dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC)


@pytest.mark.usefixtures("berlin")
def test_the_hour_that_comes_twice_ends_no_term_early(tmp_path: Path) -> None:
    table = local_table(tmp_path / "t", "id string, d string", partition_by="d", version=6)
    with time_machine.travel(TWICE.timestamp(), tick=False):
        table.upsert([{"id": "1", "d": "a"}])
    assert table.timeline.instants[-1].requested.startswith("202610250230")
    table.ttl.add("/", "KEEP_BY_TIME", 1)
    whole = TWICE + dt.timedelta(days=1)
    assert table.ttl.expired(whole) == []
    assert [v.partition for v in table.ttl.expired(whole + MINUTE)] == ["d=a"]


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize("version", [6, 9])
def test_readers_keep_their_grace_while_clocks_are_put_back(version: int, tmp_path: Path) -> None:
    """What was replaced at ten past two stays until three, though it was twenty to three before."""
    table = local_table(tmp_path / "t", "id string, n int", version=version)
    for number, minutes in enumerate((300, 240, 180, 20)):
        with time_machine.travel((TWICE - minutes * MINUTE).timestamp(), tick=False):
            table.upsert([{"id": "1", "n": number}])
            newest = max((tmp_path / "t/.hoodie").rglob("*.commit"), key=lambda file: file.name)
            os.utime(newest, (time.time(), time.time()))
    before = table.timeline.data()[-2].requested
    with time_machine.travel(TWICE.timestamp(), tick=False):
        table.clean(policy="versions", retain=1, grace="50m")
    left = sorted(file.name for file in (tmp_path / "t").glob("*.parquet"))
    assert [name for name in left if before in name]
    assert len(left) == 2
