"""How the rows of a large write are divided, and what its end compares with others."""

import pickle
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.actions.tasks.write_spec import FileWritten, WriteSpec
from lakewright.actions.write.admission import admit
from lakewright.actions.write.guard import guard_of
from lakewright.actions.write.routing import spread_of
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.errors import Conflict
from lakewright.model.instant import Action, Instant, State
from lakewright.model.writing import Operation
from lakewright.table.evolution import stored_schema
from lakewright.table.pinned import PinnedTable
from lakewright.table.state import open_state

NUMBERS = count()
BATCH = pa.RecordBatch.from_pydict(
    {"id": [f"k{n}" for n in range(60)], "p": [f"p{n % 3}" for n in range(60)], "n": [0] * 60}
)


def spec(
    operation: Operation, settings: dict[str, str] | None = None, **details: object
) -> WriteSpec:
    details = {"partition_by": "p", "key": "id", **details}
    path = f"memory://routing/t{next(NUMBERS)}"
    table = lw.create_table(path, schema="id STRING, p STRING, n BIGINT", **details)
    state = open_state(table._storage)
    schema = stored_schema(state)
    assert schema is not None
    return WriteSpec(
        uri=path,
        options={},
        config=state.config,
        schema=schema,
        instant="20300101000000000",
        operation=operation,
        layout=admit(state, {}),
        settings=WriteSettings.of(settings or {}),
        pinned=PinnedTable(state),
        storage=state.storage,
    )


def test_rows_of_a_bucket_stay_together() -> None:
    _, spread = spread_of(spec(Operation.UPSERT, buckets=4))
    assert (spread.columns, spread.hash_fields) == (("p",), ("id",))
    assert spread.buckets == BucketCounts.plain(4)
    assert spread.key_fields == ("id",)
    assert spread.route is not None
    numbers = pickle.loads(pickle.dumps(spread.route))(BATCH)
    buckets = bucket_of(BATCH.column("id"), ["id"], 4)
    places = list(zip(BATCH.column("p").to_pylist(), buckets, strict=True))
    together: dict[object, set[int]] = {}
    for place, number in zip(places, numbers, strict=True):
        together.setdefault(place, set()).add(int(number))
    assert all(len(found) == 1 for found in together.values())
    assert len(np.unique(numbers)) > 6


def test_keys_made_of_several_columns_are_not_hashed_natively() -> None:
    _, spread = spread_of(spec(Operation.UPSERT, buckets=4, key=["id", "n"], hash_by=["id"]))
    assert spread.key_fields == ()
    assert spread.hash_fields == ("id",)


REPARTITIONS = ("PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT")


@pytest.mark.parametrize(
    ("operation", "details", "settings", "columns", "together", "fills"),
    [
        (Operation.UPSERT, {}, {}, ("p",), False, True),
        (Operation.UPSERT, {"partition_by": ()}, {}, (), True, True),
        (
            Operation.UPSERT,
            {"properties": {"hoodie.index.type": "GLOBAL_SIMPLE"}},
            {},
            (),
            True,
            True,
        ),
        (Operation.INSERT, {}, {}, ("p",), False, True),
        (Operation.INSERT, {"partition_by": ()}, {}, (), False, False),
        (Operation.BULK_INSERT, {}, {}, (), False, False),
        (
            Operation.BULK_INSERT,
            {},
            {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
            ("p",),
            False,
            True,
        ),
        *(
            (Operation.BULK_INSERT, {}, {"hoodie.bulkinsert.sort.mode": mode}, ("p",), False, True)
            for mode in REPARTITIONS
        ),
        (
            Operation.BULK_INSERT,
            {"partition_by": ()},
            {"hoodie.bulkinsert.sort.mode": REPARTITIONS[0]},
            (),
            False,
            False,
        ),
        (
            Operation.INSERT,
            {"partition_by": ()},
            {"hoodie.combine.before.insert": "true"},
            (),
            True,
            True,
        ),
    ],
)
def test_rows_that_are_looked_up_or_sorted_stay_together(
    operation: Operation,
    details: dict[str, object],
    settings: dict[str, str],
    columns: tuple[str, ...],
    together: bool,
    fills: bool,
) -> None:
    made, spread = spread_of(spec(operation, settings, **details))
    assert (spread.columns, spread.together) == (columns, together)
    assert spread.lookup is (operation is Operation.UPSERT)
    assert (made.settings.small_file > 0) is fills
    mode = settings.get("hoodie.bulkinsert.sort.mode")
    assert spread.sort_all is (mode == "GLOBAL_SORT")
    assert bool(spread.sort_by) is (mode == "GLOBAL_SORT")


def file(partition: str, low: str, high: str) -> FileWritten:
    return FileWritten(partition, WriteStat(file_id="g"), inserted=1, key_range=(low, high))


def rival(table: WriteSpec, partition: str, *ids: str, operation: str = "UPSERT") -> CommitMetadata:
    rows = pa.table({"id": list(ids), "p": [partition] * len(ids), "n": [1] * len(ids)})
    written = lw.open_table(table.uri).bulk_insert(rows)
    body = lw.open_table(table.uri).timeline.commit_metadata(written.instant)
    return CommitMetadata(body.write_stats, operation=operation)


RIVAL = Instant("20300101000000001", Action.COMMIT, State.COMPLETED, "20300101000000002")


def test_two_that_add_keys_of_one_range_conflict() -> None:
    table = spec(Operation.UPSERT)
    added = rival(table, "a", "k3", "k7")
    for low, high in (("k1", "k3"), ("k7", "k9"), ("k4", "k5"), ("a", "z")):
        with pytest.raises(Conflict, match="'k3' to 'k7'"):
            guard_of(table, [file("p=a", low, high)])([(RIVAL, added)])
    guard_of(table, [file("p=a", "k0", "k2"), file("p=b", "k0", "k9")])([(RIVAL, added)])
    compacted = CommitMetadata(added.write_stats, operation="COMPACT")
    guard_of(table, [file("p=a", "a", "z")])([(RIVAL, compacted)])


def test_keys_of_a_whole_table_conflict_over_partitions() -> None:
    table = spec(Operation.UPSERT, properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    added = rival(table, "a", "k3", "k7")
    with pytest.raises(Conflict):
        guard_of(table, [file("p=b", "k5", "k5")])([(RIVAL, added)])


def test_inserts_and_buckets_do_not_ask_for_keys() -> None:
    for table in (spec(Operation.INSERT), spec(Operation.UPSERT, buckets=2)):
        added = rival(table, "a", "k3", "k7")
        guard_of(table, [file("p=a", "k3", "k7")])([(RIVAL, added)])
