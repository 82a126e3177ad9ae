"""What each kind of write does to files, counts and write stats."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write import plan_groups, stream_groups, write_group, write_stream
from lakewright.actions.tasks.write_spec import (
    ROUTE_DELETE,
    ROUTE_GROUP,
    ROUTE_PARTITION,
    ROUTE_POSITION,
)
from lakewright.format.hudi.base_footer import read_footer
from lakewright.format.hudi.bloom import parse_bloom
from lakewright.format.hudi.log.read import read_positions, scan_blocks
from lakewright.model.errors import Unsupported
from lakewright.model.schema import BOOLEAN, LONG, Field, Struct
from lakewright.model.table import TableType
from lakewright.model.writing import Operation
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from support.faulty_storage import FaultyStorage
from support.task_writes import SCHEMA, TaskTable, hudi_rows, rows_of, schema_of

UPSERT, INSERT, DELETE = Operation.UPSERT, Operation.INSERT, Operation.DELETE
BULK = Operation.BULK_INSERT
COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ
DELETING = Struct((*SCHEMA.fields, Field("_hoodie_is_deleted", BOOLEAN)))


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    return MemoryStorage(f"memory://{request.node.name}/t", {})


def many(count: int, ts: int = 1, v: str = "a", day: str = "p") -> pa.Table:
    return rows_of(*((f"k{n:04d}", ts, v, day) for n in range(count)))


def counts(made: Any) -> tuple[int, int, int, bool]:
    return (
        sum(f.inserted for f in made),
        sum(f.updated for f in made),
        sum(f.deleted for f in made),
        all(f.exact for f in made),
    )


def soft(*rows: tuple[str, int, str, str, bool]) -> pa.Table:
    table = rows_of(*(row[:4] for row in rows))
    return table.append_column("_hoodie_is_deleted", pa.array([row[4] for row in rows]))


@pytest.mark.parametrize("buckets", [None, 2])
def test_copy_on_write_counts_and_stats_are_exact(
    storage: MemoryStorage, buckets: int | None
) -> None:
    table = TaskTable(storage, buckets=buckets)
    (first, *_) = table.write(UPSERT, many(10))
    assert first.stat.prev_commit == "null"
    assert first.stat.prev_base_file is None
    made = table.write(
        UPSERT,
        rows_of(("k0001", 2, "b", "p"), ("k0002", 0, "late", "p"), ("n", 1, "n", "p")),
        [("dt=p", "k0003"), ("dt=p", "absent")],
    )
    assert counts(made) == (1, 1, 1, True)
    assert len(table.rows()) == 10
    for file in made:
        assert file.stat.prev_commit == "20261115000100000"
        assert file.stat.prev_base_file and file.stat.base_file is None
        assert file.stat.file_size_in_bytes == len(storage.read(file.stat.path or ""))


def test_unchanged_rows_keep_commit_time_and_number(storage: MemoryStorage) -> None:
    table = TaskTable(storage, buckets=1)
    table.write(UPSERT, many(5))
    before = {r["id"]: r for r in table.rows(meta=True)}
    table.write(UPSERT, rows_of(("k0002", 5, "b", "p"), ("k0003", 0, "late", "p")))
    after = {r["id"]: r for r in table.rows(meta=True)}
    for key in ("k0000", "k0001", "k0003", "k0004"):
        for column in ("_hoodie_commit_time", "_hoodie_commit_seqno", "v"):
            assert after[key][column] == before[key][column]
    assert after["k0002"]["_hoodie_commit_time"] == table.instant
    assert len({r["_hoodie_commit_seqno"] for r in after.values()}) == 5
    assert len({r["_hoodie_file_name"] for r in after.values()}) == 1


def test_a_group_that_nothing_changes_is_left_alone(storage: MemoryStorage) -> None:
    table = TaskTable(storage, buckets=2)
    table.write(UPSERT, many(10, ts=5))
    assert table.write(UPSERT, many(10, ts=4)) == ()
    assert table.write(DELETE, deletes=[("dt=p", "absent")]) == ()
    assert {r["v"] for r in table.rows()} == {"a"}


def test_a_group_that_loses_all_rows_stays_with_none(storage: MemoryStorage) -> None:
    table = TaskTable(storage, buckets=1)
    table.write(UPSERT, many(3))
    (file,) = table.write(DELETE, deletes=[("dt=p", f"k000{n}") for n in range(3)])
    assert (file.stat.num_writes, file.stat.num_deletes) == (0, 3)
    assert table.rows() == []
    table.write(UPSERT, many(2))
    assert len(table.rows()) == 2


@pytest.mark.parametrize("kind", [COW, MOR])
@pytest.mark.parametrize("buckets", [None, 2])
def test_soft_deletes_win_by_their_ordering_value(
    storage: MemoryStorage, kind: TableType, buckets: int | None
) -> None:
    table = TaskTable(storage, kind, buckets=buckets, schema=DELETING)
    rows = soft(("a", 5, "x", "p", False), ("b", 5, "x", "p", False), ("c", 5, "x", "p", True))
    table.write(UPSERT, rows)
    assert set(table.by_key()) == {("p", "a"), ("p", "b")}
    table.write(UPSERT, soft(("a", 4, "x", "p", True), ("b", 6, "x", "p", True)))
    assert set(table.by_key()) == {("p", "a")}
    table.write(UPSERT, soft(("a", 9, "y", "p", True), ("a", 8, "z", "p", False)))
    assert table.by_key() == {}


@pytest.mark.parametrize("version", [9, 6])
def test_logs_are_named_and_numbered_as_the_version_wants(
    storage: MemoryStorage, version: int
) -> None:
    table = TaskTable(storage, MOR, version, buckets=1)
    (base,) = table.write(UPSERT, many(3))
    names = []
    for ts in (2, 3):
        (file,) = table.write(UPSERT, many(2, ts=ts, v=f"v{ts}"))
        names.append((file.stat.path or "").rpartition("/")[2])
        assert file.stat.file_id == base.stat.file_id
        assert file.stat.log_offset == 0
        assert file.stat.num_update_writes == 2
        if version == 9:
            assert f"_{table.instant}.log.1_" in names[-1]
            assert (file.stat.base_file, file.stat.log_version) == ("", 1)
            assert file.stat.log_files == (names[-1],)
            assert file.stat.prev_commit == table.instant
        else:
            assert f"_20261115000100000.log.{ts - 1}_" in names[-1]
            assert file.stat.base_file == (base.stat.path or "").rpartition("/")[2]
            assert file.stat.log_files == tuple(names)
            assert file.stat.prev_commit == "20261115000100000"
    assert sorted(r["v"] for r in table.rows()) == ["a", "v3", "v3"]


def test_positions_are_those_of_the_base_file(storage: MemoryStorage) -> None:
    table = TaskTable(storage, MOR, buckets=1)
    table.write(UPSERT, many(10))
    (file,) = table.write(
        UPSERT,
        rows_of(("k0007", 2, "b", "p"), ("new", 2, "n", "p"), ("k0002", 2, "c", "p")),
        [("dt=p", "k0009"), ("dt=p", "k0001")],
    )
    assert counts([file]) == (1, 2, 2, True)
    path = file.stat.path or ""
    with storage.open(path) as opened:
        blocks = list(scan_blocks(opened, len(storage.read(path)), path))
        found = [read_positions(b) for b in blocks]
    assert [None if p is None else p.tolist() for p in found] == [[2, 7], None, [1, 9]]
    assert {r["id"]: r["v"] for r in table.rows()}["k0007"] == "b"
    assert len(table.rows()) == 9


def test_logs_without_positions_where_they_are_turned_off(storage: MemoryStorage) -> None:
    table = TaskTable(storage, MOR, buckets=1, options={"hoodie.write.record.positions": "false"})
    table.write(UPSERT, many(10))
    faulty = FaultyStorage(storage)
    table.storage = faulty
    (file,) = table.write(UPSERT, many(4, ts=2, v="b"))
    assert not file.exact
    assert not [c for c in faulty.calls if c.path.endswith(".parquet")]


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_either_form_of_log_block_is_read_by_both(tmp_path: Path, form: str) -> None:
    options = {"hoodie.logfile.data.block.format": form}
    table = TaskTable(open_storage(tmp_path), MOR, buckets=2, options=options)
    table.write(UPSERT, many(6))
    table.write(UPSERT, many(4, ts=2, v="é,b"), [("dt=p", "k0005")])
    assert sorted(r["v"] for r in table.rows()) == ["a"] + ["é,b"] * 4
    assert sorted(r["v"] for r in hudi_rows(str(tmp_path))) == ["a"] + ["é,b"] * 4


def test_new_keys_of_a_lookup_table_never_go_to_logs(storage: MemoryStorage) -> None:
    table = TaskTable(storage, MOR)
    table.write(UPSERT, many(5))
    made = table.write(UPSERT, rows_of(("k0001", 2, "b", "p"), ("n", 1, "n", "p")))
    kinds = {(f.stat.path or "").endswith(".parquet"): f for f in made}
    assert kinds[True].inserted == 1
    assert kinds[True].stat.num_inserts == 1
    assert kinds[False].updated == 1
    assert kinds[True].stat.file_id != kinds[False].stat.file_id
    # A base file without logs that is still small is written anew inside the delta commit.
    (grown,) = table.write(UPSERT, rows_of(("m", 1, "m", "p")))
    assert grown.stat.file_id == kinds[True].stat.file_id
    assert (grown.stat.num_writes, grown.stat.num_inserts) == (2, 1)
    assert len(table.rows()) == 7


@pytest.mark.parametrize("kind", [COW, MOR])
def test_inserts_fill_small_files_and_then_make_groups(
    storage: MemoryStorage, kind: TableType
) -> None:
    options = {
        "hoodie.parquet.max.file.size": "20000",
        "hoodie.parquet.small.file.limit": "15000",
    }
    table = TaskTable(storage, kind, options=options)
    table.write(INSERT, many(10))
    (file,) = table.write(INSERT, many(10, day="p"))
    assert file.stat.num_writes == 20
    assert len(table.rows()) == 20
    made = table.write(BULK, many(3000))
    assert len(made) > 2
    assert all(f.stat.prev_commit == "null" for f in made)
    assert all(f.stat.file_size_in_bytes < 40_000 for f in made)
    assert len({f.stat.file_id for f in made}) == len(made)
    assert len(table.rows()) == 3020


def test_an_insert_that_leaves_stored_keys_alone(storage: MemoryStorage) -> None:
    for number, buckets in enumerate((None, 2)):
        for kind in (COW, MOR):
            place = MemoryStorage(f"{storage.uri}/{number}-{kind}", {})
            table = TaskTable(place, kind, buckets=buckets)
            table.write(UPSERT, many(4))
            table.write(UPSERT, many(2, ts=2, v="b"), [("dt=p", "k0003")])
            rows = rows_of(*((f"k000{n}", 9, "new", "p") for n in (1, 2, 4, 4)))
            made = table.write(INSERT, rows, drop_existing=True)
            assert sum(f.stat.num_writes for f in made) >= 1
            expected = {"k0000": "b", "k0001": "b", "k0002": "a", "k0004": "new"}
            assert {r["id"]: r["v"] for r in table.rows()} == expected


@pytest.mark.parametrize("kind", [COW, MOR])
@pytest.mark.parametrize("moves", [True, False])
def test_a_global_key_moves_or_stays(storage: MemoryStorage, kind: TableType, moves: bool) -> None:
    properties = {"hoodie.simple.index.update.partition.path": str(moves).lower()}
    table = TaskTable(storage, kind, index="GLOBAL_SIMPLE", properties=properties)
    table.write(UPSERT, rows_of(("a", 5, "x", "p"), ("b", 5, "x", "p"), ("c", 5, "x", "q")))
    table.write(UPSERT, rows_of(("a", 6, "y", "q"), ("b", 4, "late", "q"), ("c", 6, "y", "q")))
    found = sorted((r["id"], r["v"], r["_hoodie_partition_path"]) for r in table.rows(meta=True))
    where = "dt=q" if moves else "dt=p"
    assert found == [("a", "y", where), ("b", "x", "dt=p"), ("c", "y", "dt=q")]
    table.write(DELETE, deletes=[("dt=nowhere", "a"), ("dt=q", "b")])
    assert [r["id"] for r in table.rows()] == ["c"]


@pytest.mark.parametrize("kind", [COW, MOR])
@pytest.mark.parametrize("moves", [True, False])
def test_a_soft_delete_finds_a_global_key_in_another_partition(
    storage: MemoryStorage, kind: TableType, moves: bool
) -> None:
    properties = {"hoodie.simple.index.update.partition.path": str(moves).lower()}
    table = TaskTable(storage, kind, index="GLOBAL_SIMPLE", schema=DELETING, properties=properties)
    table.write(UPSERT, soft(*((f"k{n}", 5, "x", "p", False) for n in range(4))))
    gone = soft(*((f"k{n}", 0, "", "q", True) for n in range(3)))
    gone = gone.set_column(1, "ts", pa.array([6, 4, None], pa.int64()))
    table.write(UPSERT, gone)
    # A late delete loses; one without an ordering value has nothing that could be late.
    assert [r["id"] for r in table.rows()] == ["k1", "k3"]


def test_marked_rows_delete_in_any_write(storage: MemoryStorage) -> None:
    table = TaskTable(storage, buckets=2)
    table.write(UPSERT, many(4))
    rows = many(3, ts=0, v="b").append_column(ROUTE_DELETE, pa.array([True, False, None]))
    table.write(UPSERT, rows, stream=True)
    assert {r["id"]: r["v"] for r in table.rows()} == {"k0001": "a", "k0002": "a", "k0003": "a"}


def test_routed_rows_go_where_they_are_sent(storage: MemoryStorage) -> None:
    table = TaskTable(storage, MOR)
    (base,) = table.write(UPSERT, many(4))
    spec = table.spec(UPSERT)
    new = "11111111-2222-3333-4444-555555555555-0"
    rows = rows_of(("k0001", 2, "b", "p"), ("n", 1, "n", "p"), ("k0002", 0, "", "p"))
    routes = {
        ROUTE_PARTITION: ["dt=p"] * 3,
        ROUTE_GROUP: [base.stat.file_id, new, base.stat.file_id],
        ROUTE_POSITION: pa.array([1, -1, 2]),
        ROUTE_DELETE: [False, False, True],
    }
    for name, values in routes.items():
        rows = rows.append_column(name, values if isinstance(values, pa.Array) else [values])
    made = tuple(write_stream(spec, rows.to_batches(), Attempt(3, 2, 1)))
    assert {f.stat.file_id for f in made} == {base.stat.file_id, new}
    table.commit(spec, made)
    assert {r["id"]: r["v"] for r in table.rows()} == {
        "k0000": "a",
        "k0001": "b",
        "k0003": "a",
        "n": "n",
    }


def test_rows_beyond_the_limit_wait_on_disk(storage: MemoryStorage) -> None:
    options = {"lakewright.write.spill-bytes": "2000"}
    table = TaskTable(storage, buckets=3, options=options)
    rows = pa.concat_tables([many(500, day=f"p{n}") for n in range(3)])
    table.write(UPSERT, rows, stream=True)
    assert len(table.rows()) == 1500
    works = list(stream_groups(table.spec(UPSERT), rows.to_batches(100), Attempt()))
    assert sum(w.rows.num_rows for w in works if w.rows is not None) == 1500


def test_a_stream_of_deletes_needs_keys_and_partitions_alone(storage: MemoryStorage) -> None:
    for buckets in (None, 2):
        table = TaskTable(MemoryStorage(f"{storage.uri}/{buckets}", {}), MOR, buckets=buckets)
        table.write(UPSERT, many(6))
        table.write(DELETE, many(2).select(["dt", "id"]), stream=True)
        assert len(table.rows()) == 4


def test_a_wider_schema_reaches_old_rows(storage: MemoryStorage) -> None:
    table = TaskTable(storage, buckets=1)
    table.write(UPSERT, many(3))
    wide = Struct((*SCHEMA.fields, Field("extra", LONG)))
    rows = many(1, ts=2).append_column("extra", pa.array([7]))
    table.write(UPSERT, rows, schema=wide)
    assert [r["extra"] for r in table.rows()] == [7, None, None]


def test_partitions_are_described_once(storage: MemoryStorage) -> None:
    faulty = FaultyStorage(storage)
    table = TaskTable(faulty, buckets=4)
    table.write(UPSERT, pa.concat_tables([many(20, day="p"), many(20, day="q")]))

    def described() -> int:
        return sum(c.path.endswith(".hoodie_partition_metadata") for c in faulty.calls)

    assert described() == 2
    table.write(UPSERT, pa.concat_tables([many(20, ts=2, day="p"), many(1, day="r")]))
    assert described() == 3


def test_sorted_bulk_inserts_lie_in_order(tmp_path: Path) -> None:
    options = {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"}
    table = TaskTable(open_storage(tmp_path), options=options)
    rows = many(50).take(pa.array(list(reversed(range(50)))))
    (file,) = table.write(BULK, rows)
    stored = pq.read_table(tmp_path / (file.stat.path or ""))["id"].to_pylist()
    assert stored == sorted(stored)


def test_every_file_has_its_marker_before_it(storage: MemoryStorage) -> None:
    for kind in (COW, MOR):
        faulty = FaultyStorage(MemoryStorage(f"{storage.uri}/{kind}", {}))
        table = TaskTable(faulty, kind, buckets=2)
        table.write(UPSERT, many(10))
        table.write(UPSERT, many(10, ts=2))
        marked: set[str] = set()
        for call in faulty.calls:
            if ".marker." in call.path and call.verb != "delete":
                marked.add(call.path.split("/", 3)[3].rpartition(".marker.")[0])
            elif call.verb == "writer":
                assert call.path in marked


def test_specs_and_works_pickle() -> None:
    import pickle

    storage = MemoryStorage("memory://pickled/t", {})
    table = TaskTable(storage, buckets=2)
    table.write(UPSERT, many(4))
    spec = table.spec(UPSERT)
    works = list(plan_groups(spec, many(4, ts=2), None))
    again = pickle.loads(pickle.dumps(spec))
    made = [f for w in works for f in write_group(again, pickle.loads(pickle.dumps(w)), Attempt())]
    assert sum(f.updated for f in made) == 4


def test_a_global_key_is_combined_over_partitions(storage: MemoryStorage) -> None:
    table = TaskTable(storage, index="GLOBAL_SIMPLE")
    table.write(UPSERT, rows_of(("a", 1, "first", "z"), ("b", 1, "x", "m"), ("a", 1, "last", "c")))
    assert table.by_key() == {("c", "a"): "last", ("m", "b"): "x"}


def test_typed_and_hard_deletes_lie_in_blocks_of_their_own(tmp_path: Path) -> None:
    table = TaskTable(open_storage(tmp_path), MOR, buckets=1, schema=DELETING)
    rows = [(f"k{n}", 5, "x", "p", False) for n in range(6)]
    table.write(UPSERT, soft(*rows))
    gone = soft(("k0", 6, "", "p", True), ("k1", 4, "", "p", True), ("k2", 0, "", "p", True))
    gone = gone.set_column(1, "ts", pa.array([6, 4, None], pa.int64()))
    (file,) = table.write(UPSERT, gone, [("dt=p", "k3")])
    path = file.stat.path or ""
    with table.storage.open(path) as opened:
        size = len(table.storage.read(path))
        assert len(list(scan_blocks(opened, size, path))) == 2
    kept = {"k1", "k4", "k5"}
    assert {r["id"] for r in table.rows()} == kept
    assert {r["id"] for r in hudi_rows(str(tmp_path))} == kept


@pytest.mark.parametrize("version", [9, 6])
def test_late_rows_of_a_lookup_table_are_not_counted(storage: MemoryStorage, version: int) -> None:
    table = TaskTable(storage, MOR, version)
    table.write(UPSERT, many(5, ts=5))
    made = table.write(UPSERT, rows_of(("k0001", 4, "late", "p"), ("k0002", 6, "b", "p")))
    assert counts(made) == (0, 1, 0, True)


@pytest.mark.parametrize("buckets", [None, 1])
def test_late_deletes_are_not_counted(storage: MemoryStorage, buckets: int | None) -> None:
    table = TaskTable(storage, MOR, buckets=buckets, schema=DELETING)
    table.write(UPSERT, soft(*((f"k{n}", 5, "a", "p", False) for n in range(4))))
    late = [("k0", 4, "late", "p", True), ("k1", 4, "late", "p", False)]
    made = table.write(UPSERT, soft(*late, ("k2", 6, "b", "p", True)), [("dt=p", "k3")])
    assert counts(made) == (0, 0, 2, True)
    assert {row["id"] for row in table.rows()} == {"k0", "k1"}


def test_the_filter_of_a_rewritten_file_knows_every_key(storage: MemoryStorage) -> None:
    table = TaskTable(storage, buckets=1)
    table.write(UPSERT, many(40))
    for step in (5, 50):
        rows = rows_of(*((f"n{step}-{n}", 1, "n", "p") for n in range(step)))
        (file,) = table.write(UPSERT, rows, [("dt=p", "k0001")])
        footer = read_footer(storage, file.stat.path or "")
        assert footer.bloom is not None
        bloom = parse_bloom(*footer.bloom)
        keys = pa.array([r["id"] for r in table.rows()])
        assert bloom.contains(keys).all()
        assert footer.key_range is not None
        assert footer.key_range[0] <= min(keys.to_pylist())
        assert footer.key_range[1] >= max(keys.to_pylist())


@pytest.mark.parametrize("kind", [COW, MOR])
def test_base_files_of_several_row_groups(tmp_path: Path, kind: TableType) -> None:
    options = {"hoodie.parquet.max.file.size": "20000", "hoodie.parquet.small.file.limit": "0"}
    table = TaskTable(open_storage(tmp_path), kind, options=options)
    made = table.write(BULK, many(3000))
    groups = [pq.read_metadata(tmp_path / (f.stat.path or "")).num_row_groups for f in made]
    assert max(groups) > 1
    changed = {f"k{n:04d}" for n in range(0, 3000, 7)}
    gone = [("dt=p", f"k{n:04d}") for n in range(1, 3000, 700)]
    table.write(UPSERT, rows_of(*((k, 2, "b", "p") for k in sorted(changed))), gone)
    expected = {r["id"]: r["v"] for r in many(3000).to_pylist()} | dict.fromkeys(changed, "b")
    for _, key in gone:
        del expected[key]
    assert {r["id"]: r["v"] for r in table.rows()} == expected
    assert {r["id"]: r["v"] for r in hudi_rows(str(tmp_path))} == expected


def test_types_of_every_kind_survive_a_rewrite(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": ["a", "b", "c"],
            "ts": pa.array([1, 1, 1], pa.int64()),
            "dt": ["p", "p", "p"],
            "day": pa.array([1, None, 3], pa.date32()),
            "moment": pa.array([1, None, 3], pa.timestamp("us", tz="UTC")),
            "price": pa.array([None, "1.50", "2.25"]).cast(pa.decimal128(10, 2)),
            "tags": pa.array([["x", "y"], [], None], pa.list_(pa.string())),
            "who": pa.array([{"n": 1, "s": "é"}, None, {"n": None, "s": ""}]),
            "raw": pa.array([b"\x00", None, b""], pa.binary()),
        }
    )
    schema = schema_of(rows)
    for kind in (COW, MOR):
        table = TaskTable(open_storage(tmp_path / kind), kind, buckets=1, schema=schema)
        table.write(UPSERT, rows)
        later = rows.slice(1, 1).set_column(1, "ts", pa.array([2], pa.int64()))
        table.write(UPSERT, later)
        expected = {r["id"]: r for r in rows.to_pylist()}
        expected["b"]["ts"] = 2
        assert {r["id"]: r for r in table.rows()} == expected


def test_rows_that_leave_columns_out_keep_the_stored_ones(storage: MemoryStorage) -> None:
    partial = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    for kind in (COW, MOR):
        place = MemoryStorage(f"{storage.uri}/{kind}", {})
        table = TaskTable(place, kind, buckets=2, properties=partial)
        table.write(UPSERT, many(4))
        rows = rows_of(("k0000", 2, "b", "p"), ("k0001", 2, "", "p"), ("n", 2, "n", "p"))
        rows = rows.set_column(2, "v", pa.array(["b", None, "n"]))
        table.write(UPSERT, rows, [("dt=p", "k0003")])
        found = {r["id"]: (r["ts"], r["v"]) for r in table.rows()}
        assert found == {"k0000": (2, "b"), "k0001": (2, "a"), "k0002": (1, "a"), "n": (2, "n")}
        numbers = [r["_hoodie_commit_seqno"] for r in table.rows(meta=True)]
        assert len(set(numbers)) == 4
    everywhere = TaskTable(
        MemoryStorage(f"{storage.uri}/global", {}), index="GLOBAL_SIMPLE", properties=partial
    )
    everywhere.write(UPSERT, many(2))
    with pytest.raises(Unsupported, match="change their partition"):
        everywhere.write(UPSERT, many(1, ts=2, day="q"))
