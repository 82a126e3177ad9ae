"""The Table Spec API at work, one test for each part of it that the conformance page names."""

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakewright as lw
from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.expression import to_arrow
from lakewright.index.layout import IndexLayout
from lakewright.index.record_index import RecordIndex
from lakewright.model.expression.bind import bind
from lakewright.model.expression.nodes import BinaryExpression, Expression, UnaryExpression
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.render import to_sql
from lakewright.model.files import FileSlice, ReadingMode
from lakewright.model.schema import LONG, PARTITION_PATH, RECORD_KEY, STRING, Field, Struct
from lakewright.model.table import TableId, TableType
from lakewright.storage.open import open_storage
from lakewright.table.file_index import FileIndex
from lakewright.table.merge.merger import Merged, unregister_merger
from lakewright.table.pinned import PinnedTable
from lakewright.table.reader.slice_reader import FileSliceReader
from lakewright.table.splits import splits
from lakewright.table.state import TableState, open_state, table_def, table_schema

Tables = Callable[[str], Path]


@pytest.fixture
def orders(own_table: Tables) -> TableState:
    return open_state(open_storage(own_table("orders_mor")))


def slices_of(state: TableState) -> list[FileSlice]:
    return [s for snapshot in FileIndex(state).list_files_at() for s in snapshot.file_slices]


def ids(batches: list[pa.RecordBatch]) -> list[str]:
    return sorted(key for batch in batches for key in batch.column("id").to_pylist())


def test_a_table_is_identified_by_database_and_name() -> None:
    assert str(TableId("shop", "orders")) == "shop.orders"
    assert TableId("shop", "orders") == TableId("shop", "orders") != TableId("lab", "orders")


def test_a_definition_says_what_a_table_is(orders: TableState) -> None:
    definition = table_def(orders)
    assert definition.table_id.name == "orders_mor"
    assert definition.base_path == orders.storage.uri
    assert definition.table_type is TableType.MERGE_ON_READ
    assert definition.schema.field("id") == Field("id", STRING)
    assert (definition.record_key, definition.ordering) == (("id",), ("at",))


def test_a_slice_has_a_base_file_and_ordered_logs(orders: TableState) -> None:
    logged = [piece for piece in slices_of(orders) if len(piece.logs) > 1]
    assert logged
    for piece in logged:
        assert piece.base is not None and piece.base.file_id == piece.group.file_id
        assert [log.instant for log in piece.logs] == sorted(log.instant for log in piece.logs)


def test_a_file_group_holds_its_slices_newest_first(own_table: Tables) -> None:
    state = open_state(open_storage(own_table("orders_cow")))
    groups = list(FileIndex(state).file_groups())
    assert {group.id for group in groups} >= {piece.group for piece in slices_of(state)}
    rewritten = [group for group in groups if len(group.slices) > 1]
    assert rewritten
    for group in rewritten:
        times = [piece.base_instant for piece in group.slices]
        assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("name", ["orders_cow", "orders_mor", "orders_mor_v6"])
def test_a_file_group_has_a_timeline_of_its_own(own_table: Tables, name: str) -> None:
    state = open_state(open_storage(own_table(name)))
    index = FileIndex(state)
    groups = list(index.file_groups())
    for group in groups:
        timeline = index.timeline_of(group)
        assert timeline == index.timeline_of(group.id)
        assert set(timeline) <= set(state.timeline.data())
        requested = {instant.requested for instant in timeline}
        assert {s.base.instant for s in group.slices if s.base is not None} <= requested
    assert len({index.timeline_of(group) for group in groups}) > 1


def test_a_snapshot_lists_partitions_with_their_values(orders: TableState) -> None:
    condition = bind(parse_expression("city = 'oslo'"), table_schema(orders))
    (snapshot,) = FileIndex(orders).list_files_at(None, [condition])
    assert snapshot.descriptor.path == "city=oslo"
    assert dict(snapshot.descriptor.values) == {"city": "oslo"}
    assert snapshot.latest_instant == orders.timeline.latest_data()
    assert snapshot.file_slices


