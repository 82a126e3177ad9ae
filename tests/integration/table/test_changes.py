"""Change streams that are derived from slices lead from one state of a table to the next."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.model.errors import HistoryGone
from lakewright.model.files import ReadingMode
from lakewright.table.changes.task import ChangeKind, ChangeTask
from lakewright.table.state import TableState
from support.histories import (
    GROUP,
    SCHEMA,
    Record,
    base_bytes,
    base_files,
    build,
    log_blocks,
    table_of,
)
from support.tiny_tables import TinyTable, at, base_name

Row = dict[str, Any]


def read(state: TableState, **request: Any) -> list[Row]:
    plan = plan_scan(state, ScanRequest(**request))
    return [row for batch in scan_batches(plan) for row in batch.to_pylist()]


def changes(state: TableState, start: str | None = None, end: str | None = None) -> list[Row]:
    return read(state, mode=ReadingMode.CDC, start=start, end=end)


def applied(rows: list[Row], stream: list[Row]) -> list[Row]:
    held = list(rows)
    for change in stream:
        assert (change["op"] == "i") == (change["before"] is None)
        assert (change["op"] == "d") == (change["after"] is None)
        if change["before"] is not None:
            held.remove(change["before"])
        if change["after"] is not None:
            held.append(change["after"])
    return held


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


@settings(max_examples=60)
@given(base_files, log_blocks, st.booleans(), st.sampled_from([6, 9]), st.data())
def test_changes_of_logs(base, blocks, event_time: bool, version: int, data) -> None:
    state = build(base, blocks, event_time=event_time, version=version).state()
    writes = state.timeline.data()
    first = data.draw(st.integers(0, len(writes)))
    last = data.draw(st.integers(first, len(writes)))
    before = [] if first == 0 else read(state, as_of=writes[first - 1].requested)
    after = [] if last == 0 else read(state, as_of=writes[last - 1].requested)
    if first == last:
        return
    start = None if first == 0 else writes[first - 1].completed
    stream = changes(state, start, writes[last - 1].completed)
    assert in_order(applied(before, stream)) == in_order(after)
    assert [c["ts_ms"] for c in stream] == sorted(c["ts_ms"] for c in stream)


def written(table: TinyTable, minute: int, records: list[Record], times: list[int]) -> TinyTable:
    """Commit a base file whose rows were last written at the given minutes."""
    rows = [table_of([r], at(t)).to_pylist()[0] for r, t in zip(records, times, strict=True)]
    for place, row in enumerate(rows):
        row["_hoodie_commit_seqno"] = f"{row['_hoodie_commit_time']}_0_{records[place].n}"
    data = base_bytes(records, at(minute), rows)
    return table.commit(minute, {"": {base_name(GROUP, minute): data}}, schema=SCHEMA)


def ops(stream: list[Row]) -> list[tuple[str, int | None, int | None]]:
    return sorted(
        (
            (c["op"], c["before"] and c["before"]["n"], c["after"] and c["after"]["n"])
            for c in stream
        ),
        key=repr,
    )


def test_changes_of_rewritten_base_files() -> None:
    table = TinyTable(partition_by="")
    one = [Record("a", 1, 1), Record("b", 1, 2), Record("c", 1, 3)]
    two = [Record("a", 1, 1), Record("b", 2, 20), Record("d", 2, 40)]
    written(table, 1, one, [1, 1, 1])
    written(table, 2, two, [1, 2, 2])
    state = table.state()
    first = state.timeline.data()[0].completed
    assert ops(changes(state, None, first)) == [("i", None, 1), ("i", None, 2), ("i", None, 3)]
    assert ops(changes(state, first)) == [("d", 3, None), ("i", None, 40), ("u", 2, 20)]


def test_a_key_that_a_file_holds_twice() -> None:
    table = TinyTable(partition_by="")
    written(table, 1, [Record("a", 1, 1), Record("a", 1, 2)], [1, 1])
    written(table, 2, [Record("a", 1, 2), Record("a", 2, 9)], [1, 2])
    state = table.state()
    first = state.timeline.data()[0].completed
    assert ops(changes(state, first)) == [("u", 1, 9)]


def test_tables_without_meta_columns_are_compared_by_content() -> None:
    table = TinyTable(partition_by="", hoodie__populate__meta__fields="false")
    written(table, 1, [Record("a", 1, 1), Record("b", 1, 2)], [1, 1])
    written(table, 2, [Record("a", 1, 1), Record("b", 1, 7), Record("c", 1, 3)], [2, 2, 2])
    state = table.state()
    first = state.timeline.data()[0].completed
    assert ops(changes(state, first)) == [("i", None, 3), ("u", 2, 7)]


def test_replaced_groups_are_deletes_before_inserts() -> None:
    table = TinyTable(partition_by="")
    written(table, 1, [Record("a", 1, 1)], [1])
    other = "11111111-0000-0000-0000-000000000000-0"
    files = {base_name(other, 2): base_bytes([Record("a", 1, 5)], at(2))}
    table.commit(
        2, {"": files}, replaced={"": [GROUP]}, operation="INSERT_OVERWRITE", schema=SCHEMA
    )
    state = table.state()
    stream = changes(state, state.timeline.data()[0].completed)
    assert [(c["op"], c["ts_ms"]) for c in stream] == [("d", at(2)), ("i", at(2))]
    assert in_order(applied([stream[0]["before"]], stream)) == in_order(read(state))


@pytest.mark.parametrize("operation", ["CLUSTER", "COMPACT", "BUCKET_RESCALE"])
def test_maintenance_changes_nothing(operation: str) -> None:
    table = TinyTable(partition_by="")
    written(table, 1, [Record("a", 1, 1)], [1])
    other = "11111111-0000-0000-0000-000000000000-0"
    files = {base_name(other, 2): base_bytes([Record("a", 1, 1)], at(1))}
    table.commit(2, {"": files}, replaced={"": [GROUP]}, operation=operation, schema=SCHEMA)
    state = table.state()
    assert changes(state, state.timeline.data()[0].completed) == []
    assert ops(changes(state)) == [("i", None, 1)]


def test_files_that_were_cleaned_away_are_missed_by_name() -> None:
    table = TinyTable(partition_by="")
    written(table, 1, [Record("a", 1, 1)], [1])
    written(table, 2, [Record("a", 2, 2)], [2])
    table.storage.delete([base_name(GROUP, 1)])
    state = table.state()
    with pytest.raises(HistoryGone, match=at(1)):
        changes(state)


def test_tasks_name_their_files() -> None:
    table = TinyTable(partition_by="")
    written(table, 1, [Record("a", 1, 1)], [1])
    written(table, 2, [Record("a", 2, 2)], [2])
    plan = plan_scan(table.state(), ScanRequest(mode=ReadingMode.CDC))
    kinds = [task.kind for task in plan.tasks if isinstance(task, ChangeTask)]
    assert kinds == [ChangeKind.INSERTED, ChangeKind.REWRITTEN]
    assert plan.tasks[1].paths == (base_name(GROUP, 1), base_name(GROUP, 2))
    assert plan.tasks[1].size > plan.tasks[0].size > 0
    assert "2 files" in plan.explain() or "3 files" in plan.explain()
