"""Windows and changes of tables whose log records leave columns to older ones."""

from typing import Any

import pyarrow as pa
import pytest

from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.engine.spark.worker import Shared, pack, unpack
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.log.write import avro_block, data_header, delete_block
from lakewright.model.errors import Unsupported
from lakewright.model.files import ReadingMode
from lakewright.table.merge.merger import Merged, register_merger, unregister_merger
from lakewright.table.state import TableState
from support.histories import GROUP, SCHEMA, WHOLE, Record, base_bytes, table_of
from support.tiny_tables import TinyTable, at, base_name, log_name

BASE = [Record("a", 10, 1), Record("b", 10, 2), Record("c", 10, 3)]
Given = dict[str, Any]


def partly(minute: int, rows: list[Given]) -> bytes:
    """Return a block that holds the key and the columns that the rows give, all the same ones."""
    whole = table_of([Record(row["id"], 0, 0) for row in rows], at(minute))
    names = [n for n in whole.column_names if n.startswith("_hoodie") and "deleted" not in n]
    table = whole.select(names)
    for name in rows[0]:
        kind = whole.schema.field(name).type
        table = table.append_column(name, pa.array([row[name] for row in rows], kind))
    text = to_avro_schema(WHOLE.select(tuple(table.column_names)), "t", "n")
    return avro_block(table, data_header(at(minute), text, partial=True))


def gone(minute: int, *keys: str) -> bytes:
    text = to_avro_schema(WHOLE, "t", "n")
    return delete_block(list(keys), [""] * len(keys), data_header(at(minute), text))


def with_logs(table: TinyTable, *blocks: bytes) -> TableState:
    table.commit(1, {"": {base_name(GROUP, 1): base_bytes(BASE, at(1))}}, schema=SCHEMA)
    layout = 1 if table.state().config.layout == 1 else 2
    for number, block in enumerate(blocks, 2):
        name = log_name(GROUP, 1, number - 1) if layout == 1 else log_name(GROUP, number)
        table.commit(number, {"": {name: block}}, schema=SCHEMA)
    return table.state()


def partial_table(mode: str, *blocks: bytes) -> TableState:
    ordering = {"hoodie__table__ordering__fields": "ts"}
    table = TinyTable(partition_by="", mor=True, hoodie__record__merge__mode=mode, **ordering)
    return with_logs(table, *blocks)


def read(state: TableState, **request: Any) -> list[tuple[Any, ...]]:
    plan = plan_scan(state, ScanRequest(columns=("id", "n", "ts"), **request))
    return sorted(tuple(r.values()) for b in scan_batches(plan) for r in b.to_pylist())


def window(state: TableState, after: int, upto: int) -> list[tuple[Any, ...]]:
    done = [i.completed for i in state.timeline.data()]
    return read(state, mode=ReadingMode.INCREMENTAL, start=done[after - 1], end=done[upto - 1])


def changes(state: TableState, after: int, upto: int) -> list[tuple[Any, ...]]:
    done = [i.completed for i in state.timeline.data()]
    start, end = done[after - 1], done[upto - 1]
    plan = plan_scan(state, ScanRequest(mode=ReadingMode.CDC, start=start, end=end))
    told = [row for batch in scan_batches(plan) for row in batch.to_pylist()]
    return sorted((r["op"], *((r[s] or {}).get("n") for s in ("before", "after"))) for r in told)


