"""Buckets are left out only where no row of theirs can match."""

from itertools import count

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.model.schema import INT, LONG, STRING, Field, Struct
from lakewright.model.table import TableType
from lakewright.model.writing import Operation
from lakewright.storage.memory import MemoryStorage
from support.task_writes import TaskTable, rows_of

NUMBERS = count()
TEXTS = st.text(alphabet="ab,:_1é😀", min_size=1, max_size=5)


def ids(table: TaskTable, where: str) -> tuple[list[str], int]:
    plan = plan_scan(table.state, ScanRequest(where=where, columns=("id",)))
    rows = [r["id"] for b in scan_batches(plan) for r in b.to_pylist()]
    return sorted(rows), len(plan)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(keys=st.lists(TEXTS, min_size=1, max_size=12, unique=True), data=st.data())
def test_no_matching_row_is_lost_with_a_key_of_text(keys: list[str], data: st.DataObject) -> None:
    storage = MemoryStorage(f"memory://pruner-{next(NUMBERS)}/t", {})
    table = TaskTable(storage, TableType.MERGE_ON_READ, buckets=4, partition_by=())
    table.write(Operation.UPSERT, rows_of(*((k, 1, "a", "p") for k in keys)))
    table.write(Operation.UPSERT, rows_of(*((k, 2, "b", "p") for k in keys[:3])))
    wanted = data.draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True))
    found, slices = ids(table, f"id IN ({', '.join(map(quoted, wanted))})")
    assert found == sorted(wanted)
    assert slices <= 2 * len(wanted)  # either form of a single key


COMPOSITE = Struct((Field("id", STRING), Field("n", INT), Field("ts", LONG), Field("v", STRING)))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pairs=st.lists(st.tuples(TEXTS, st.integers(0, 5)), min_size=1, max_size=12, unique=True),
    hashed=st.sampled_from(["id", "n", "id,n", ""]),
    data=st.data(),
)
def test_no_matching_row_is_lost_with_two_key_columns(
    pairs: list[tuple[str, int]], hashed: str, data: st.DataObject
) -> None:
    storage = MemoryStorage(f"memory://pruner-{next(NUMBERS)}/t", {})
    table = TaskTable(
        storage,
        buckets=4,
        partition_by=(),
        key=("id", "n"),
        schema=COMPOSITE,
        properties={"hoodie.bucket.index.hash.field": hashed} if hashed else {},
    )
    rows = [{"id": i, "n": n, "ts": 1, "v": "a"} for i, n in pairs]
    schema = pa.schema(
        [("id", pa.string()), ("n", pa.int32()), ("ts", pa.int64()), ("v", pa.string())]
    )
    table.write(Operation.UPSERT, pa.Table.from_pylist(rows, schema))
    one, number = data.draw(st.sampled_from(pairs))
    found, _ = ids(table, f"id = {quoted(one)}")
    assert found == sorted(i for i, _ in pairs if i == one)
    found, _ = ids(table, f"n = {number}")
    assert found == sorted(i for i, n in pairs if n == number)
    found, slices = ids(table, f"id = {quoted(one)} AND n = {number}")
    assert found == [one]
    assert slices == 1


@pytest.mark.parametrize("hashed", [True, False])
def test_only_a_table_that_names_its_buckets_is_pruned(hashed: bool) -> None:
    storage = MemoryStorage(f"memory://pruner-{next(NUMBERS)}/t", {})
    table = TaskTable(storage, TableType.MERGE_ON_READ, buckets=8, partition_by=())
    table.write(Operation.UPSERT, rows_of(*((f"k{n}", 1, "a", "p") for n in range(50))))
    table.write(Operation.UPSERT, rows_of(*((f"k{n}", 2, "a", "p") for n in range(50))))
    if not hashed:
        folder = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
        storage.write(f"{folder}/00000000000000.hashing_config", b"{}")
    found, slices = ids(table, "id = 'k7'")
    assert found == ["k7"]
    assert slices == (2 if hashed else 8)  # either form of a single key