def test_an_unpartitioned_table_has_one_enclosing_partition(own_table: Tables) -> None:
    state = open_state(open_storage(own_table("unpartitioned_mor")))
    (snapshot,) = FileIndex(state).list_files_at()
    assert snapshot.descriptor.path == "" and not snapshot.descriptor.values


def test_a_window_lists_what_its_commits_touched(orders: TableState) -> None:
    first, second, *_ = orders.timeline.data()
    window = list(FileIndex(orders).list_files_between(first.completed, second.completed))
    assert window
    for part in window:
        assert part.timeline == (second,)
        assert all(log.instant <= second.requested for s in part.file_slices for log in s.logs)


def test_listing_at_an_instant_is_listing_from_nothing(orders: TableState) -> None:
    last = orders.timeline.latest_data()
    assert last is not None
    at = {s.descriptor.path: s.file_slices for s in FileIndex(orders).list_files_at(last.requested)}
    between = FileIndex(orders).list_files_between(None, last.completed)
    assert {s.descriptor.path: s.file_slices for s in between} == at


def test_instants_are_values_that_every_question_takes(orders: TableState) -> None:
    first, second, *_, last = orders.timeline.data()
    index = FileIndex(orders)
    assert list(index.list_files_at(first)) == list(index.list_files_at(first.requested))
    by_value = list(index.list_files_between(first, second))
    assert by_value == list(index.list_files_between(first.completed, second.completed))
    assert orders.timeline.find_latest_completed_action_at(second) == second
    assert list(index.list_files_at(None)) == list(index.list_files_at(last))


def test_the_reader_reads_in_every_mode(orders: TableState) -> None:
    pieces = slices_of(orders)
    schema = table_schema(orders)
    reader = FileSliceReader.of(orders).project(schema.select(("id", "n")))
    rows = [batch for piece in pieces for batch in reader.open(piece)]
    assert rows[0].schema.names == ["id", "n"]
    assert ids(rows) == ["o00", "o01", "o02", "o04", "o05", "o06", "o07"]

    few = reader.push_down_filters([bind(parse_expression("id < 'o02'"), schema)])
    assert ids([b for piece in pieces for b in few.open(piece)]) == ["o00", "o01"]

    bases = reader.reading_mode(ReadingMode.SNAPSHOT_READ_OPTIMIZED)
    based = [piece for piece in pieces if piece.base is not None]
    assert "o03" in ids([b for piece in based for b in bases.open(piece)])

    last = orders.timeline.data()[-1].requested
    changed = reader.reading_mode(ReadingMode.INCREMENTAL, [last])
    assert ids([b for piece in pieces for b in changed.open(piece)]) == ["o00", "o07"]


def test_the_change_stream_is_a_reading_mode(orders: TableState) -> None:
    table = lw.open_table(orders.storage.uri)
    changes = table.changes().to_arrow()
    assert changes.column_names == ["op", "ts_ms", "before", "after"]
    assert set(changes.column("op").to_pylist()) == {"i", "u", "d"}
    assert table.changes().plan().mode is ReadingMode.CDC


def test_a_timestamp_finds_its_commit(orders: TableState) -> None:
    first, *_, last = orders.timeline.data()
    view = orders.timeline
    assert first.completed is not None
    assert view.find_latest_completed_action_at(first.completed) == first
    assert view.find_latest_completed_action_at(dt.date(2100, 1, 1)) == last
    assert view.find_latest_completed_action_at(dt.date(2001, 1, 1)) is None


def test_expressions_are_trees() -> None:
    both = parse_expression("a = 1 AND NOT b")
    assert isinstance(both, BinaryExpression) and isinstance(both, Expression)
    left, right = both.children()
    assert left is both.left and right is both.right
    assert isinstance(right, UnaryExpression)
    (child,) = right.children()
    assert child is right.child
    assert left.identical(lw.col("a") == 1)


