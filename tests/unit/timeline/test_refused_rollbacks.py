"""Rollbacks that other software planned and then refused: nobody carries them out."""

import datetime as dt
from pathlib import Path

import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.format.hudi.metadata.rollback import (
    InstantInfo,
    RollbackPlan,
    RollbackRequest,
    encode_rollback_plan,
)
from lakewright.model.instant import Action, Instant, instant_datetime
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from lakewright.timeline.clock import time_text

EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    made = lw.create_table(
        tmp_path / "t", schema="id string, n bigint", key="id", version=request.param
    )
    put(made, "a", 1)
    put(made, "b", 2)
    return made


def put(table: Table, key: str, n: int) -> Instant:
    table.upsert([{"id": key, "n": n}], options=EAGER)
    return table.timeline.data()[-1]


def leave_rollback(table: Table, target: Instant) -> None:
    """What Hudi leaves when it refuses: it looks at savepoints and later writes after planning."""
    storage = open_storage(table.path)
    state = open_state(storage)
    (stat,) = state.timeline.commit_metadata(target).write_stats[""]
    files = (storage.locate(str(stat.path)),)
    plan = RollbackPlan(
        InstantInfo(target.requested, target.action),
        (RollbackRequest("", stat.file_id, target.requested, files),),
    )
    name = f"{state.config.timeline_folder}/{minutes_after(target.requested)}.rollback"
    storage.write(f"{name}.requested", encode_rollback_plan(plan))
    storage.write(f"{name}.inflight", b"")


def minutes_after(instant: str) -> str:
    later = instant_datetime(instant) + dt.timedelta(minutes=15)
    return time_text(later.timestamp(), dt.UTC)


def rows(table: Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["n"]) for row in table.scan().to_arrow().to_pylist())


def test_a_write_under_a_savepoint_stays(table: Table) -> None:
    saved = table.timeline.data()[-1]
    table.savepoint()
    leave_rollback(table, saved)
    put(table, "c", 3)
    assert rows(table) == [("a", 1), ("b", 2), ("c", 3)]
    assert not table.timeline.by_action(Action.ROLLBACK)
    table.restore(saved.requested)
    assert rows(table) == [("a", 1), ("b", 2)]


def test_a_write_that_others_built_upon_stays(table: Table) -> None:
    first = table.timeline.data()[0]
    leave_rollback(table, first)
    put(table, "c", 3)
    assert rows(table) == [("a", 1), ("b", 2), ("c", 3)]
    assert rows_at(table, first) == [("a", 1)]
    assert not table.timeline.by_action(Action.ROLLBACK)


def test_the_newest_write_is_taken_back_as_was_wanted(table: Table) -> None:
    leave_rollback(table, table.timeline.data()[-1])
    put(table, "c", 3)
    assert rows(table) == [("a", 1), ("c", 3)]


def rows_at(table: Table, moment: Instant) -> list[tuple[str, int]]:
    found = table.scan(as_of=moment.requested).to_arrow().to_pylist()
    return sorted((row["id"], row["n"]) for row in found)