@pytest.mark.parametrize("mode", ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"])
def test_a_window_has_what_partial_updates_before_it_left(mode: str) -> None:
    state = partial_table(
        mode,
        partly(2, [{"id": "a", "n": 200, "ts": 20}, {"id": "b", "n": 201, "ts": 20}]),
        partly(3, [{"id": "a", "ts": 30}]),
    )
    assert window(state, 2, 3) == [("a", 200, 30)]
    assert window(state, 1, 2) == [("a", 200, 20), ("b", 201, 20)]
    assert window(state, 1, 3) == [("a", 200, 30), ("b", 201, 20)]
    assert read(state, mode=ReadingMode.INCREMENTAL) == read(state)


def test_a_window_has_the_row_that_a_late_partial_update_changed() -> None:
    state = partial_table(
        "EVENT_TIME_ORDERING",
        partly(2, [{"id": "a", "ts": 20}]),
        partly(3, [{"id": "a", "n": 300, "ts": 15}, {"id": "b", "n": 5, "ts": 5}]),
    )
    # Record b loses against whole rows: the window has the row that stands, not the record.
    assert window(state, 2, 3) == [("a", 300, 20), ("b", 2, 10)]
    assert changes(state, 2, 3) == [("u", 1, 300)]


def test_a_filter_on_a_window_sees_whole_rows() -> None:
    state = partial_table(
        "COMMIT_TIME_ORDERING",
        partly(2, [{"id": "a", "n": 200}]),
        partly(3, [{"id": "a", "ts": 30}, {"id": "b", "ts": 30}]),
    )
    done = [i.completed for i in state.timeline.data()]
    times = {"mode": ReadingMode.INCREMENTAL, "start": done[1], "end": done[2]}
    assert read(state, where="n = 200", **times) == [("a", 200, 30)]
    assert read(state, where="n = 1", **times) == []


def test_a_record_that_comes_back_after_a_delete_owes_nothing_to_the_row_before() -> None:
    state = partial_table(
        "COMMIT_TIME_ORDERING",
        gone(2, "a", "b"),
        partly(3, [{"id": "a", "n": 7}]),
        gone(4, "c"),
    )
    assert window(state, 2, 3) == [r for r in read(state, as_of=at(3)) if r[0] == "a"]
    assert window(state, 2, 3)[0][:2] == ("a", 7)
    assert window(state, 3, 4) == []


@pytest.mark.parametrize(
    ("payload", "late", "filled"),
    [("PartialUpdateAvroPayload", 9, 20), ("OverwriteNonDefaultsWithLatestAvroPayload", 9, 9)],
)
def test_nulls_of_payloads_that_fill_in_are_filled_from_before_the_window(
    payload: str, late: int, filled: int
) -> None:
    table = TinyTable(
        6,
        partition_by="",
        mor=True,
        hoodie__table__precombine__field="ts",
        hoodie__compaction__payload__class=f"org.apache.hudi.common.model.{payload}",
    )
    text = to_avro_schema(WHOLE, "t", "n")

    def block(minute: int, n: int | None, ts: int) -> bytes:
        rows = table_of([Record("a", ts, 0)], at(minute))
        place = rows.column_names.index("n")
        rows = rows.set_column(place, "n", pa.array([n], pa.int64()))
        return avro_block(rows, data_header(at(minute), text))

    state = with_logs(table, block(2, 200, 20), block(3, None, late))
    assert window(state, 2, 3) == [("a", 200, filled)]


class Larger:
    merging_strategy = "org.example.Larger"

    def merge(self, older: pa.Table, newer: pa.Table) -> Merged:
        raise NotImplementedError


@pytest.mark.parametrize(
    "request_", [ScanRequest(), ScanRequest(mode=ReadingMode.INCREMENTAL), ScanRequest(where="n=1")]
)
def test_a_merger_that_is_missing_is_told_by_the_plan(request_: ScanRequest) -> None:
    state = custom_table()
    with pytest.raises(Unsupported, match=r"lakewright\.register_merger"):
        plan_scan(state, request_)
    plan_scan(state, ScanRequest(mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED))


def test_a_merger_that_is_missing_is_told_by_the_plan_of_changes() -> None:
    state = custom_table()
    done = [i.completed for i in state.timeline.data()]
    with pytest.raises(Unsupported, match="Larger"):
        plan_scan(state, ScanRequest(mode=ReadingMode.CDC, start=done[0]))
    plan_scan(state, ScanRequest(mode=ReadingMode.CDC, end=done[0]))


def test_a_plan_takes_its_merger_along() -> None:
    class Local(Larger):
        pass  # no other process could import it by its name

    register_merger(Local())
    try:
        plan = plan_scan(custom_table(), ScanRequest())
    finally:
        unregister_merger(Local.merging_strategy)
    sent: Any = unpack(pack(Shared(plan.spec, plan.schema)))
    assert sent.spec.reader().merger.merging_strategy == "org.example.Larger"


def custom_table() -> TableState:
    table = TinyTable(
        partition_by="",
        mor=True,
        hoodie__record__merge__mode="CUSTOM",
        hoodie__record__merge__strategy__id=Larger.merging_strategy,
    )
    rows = table_of([Record("a", 11, 4)], at(2))
    return with_logs(table, avro_block(rows, data_header(at(2), to_avro_schema(WHOLE, "t", "n"))))