def test_expressions_are_relayed() -> None:
    rows = pa.table({"a": [1, 2, 3, None]})
    bound = bind(lw.col("a") > 1, Struct((Field("a", LONG),)))
    relayed = to_arrow(bound)
    assert relayed.expression is not None
    assert rows.filter(relayed.expression).column("a").to_pylist() == [2, 3]
    assert parse_expression(to_sql(lw.col("a") > 1)).identical(lw.col("a") > 1)


def test_splits_are_balanced(orders: TableState) -> None:
    pieces = slices_of(orders)
    tasks = splits(pieces, target_size=1)
    assert sorted(p.group for task in tasks for p in task) == sorted(p.group for p in pieces)
    assert len(splits(pieces, target_size=1 << 30)) == 1


class Longest:
    """Keeps the row with the longer item, and the newer one on a tie."""

    merging_strategy = "org.example.Longest"

    def merge(self, older: pa.Table, newer: pa.Table) -> Merged:
        longer = pc.greater(pc.utf8_length(older["item"]), pc.utf8_length(newer["item"]))
        chosen = [pc.if_else(longer, older[name], newer[name]) for name in newer.column_names]
        return Merged(pa.table(chosen, schema=newer.schema))


def test_a_custom_merge_mode_needs_a_registered_merger(own_table: Tables, tmp_path: Path) -> None:
    custom = custom_copy(own_table("orders_mor"), tmp_path / "custom", Longest.merging_strategy)
    with pytest.raises(lw.Unsupported, match=r"org\.example\.Longest"):
        lw.open_table(custom).scan().to_arrow()
    lw.register_merger(Longest())
    try:
        rows = lw.open_table(custom).scan(columns=["id", "item"]).to_arrow()
    finally:
        unregister_merger(Longest.merging_strategy)
    first = lw.open_table(custom).scan(columns=["id", "item"], mode="read_optimized").to_arrow()
    longest = dict(zip(*first.to_pydict().values(), strict=True))
    for key, item in zip(*rows.to_pydict().values(), strict=True):
        assert len(item) >= len(longest.get(key, ""))


def custom_copy(source: Path, target: Path, strategy: str) -> Path:
    shutil.copytree(source, target)
    file = target / ".hoodie" / "hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if "merge.mode" not in line]
    own = ["hoodie.record.merge.mode=CUSTOM", f"hoodie.record.merge.strategy.id={strategy}"]
    file.write_text("\n".join([*lines, *own]) + "\n")
    return target


def test_rows_are_rewritten_to_an_evolved_schema() -> None:
    old = pa.table({"b": pa.array([1], pa.int32()), "gone": ["x"]})
    target = pa.schema([("a", pa.string()), ("b", pa.int64())])
    assert conform(old, target).to_pylist() == [{"a": None, "b": 1}]


def test_a_table_gives_its_snapshots(orders: TableState) -> None:
    table = lw.open_table(orders.storage.uri)
    first = orders.timeline.data()[0].requested
    assert list(table.get_snapshot(None)) == list(table.get_latest_snapshot())
    early = [s for snapshot in table.get_snapshot(first) for s in snapshot.file_slices]
    assert early and not any(piece.logs for piece in early)


def test_keys_are_tagged_with_where_they_lie(orders: TableState) -> None:
    stored = lw.open_table(orders.storage.uri).scan(columns=[RECORD_KEY, PARTITION_PATH]).to_arrow()
    keys = [*stored.column(RECORD_KEY).to_pylist(), "nowhere"]
    partitions = [
        *stored.column(PARTITION_PATH).to_pylist(),
        stored.column(PARTITION_PATH)[0].as_py(),
    ]
    index = RecordIndex(PinnedTable(orders), IndexLayout.of(orders.config.properties, {}))
    tagged = index.tag(pa.array(keys), pa.array(partitions))
    assert sorted(tagged.row.tolist()) == list(range(len(keys) - 1))
    for row, number in zip(tagged.row, tagged.slice, strict=True):
        assert tagged.slices[number].group.partition == partitions[row]


