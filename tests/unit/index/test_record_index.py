"""Where records lie: looked up and by bucket, against a walk over all rows."""

from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import IndexLayout, layout_of
from lakewright.index.record_index import RecordIndex
from lakewright.model.bucket_rules.text import parse_rules
from lakewright.model.errors import Invalid
from lakewright.model.table import TableType
from lakewright.model.writing import Operation
from lakewright.storage.memory import MemoryStorage
from lakewright.table.pinned import PinnedTable
from support.faulty_storage import FaultyStorage
from support.task_writes import TaskTable, rows_of

NUMBERS = count()
#: Letters on both sides of the line where Java and UTF-8 sort differently.
KEYS = st.text(alphabet="ab\ue000é😀", min_size=1, max_size=3)


def new_table(**given: object) -> TaskTable:
    storage = MemoryStorage(f"memory://record-index-{next(NUMBERS)}/t", {})
    return TaskTable(storage, **given)  # type: ignore[arg-type]


def index_of(table: TaskTable) -> RecordIndex:
    state = table.state
    return RecordIndex(PinnedTable(state), IndexLayout.of(state.config.properties, {}))


def found(
    index: RecordIndex, keys: list[str], partitions: list[str]
) -> set[tuple[int, str, str, int]]:
    tagged = index.tag(pa.array(keys, pa.string()), pa.array(partitions, pa.string()))
    return {
        (int(r), tagged.slices[s].group.partition, tagged.slices[s].group.file_id, int(p))
        for r, s, p in zip(tagged.row, tagged.slice, tagged.position, strict=True)
    }


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=st.lists(
        st.lists(st.tuples(KEYS, st.sampled_from("pq")), min_size=1, max_size=8),
        min_size=1,
        max_size=3,
    ),
    asked=st.lists(st.tuples(KEYS, st.sampled_from("pqr")), min_size=1, max_size=8),
    everywhere=st.booleans(),
)
def test_keys_are_found_where_they_lie(
    batches: list[list[tuple[str, str]]], asked: list[tuple[str, str]], everywhere: bool
) -> None:
    table = new_table(
        index="GLOBAL_BLOOM" if everywhere else "BLOOM",
        options={"hoodie.parquet.small.file.limit": "0"},
    )
    for batch in batches:
        table.write(Operation.BULK_INSERT, rows_of(*((k, 1, "v", p) for k, p in batch)))
    expected = set()
    places: dict[str, int] = {}
    for row in table.rows("id", "_hoodie_partition_path", "_hoodie_file_name", meta=True):
        places.setdefault(row["_hoodie_file_name"], 0)
        for number, (key, partition) in enumerate(asked):
            path = row["_hoodie_partition_path"]
            if key == row["id"] and (everywhere or path == f"dt={partition}"):
                expected.add((number, path, row["_hoodie_file_name"].partition("_")[0]))
    keys, partitions = [k for k, _ in asked], [f"dt={p}" for _, p in asked]
    assert {entry[:3] for entry in found(index_of(table), keys, partitions)} == expected


def test_positions_are_rows_of_the_base_file() -> None:
    table = new_table()
    table.write(Operation.BULK_INSERT, rows_of(*((f"k{n}", 1, "v", "p") for n in range(9))))
    entries = found(index_of(table), ["k4", "no", "k8", "k4"], ["dt=p"] * 4)
    assert {(row, position) for row, _, _, position in entries} == {(0, 4), (2, 8), (3, 4)}


def test_files_that_cannot_hold_a_key_are_not_read() -> None:
    table = new_table(options={"hoodie.parquet.small.file.limit": "0"})
    for letter in "abc":
        rows = rows_of(*((f"{letter}{n:03d}", 1, "v", "p") for n in range(0, 100, 2)))
        table.write(Operation.BULK_INSERT, rows)
    faulty = FaultyStorage(table.storage)
    table.storage = faulty
    index = index_of(table)
    faulty.calls.clear()
    assert not found(index, ["b003", "zzz"], ["dt=p"] * 2)
    assert not [c for c in faulty.calls if c.verb == "open"]
    assert len(found(index, ["b004"], ["dt=p"])) == 1
    assert len([c for c in faulty.calls if c.verb == "open"]) == 1


@pytest.mark.parametrize("kind", list(TableType))
def test_a_bucket_is_the_place_of_its_keys(kind: TableType) -> None:
    table = new_table(kind=kind, buckets=4)
    table.write(Operation.UPSERT, rows_of(("k1", 1, "v", "p"), ("k2", 1, "v", "p")))
    keys = [f"k{n}" for n in range(20)]
    buckets = bucket_of(pa.array(keys), ("id",), 4)
    stored = set(buckets[[1, 2]].tolist())
    entries = found(index_of(table), keys, ["dt=p"] * 20)
    assert {e[0] for e in entries} == set(np.flatnonzero(np.isin(buckets, list(stored))).tolist())
    assert all(bucket_number(e[2]) == buckets[e[0]] for e in entries)


def test_buckets_of_partitions_that_differ_in_their_number() -> None:
    table = new_table(buckets=4)
    rules = parse_rules("=p$,100000;=q$,1", 4)
    HashingStore(table.storage).write_config(FIRST_INSTANT, rules, {})
    stored = [(f"k{n}", 1, "v", "pqr"[n % 3]) for n in range(30)]
    table.write(Operation.UPSERT, rows_of(*stored))
    state = table.state
    index = RecordIndex(PinnedTable(state), layout_of(state, {}))
    keys = [f"k{n}" for n in range(60)]
    paths = [f"dt={'pqrs'[n % 4]}" for n in range(60)]
    numbers = {"dt=p": 100_000, "dt=q": 1, "dt=r": 4, "dt=s": 4}

    def bucket(key: str, path: str) -> int:
        return int(bucket_of(pa.array([key]), ("id",), numbers[path])[0])

    there = {(f"dt={p}", bucket(key, f"dt={p}")) for key, _, _, p in stored}
    entries = found(index, keys, paths)
    assert {(row, path, bucket_number(file_id)) for row, path, file_id, _ in entries} == {
        (row, path, bucket(key, path))
        for row, (key, path) in enumerate(zip(keys, paths, strict=True))
        if (path, bucket(key, path)) in there
    }


def test_a_bucket_beyond_the_number_of_its_partition_is_refused() -> None:
    table = new_table(buckets=9)
    table.write(Operation.UPSERT, rows_of(*((f"k{n}", 1, "v", "p") for n in range(40))))
    HashingStore(table.storage).write_config(FIRST_INSTANT, parse_rules("=p$,3", 9), {})
    state = table.state
    index = RecordIndex(PinnedTable(state), layout_of(state, {}))
    with pytest.raises(Invalid, match="'dt=p' has 3 buckets, but the file group"):
        index.tag(pa.array(["k"]), pa.array(["dt=p"]))
    assert not len(index.tag(pa.array(["k"]), pa.array(["dt=q"])).row)


def test_two_groups_of_one_bucket_are_refused() -> None:
    table, other = new_table(buckets=1), new_table(buckets=1)
    made = [t.write(Operation.UPSERT, rows_of(("k", 1, "v", "p"))) for t in (table, other)]
    path = made[1][0].stat.path or ""
    table.storage.write(path, other.storage.read(path))
    with pytest.raises(Invalid, match="two file groups"):
        index_of(table).tag(pa.array(["k"]), pa.array(["dt=p"]))
