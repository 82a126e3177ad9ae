"""Following a table: offsets, limits, history that is gone."""

from dataclasses import replace

import pytest

from lakewright.actions.follow import (
    EARLIEST,
    LATEST,
    Follow,
    WhenGone,
    first_offset,
    next_offset,
    plan_window,
)
from lakewright.actions.scan import ScanRequest
from lakewright.engine.local.scan import scan_batches
from lakewright.model.errors import HistoryGone
from lakewright.model.files import ReadingMode
from lakewright.model.instant import BEGINNING
from lakewright.table.state import TableState
from support.tiny_tables import TinyTable, at, base_name, completion, parquet_bytes

ROWS = Follow(ScanRequest(columns=("id",), mode=ReadingMode.INCREMENTAL))
CHANGES = Follow(ScanRequest(mode=ReadingMode.CDC))


def growing(version: int = 9, upto: int = 4) -> TinyTable:
    """One new file group per minute: row ``a1`` at minute 1, ``a2`` at minute 2, and so on."""
    table = TinyTable(version, partition_by="")
    for minute in range(1, upto + 1):
        data = parquet_bytes([f"a{minute}"], [minute], at(minute))
        table.commit(minute, {"": {base_name(f"g{minute}", minute): data}})
    return table


def ids(state: TableState, follow: Follow, after: str, upto: str) -> list[str]:
    plan = plan_window(state, follow, after, upto)
    return sorted(i for b in scan_batches(plan) for i in b.column("id").to_pylist())


def test_offsets_of_layout_2_are_completion_times() -> None:
    state = growing().state()
    assert first_offset(state, EARLIEST) == BEGINNING
    assert first_offset(state, LATEST) == completion(4)
    assert first_offset(state, at(2)) == at(2)
    assert next_offset(state, ROWS, BEGINNING) == completion(4)
    assert next_offset(state, ROWS, completion(4)) == completion(4)
    assert next_offset(state, ROWS, BEGINNING, upto=completion(2)) == completion(2)


def test_windows_of_a_limit_cover_everything_once() -> None:
    state = growing().state()
    follow = replace(ROWS, limit=1)
    offset, seen = BEGINNING, []
    while (end := next_offset(state, follow, offset)) != offset:
        seen.append(ids(state, follow, offset, end))
        offset = end
    assert seen == [["a1"], ["a2"], ["a3"], ["a4"]]


def test_an_empty_table_has_nothing_new() -> None:
    state = TinyTable(partition_by="").state()
    assert first_offset(state, LATEST) == BEGINNING
    assert next_offset(state, ROWS, BEGINNING) == BEGINNING


def test_layout_1_waits_for_an_earlier_write_that_may_still_end() -> None:
    table = growing(6)
    table.touch(f"{table.timeline}/{at(3)[:-1]}5.commit.requested")
    table.touch(f"{table.timeline}/{at(3)[:-1]}5.inflight")
    state = table.state()
    assert first_offset(state, LATEST) == at(3)
    assert next_offset(state, ROWS, BEGINNING) == at(3)
    assert ids(state, ROWS, at(1), at(3)) == ["a2", "a3"]


def test_layout_2_does_not_wait() -> None:
    table = growing(9)
    table.touch(f"{table.timeline}/{at(3)[:-1]}5.commit.requested")
    assert first_offset(table.state(), LATEST) == completion(4)


def test_a_window_ends_where_the_table_can_be_read() -> None:
    state = growing().cleaned(6, earliest=3).state()
    follow = replace(ROWS, limit=1)
    assert next_offset(state, follow, BEGINNING) == completion(3)
    assert ids(state, follow, BEGINNING, completion(3)) == ["a1", "a2", "a3"]
    assert next_offset(state, follow, completion(3)) == completion(4)


def test_a_window_that_was_planned_and_then_cleaned() -> None:
    state = growing().cleaned(6, earliest=3).state()
    with pytest.raises(HistoryGone, match="history to skip"):
        plan_window(state, ROWS, completion(1), completion(2))
    skipping = replace(ROWS, when_gone=WhenGone.SKIP)
    assert ids(state, skipping, completion(1), completion(2)) == ["a2"]


def test_changes_that_cannot_be_told_are_an_error_or_left_out() -> None:
    table = growing()
    state = table.state()
    table.storage.delete([base_name("g1", 1), base_name("g2", 2)])
    with pytest.raises(HistoryGone, match="begin anew from latest"):
        plan_window(state, CHANGES, BEGINNING, completion(3))
    skipping = replace(CHANGES, when_gone=WhenGone.SKIP)
    plan = plan_window(state, skipping, BEGINNING, completion(3))
    assert [task.instant.requested for task in plan.tasks] == [at(3)]