def test_a_table_is_written_at_an_instant(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id bigint, n int", key="id")
    times = [f"2026110100000{number}000" for number in range(3)]
    loaded = table.bulk_insert([{"id": 1, "n": 1}, {"id": 2, "n": 2}], instant=times[0])
    changed = table.upsert([{"id": 2, "n": 3}, {"id": 3, "n": 3}], instant=times[1])
    less = table.delete([1], instant=times[2])
    assert [r.instant.requested for r in (loaded, changed, less) if r.instant] == times
    counts = [(r.inserted, r.updated, r.deleted) for r in (loaded, changed, less)]
    assert counts == [(2, 0, 0), (1, 1, 0), (0, 0, 1)]
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 2, "n": 3}, {"id": 3, "n": 3}]


def test_rows_are_deleted_by_key_and_by_expression(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id bigint, n int", key="id")
    table.upsert([{"id": number, "n": number} for number in range(6)])
    assert table.delete([0, 1]).deleted == 2
    assert table.delete(lw.col("n") == 2).deleted == 1
    assert table.delete(where="n > 4").deleted == 1
    with pytest.raises(lw.Invalid, match="keys, rows or a condition"):
        table.delete()
    assert table.scan().count() == 2
    table.delete("TRUE")
    assert table.scan().count() == 0


def test_writes_and_services_take_extra_properties(tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id bigint, n int", key="id", type="MERGE_ON_READ"
    )
    small = {"hoodie.parquet.small.file.limit": "0"}
    for n in range(2):
        done = table.upsert([{"id": 1, "n": n}], options=small, metadata={"job": f"load {n}"})
    assert done.instant is not None
    assert table.timeline.commit_metadata(done.instant).extra["job"] == "load 1"
    none = {"hoodie.compaction.strategy": "LogFileNumBasedCompactionStrategy"}
    least = {"hoodie.compaction.logfile.num.threshold": "9"}
    assert table.schedule_compaction(options={**none, **least}) is None
    assert table.schedule_compaction(options=none) is not None


def test_services_are_scheduled_and_carried_out(tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id bigint, n int", key="id", type="MERGE_ON_READ"
    )
    assert table.schedule_compaction() is None  # the plan is optional
    for n in range(3):
        table.upsert([{"id": 1, "n": n}])
    times = [f"2999010100000{number}000" for number in range(3)]
    compaction = table.schedule_compaction(instant=times[0])
    assert compaction is not None
    compacted = table.compact(compaction)
    clustering = table.schedule_clustering(instant=times[1], sort_by=["n"])
    assert clustering is not None
    clustered = table.cluster(clustering)
    cleaning = table.schedule_cleaning(instant=times[2], policy="versions", retain=1)
    assert cleaning is not None
    cleaned = table.clean(cleaning)
    done = [r.instant.requested for r in (compacted, clustered, cleaned) if r.instant]
    assert done == times and cleaned.total.files_deleted > 0
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 2}]


def test_a_catalog_creates_loads_and_drops(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    made = lake.create_table("shop.orders", schema="id string, ts long", key="id", order_by="ts")
    assert lake.tables() == ["shop.orders"]
    assert lake.table("shop.orders").schema == made.schema
    assert made.scan().to_arrow().num_rows == 0
    lake.drop_table("shop.orders")
    assert lake.tables() == []
    with pytest.raises(lw.TableNotFound, match="files are still there"):
        lake.table("shop.orders")
    assert lw.open_table(made.path).scan().count() == 0


def test_dropping_with_cascade_deletes_the_files(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    path = Path(lake.create_table("shop.orders", schema="id string", key="id").path)
    lake.drop_table("shop.orders", cascade=True)
    assert not [file for file in path.rglob("*") if file.is_file()]
    lake.create_table("shop.orders", schema="id string", key="id")
    assert lake.tables() == ["shop.orders"]
