"""File slices of any history give the rows of merging their records one at a time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakewright as lw
from lakewright.actions.scan import ScanRequest, plan_scan, run_task
from lakewright.engine.local.scan import scan_batches
from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.log.write import rollback_block
from lakewright.model.errors import Corrupt, Invalid, Unsupported
from lakewright.model.expression.bind import bind
from lakewright.model.expression.parse import parse_expression
from lakewright.model.files import FileSlice, ReadingMode
from lakewright.table.file_index import FileIndex
from lakewright.table.merge.merger import Merged, register_merger, unregister_merger
from lakewright.table.reader.instants import SeenInstants
from lakewright.table.reader.slice_reader import FileSliceReader
from lakewright.table.state import table_schema
from support.histories import (
    GROUP,
    SCHEMA,
    Block,
    Record,
    base_bytes,
    base_files,
    build,
    log_blocks,
    log_bytes,
    merged,
)
from support.tiny_tables import TinyTable, at, base_name, log_name


def rows_of(table: TinyTable, **request: Any) -> list[tuple[Any, ...]]:
    plan = plan_scan(table.state(), ScanRequest(columns=("id", "ts", "n"), **request))
    found = [tuple(r.values()) for b in scan_batches(plan) for r in b.to_pylist()]
    return sorted(found)


@settings(max_examples=50)
@given(base_files, log_blocks, st.booleans(), st.sampled_from([6, 9]))
def test_any_history(base, blocks, event_time: bool, version: int) -> None:
    table = build(base, blocks, event_time=event_time, version=version)
    assert rows_of(table) == merged(base, blocks, event_time=event_time)
    for count in range(len(blocks)):
        assert rows_of(table, as_of=at(count + 1)) == merged(
            base, blocks[:count], event_time=event_time
        )


@settings(max_examples=30)
@given(base_files, log_blocks, st.booleans(), st.integers(0, 9), st.integers(0, 3))
def test_filters_see_merged_rows(base, blocks, event_time: bool, n: int, ts: int) -> None:
    """A row that a filter would drop must still beat, or lose to, the other versions of itself."""
    table = build(base, blocks, event_time=event_time)
    wanted = [r for r in merged(base, blocks, event_time=event_time) if r[2] >= n and r[1] <= ts]
    assert rows_of(table, where=f"n >= {n} AND ts <= {ts}") == wanted


@settings(max_examples=40)
@given(base_files, log_blocks, st.booleans(), st.sampled_from([6, 9]), st.data())
def test_windows_hold_what_was_written_in_them(base, blocks, event_time, version, data) -> None:
    """Only records of the window take part: one that came too late is still news."""
    table = build(base, blocks, event_time=event_time, version=version)
    done = [i.completed for i in table.state().timeline.data()]
    start = data.draw(st.integers(0, len(done) - 1))
    end = data.draw(st.integers(start + 1, len(done)))
    # Commit 1 wrote the base file, each later one a block.
    wanted = merged(
        base if start == 0 else [], blocks[max(start - 1, 0) : end - 1], event_time=event_time
    )
    times = {"start": done[start - 1] if start else None, "end": done[end - 1]}
    assert rows_of(table, mode=ReadingMode.INCREMENTAL, **times) == wanted


@settings(max_examples=50)
@given(base_files, log_blocks, st.booleans(), st.integers(0, 70))
def test_an_overlay_gives_the_rows_that_merging_gives(base, blocks, event_time, more) -> None:
    state = build(base, blocks, event_time=event_time).state()
    plan = plan_scan(state, ScanRequest(columns=("id", "ts", "n")))
    reader = FileSliceReader.of(state).project(plan.schema)
    found = []
    for task in plan.tasks:
        with reader.overlay(task.slice, with_rows=False) as overlay:
            verdict = overlay.verdict()
        stored = [
            row for batch in reader.open(replace(task.slice, logs=())) for row in batch.to_pylist()
        ]
        found += [row for row, gone in zip(stored, verdict.replaced, strict=True) if not gone]
        chosen = np.concatenate([verdict.chosen, np.zeros(more, dtype=bool)])
        with reader.overlay(task.slice) as overlay:
            found += [row for batch in overlay.rows(chosen) for row in batch.to_pylist()]
        if verdict.chosen.any():
            with reader.overlay(task.slice) as overlay, pytest.raises(Corrupt, match="other"):
                list(overlay.rows(verdict.chosen[:-1]))
    assert sorted(tuple(row.values()) for row in found) == merged(
        base, blocks, event_time=event_time
    )


@settings(max_examples=20)
@given(base_files, log_blocks, st.booleans())
def test_blocks_that_do_not_fit_into_memory_are_decoded_again(base, blocks, event_time) -> None:
    table = build(base, blocks, event_time=event_time)
    state = table.state()
    plan = plan_scan(state, ScanRequest(columns=("id", "ts", "n")))
    options = {"lakewright.read.log-memory": "0"}
    reader = FileSliceReader(
        state.storage,
        state.config,
        table_schema(state),
        SeenInstants.of(state.timeline),
        options=options,
    ).project(plan.schema)
    found = [
        tuple(row.values())
        for task in plan.tasks
        for batch in reader.open(task.slice)
        for row in batch.to_pylist()
    ]
    assert sorted(found) == merged(base, blocks, event_time=event_time)


@settings(max_examples=20)
@given(base_files, log_blocks, st.booleans())
def test_counting_reads_no_more_rows_than_there_are(base, blocks, event_time: bool) -> None:
    plan = plan_scan(build(base, blocks, event_time=event_time).state(), ScanRequest())
    counted, rest = plan.split_countable()
    total = counted + sum(batch.num_rows for batch in scan_batches(rest))
    assert total == len(merged(base, blocks, event_time=event_time))


def test_a_rolled_back_block_and_an_unfinished_one_do_not_count() -> None:
    base = [Record("a", 1, 1), Record("b", 1, 1)]
    table = build(base, [Block((Record("a", 2, 2),))], event_time=True, version=6)
    failed = log_bytes(Block((Record("b", 9, 9),)), 3, base)
    table.touch(log_name(GROUP, 1, 2), failed)
    assert rows_of(table) == [("a", 2, 2), ("b", 1, 1)]  # nobody completed minute 3
    table.commit(3, {"": {log_name(GROUP, 1, 2): failed}}, schema=SCHEMA)
    assert rows_of(table) == [("a", 2, 2), ("b", 9, 9)]
    table.touch(log_name(GROUP, 1, 3), rollback_block(at(4), at(3)))
    assert rows_of(table) == [("a", 2, 2), ("b", 1, 1)]


def test_a_key_that_a_base_file_holds_twice_meets_its_log_record_once() -> None:
    base = [Record("a", 1, 1), Record("b", 1, 1), Record("a", 1, 2)]
    table = build(base, [Block((Record("a", 2, 7),))], event_time=True)
    assert rows_of(table) == [("a", 1, 2), ("a", 2, 7), ("b", 1, 1)]


def test_log_records_without_a_base_file() -> None:
    table = TinyTable(
        partition_by="",
        mor=True,
        hoodie__record__merge__mode="COMMIT_TIME_ORDERING",
    )
    data = log_bytes(Block((Record("a", 1, 1), Record("b", 1, 2))), 1, [])
    table.commit(1, {"": {log_name(GROUP, 1): data}}, schema=SCHEMA)
    assert rows_of(table) == [("a", 1, 1), ("b", 1, 2)]
    assert rows_of(table, mode=ReadingMode.SNAPSHOT_READ_OPTIMIZED) == []


class Maximum:
    merging_strategy = "11111111-2222-3333-4444-555555555555"

    def merge(self, older: pa.Table, newer: pa.Table) -> Merged:
        keep_old = pa.compute.greater(older.column("n"), newer.column("n"))
        columns = [
            pa.compute.if_else(keep_old, older.column(name), newer.column(name))
            for name in newer.schema.names
        ]
        return Merged(pa.Table.from_arrays(columns, schema=newer.schema))


def test_a_custom_merge_mode_needs_its_merger() -> None:
    base = [Record("a", 1, 5), Record("b", 1, 1)]
    table = TinyTable(
        partition_by="",
        mor=True,
        hoodie__record__merge__mode="CUSTOM",
        hoodie__record__merge__strategy__id=Maximum.merging_strategy,
    )
    table.commit(1, {"": {base_name(GROUP, 1): base_bytes(base, at(1))}}, schema=SCHEMA)
    assert rows_of(table) == [("a", 1, 5), ("b", 1, 1)]  # nothing to merge: readable
    late = Block((Record("a", 2, 3), Record("b", 2, 4), Record("c", 2, 1)))
    table.commit(2, {"": {log_name(GROUP, 2): log_bytes(late, 2, base)}}, schema=SCHEMA)
    with pytest.raises(Unsupported, match=Maximum.merging_strategy):
        rows_of(table)
    register_merger(Maximum())
    try:
        assert rows_of(table) == [("a", 1, 5), ("b", 2, 4), ("c", 2, 1)]
    finally:
        unregister_merger(Maximum.merging_strategy)


# ---------------------------------------------------------------------------- the builder


@pytest.fixture
def slice_and_reader() -> tuple[FileSlice, FileSliceReader]:
    base = [Record("a", 1, 1), Record("b", 1, 2)]
    table = build(base, [Block((Record("a", 2, 9),))], event_time=True)
    state = table.state()
    (part,) = FileIndex(state).list_files_at(None)
    (piece,) = part.file_slices
    reader = FileSliceReader(
        state.storage, state.config, table_schema(state), SeenInstants.of(state.timeline)
    )
    return piece, reader


def read(reader: FileSliceReader, piece: FileSlice) -> list[dict[str, Any]]:
    return [row for batch in reader.open(piece) for row in batch.to_pylist()]


def test_the_reader_is_built_step_by_step_and_never_changes(slice_and_reader) -> None:
    piece, reader = slice_and_reader
    narrow = reader.project(reader.schema.select(("n",)))
    chosen = narrow.push_down_filters([bind(parse_expression("id = 'a'"), reader.whole_schema)])
    old = chosen.reading_mode(ReadingMode.SNAPSHOT_READ_OPTIMIZED)
    assert read(old, piece) == [{"n": 1}]
    assert read(chosen, piece) == [{"n": 9}]
    assert sorted(read(narrow, piece), key=repr) == [{"n": 2}, {"n": 9}]
    assert {tuple(row) for row in read(reader, piece)} == {reader.schema.names}


def test_the_target_may_be_an_evolved_schema(slice_and_reader) -> None:
    piece, reader = slice_and_reader
    evolved = parse_avro_schema(
        '{"type":"record","name":"t","fields":[{"name":"n","type":["null","double"]},'
        '{"name":"more","type":["null","string"]}]}'
    )
    rows = read(reader.project(evolved), piece)
    assert sorted(rows, key=repr) == [{"n": 2.0, "more": None}, {"n": 9.0, "more": None}]


@pytest.mark.parametrize("condition", ["id = 'a'", lw.col("id") == "a"])
def test_filters_may_come_as_they_were_written(slice_and_reader, condition: Any) -> None:
    piece, reader = slice_and_reader
    assert [row["id"] for row in read(reader.push_down_filters([condition]), piece)] == ["a"]
    with pytest.raises(Invalid, match=r"no column 'nmae'.*id"):
        reader.push_down_filters(["nmae = 'a'"])
    with pytest.raises(Invalid, match="one condition"):
        reader.push_down_filters(condition)
    with pytest.raises(Invalid, match="no condition"):
        reader.push_down_filters([7])


def test_modes_go_by_their_names(slice_and_reader) -> None:
    piece, reader = slice_and_reader
    bases = reader.reading_mode(ReadingMode.SNAPSHOT_READ_OPTIMIZED)
    for name in ("read_optimized", "SNAPSHOT_READ_OPTIMIZED"):
        assert read(reader.reading_mode(name), piece) == read(bases, piece)
    with pytest.raises(Invalid, match="window"):
        reader.reading_mode("INCREMENTAL")
    with pytest.raises(Invalid, match=r"'snap' is no reading mode.*incremental"):
        reader.reading_mode("snap")


def test_only_an_incremental_reading_has_instants(slice_and_reader) -> None:
    piece, reader = slice_and_reader
    window = reader.reading_mode(ReadingMode.INCREMENTAL, changed_by=[at(2)])
    assert [row["id"] for row in read(window, piece)] == ["a"]
    for mode, instants in ((ReadingMode.INCREMENTAL, None), (ReadingMode.SNAPSHOT, [at(2)])):
        with pytest.raises(Invalid, match="window"):
            reader.reading_mode(mode, instants)
    with pytest.raises(Invalid, match="change stream"):
        reader.reading_mode(ReadingMode.CDC)


@pytest.mark.parametrize("order_by", [None, "rank"])
@pytest.mark.parametrize("where", [None, "colour <> 'red'", "n < 300"])
def test_texts_may_come_in_codes(order_by: str | None, where: str | None) -> None:
    """Columns that somebody looks at before the caller come as they are."""
    schema = "id string, colour string, rank string, n int"
    table = lw.create_table(
        f"memory://codes-{order_by}-{where}",
        schema=schema,
        key="id",
        order_by=order_by,
        type="MERGE_ON_READ",
    )
    rows = [
        {"id": f"k{n}", "colour": ["red", "blue", None][n % 3], "rank": f"{n % 5}", "n": n}
        for n in range(600)
    ]
    table.bulk_insert(rows)
    table.upsert([row | {"colour": "grey", "rank": "2"} for row in rows[::4]])
    plan = table.scan(where=where).plan()
    plain, coded = ([], [])
    for task in plan.tasks:
        plain += [row for batch in run_task(plan.spec, task) for row in batch.to_pylist()]
        batches = list(run_task(plan.spec, task, in_codes=True))
        coded += [row for batch in batches for row in batch.to_pylist()]
        types = {field.name: field.type for field in batches[0].schema}
        came_in_codes = {name for name, kind in types.items() if pa.types.is_dictionary(kind)}
        assert came_in_codes == {"colour", "rank"} - {order_by, where and where.split()[0]}
    assert plain == coded and len(plain) > 250
