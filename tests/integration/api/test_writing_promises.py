"""What every write promises: refusals leave no trace, conflicts are retried, options are kept."""

import datetime as dt
from itertools import count

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.write.request import Change, WriteRequest
from lakewright.api.rows import arrow_rows
from lakewright.format.hudi.properties import update_properties
from lakewright.model.writing import Operation
from lakewright.table.state import TableState, open_state

NUMBERS = count()
#: Rows never go into a file that another writer may be filling.
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("n", pa.int64())])


def make(**details: object) -> lw.Table:
    details = {"partition_by": "p", **details}
    return lw.create_table(
        f"memory://promises/t{next(NUMBERS)}", schema=SCHEMA, key="id", **details
    )


def rows(*numbers: int, p: str = "a", n: int = 0) -> pa.Table:
    return pa.table(
        {"id": [f"k{i}" for i in numbers], "p": [p] * len(numbers), "n": [n + i for i in numbers]},
        SCHEMA,
    )


def listing(table: lw.Table) -> list[tuple[str, int]]:
    return sorted((file.path, file.size) for file in table._storage.list(recursive=True))


def held(table: lw.Table) -> dict[str, int]:
    found = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["n"] for row in found}


BAD_ROWS = {
    "null key": pa.table({"id": ["x", None], "p": ["a", "a"], "n": [1, 2]}),
    "empty key": pa.table({"id": ["x", ""], "p": ["a", "a"], "n": [1, 2]}),
    "no key column": pa.table({"p": ["a"], "n": [1]}),
    "no partition column": pa.table({"id": ["a"], "n": [1]}),
    "lossy type": pa.table({"id": ["x"], "p": ["a"], "n": [True]}),
    "a type without a home": pa.table({"id": ["x"], "p": ["a"], "m": pa.array([1], pa.uint64())}),
    "no rows at all": 5,
}


@pytest.mark.parametrize("verb", ["insert", "bulk_insert", "upsert", "insert_overwrite"])
@pytest.mark.parametrize("why", BAD_ROWS)
def test_refused_rows_leave_no_trace(verb: str, why: str) -> None:
    table = make()
    table.insert(rows(1, 2))
    before = listing(table)
    with pytest.raises(lw.LakewrightError) as refusal:
        getattr(table, verb)(BAD_ROWS[why])
    assert isinstance(refusal.value, lw.Invalid | lw.Unsupported)
    assert listing(table) == before


def test_null_keys_are_counted_and_shown() -> None:
    table = make()
    with pytest.raises(lw.Invalid, match=r"2 of 3 rows have no record key.*'n': 7") as refusal:
        table.upsert(pa.table({"id": ["x", None, ""], "p": ["a"] * 3, "n": [6, 7, 8]}))
    assert refusal.value.facts["count"] == 2


@pytest.mark.parametrize("limit", ["0", "1000000"])
def test_rows_without_an_ordering_value_are_refused(limit: str) -> None:
    table = make(order_by="n")
    table.insert(rows(1))
    options = {"lakewright.write.driver-bytes": limit}
    bad = pa.table({"id": ["x", "y"], "p": ["a", "a"], "n": [1, None]})
    for verb in (table.upsert, table.insert, table.insert_overwrite):
        with pytest.raises(lw.Invalid, match=r"1 of 2 rows have no ordering value: n is null.*'y'"):
            verb(bad, options=options)
    with pytest.raises(lw.Invalid, match="2 of 2"):
        table.upsert(bad.select(["id", "p"]), options=options)
    assert held(table) == {"k1": 1}


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("buckets", [None, 2])
def test_null_keys_of_many_rows_leave_no_trace(
    version: int, kind: str, buckets: int | None
) -> None:
    """They are found when files of other rows lie there already."""
    index = {} if buckets is None else {"buckets": buckets}
    table = make(version=version, type=kind, **index)
    table.insert(rows(*range(1, 50)))
    before = listing(table)
    ids = [f"k{i}" for i in range(1, 90)]
    bad = pa.table({"id": [*ids, None], "p": ["a"] * 90, "n": list(range(90))})
    batches = pa.RecordBatchReader.from_batches(bad.schema, bad.to_batches(max_chunksize=10))
    options = {"lakewright.write.driver-bytes": "0", "hoodie.parquet.max.file.size": "1000"}
    with pytest.raises(lw.Invalid, match="no record key"):
        table.upsert(batches, options=options)
    assert listing(table) == before


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"retry": -1}, "retry=-1"),
        ({"retry": 1, "instant": "20300101000000000"}, "runs once"),
        ({"metadata": {"schema": "{}"}}, "'schema'"),
        ({"metadata": {"a": 1}}, "not text"),
        ({"instant": "yesterday"}, "no instant time"),
        ({"instant": "20000101000000000"}, "20000101000000000"),
        ({"speed": "high"}, "unknown: speed"),
        ({"options": {"hoodie.index.type": "HASH"}}, "HASH"),
        ({"options": {"hoodie.index.type": "BUCKET"}}, "BUCKET was given"),
        ({"options": {"lakewright.write.driver-bytes": "much"}}, "much"),
    ],
)
def test_refused_requests_leave_no_trace(how: dict[str, object], message: str) -> None:
    table = make()
    table.insert(rows(1))
    before = listing(table)
    with pytest.raises(lw.Invalid, match=message):
        table.upsert(rows(2), **how)
    assert listing(table) == before


def test_no_rows_write_nothing_and_say_so() -> None:
    table = make()
    table.insert(rows(1))
    before = listing(table)
    none = rows()
    for result in (
        table.insert(none),
        table.bulk_insert([]),
        table.upsert(none),
        table.delete(none),
        table.delete([]),
        table.insert_overwrite(none),
        table.delete_partitions([]),
    ):
        assert result.instant is None
        assert result.files == result.bytes == 0
        assert not result.partitions
    assert listing(table) == before


def test_nothing_found_leaves_no_commit() -> None:
    table = make()
    table.insert(rows(1))
    instants = table.timeline.completed()
    assert table.delete(["none"]).instant is None
    assert table.delete(where="n > 1000").instant is None
    assert table.delete_partitions(["p=none"]).absent == ("p=none",)
    data = [i for i in table.timeline.instants if i.action.writes_data]
    assert tuple(data) == instants


def test_given_instant_and_metadata_are_on_the_timeline() -> None:
    table = make()
    for verb, argument in {
        "insert": rows(1),
        "bulk_insert": rows(2),
        "upsert": rows(1, 3),
        "delete": ["k1"],
        "insert_overwrite": rows(4),
        "insert_overwrite_table": rows(5, 6),
        "delete_partitions": ["p=a"],
    }.items():
        given = f"2030010100000{len(table.timeline)}000"
        result = getattr(table, verb)(argument, instant=given, metadata={"batch": verb})
        assert result.instant is not None
        assert result.instant.requested == given
        body = table.timeline.commit_metadata(result.instant)
        assert body.extra["batch"] == verb
        assert body.operation == result.operation
        assert body.schema is not None
    assert held(table) == {}


def test_instant_as_a_time() -> None:
    table = make()
    moment = dt.datetime(2030, 1, 1, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    result = table.insert(rows(1), instant=moment)
    assert result.instant is not None
    assert result.instant.requested == "20300101103000000"


class Interrupted:
    """A change during whose first workings another writer commits."""

    def __init__(self, change: Change[object], rival: object, times: int = 1) -> None:
        self.change, self.rival, self.times = change, rival, times
        self.calls = 0

    def __call__(self, state: TableState) -> Change[object]:
        self.calls += 1
        if self.calls <= self.times:
            self.rival()
        return self.change


def run(table: lw.Table, change: Interrupted, **more: object) -> lw.WriteResult:
    request = WriteRequest(Operation.UPSERT, change=change, **more)
    return table._run(open_state(table._storage), None, request)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("buckets", [2, None])
def test_a_conflict_is_retried_on_the_table_as_it_is_then(kind: str, buckets: int | None) -> None:
    table = make(type=kind, buckets=buckets)
    table.insert(rows(1, 2, 3))
    change = Interrupted(
        Change(arrow_rows(rows(1, 4, n=100))), lambda: table.upsert(rows(1, 5, n=200)), times=2
    )
    result = run(table, change, retry=3)
    assert (result.attempts, change.calls) == (3, 3)
    assert held(table) == {"k1": 101, "k2": 2, "k3": 3, "k4": 104, "k5": 205}


def test_without_retry_the_conflict_is_raised_and_nothing_is_left() -> None:
    table = make()
    table.insert(rows(1, 2, 3))
    change = Interrupted(Change(arrow_rows(rows(1, n=100))), lambda: table.upsert(rows(1, n=200)))
    with pytest.raises(lw.Conflict):
        run(table, change)
    assert held(table) == {"k1": 201, "k2": 2, "k3": 3}
    assert not table.timeline.pending()
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_two_writers_that_add_one_key_do_not_both_win(index: str) -> None:
    table = make(properties={"hoodie.index.type": index, **NEW_FILES})
    table.insert(rows(1))
    place = "b" if index == "GLOBAL_SIMPLE" else "a"
    change = Interrupted(
        Change(arrow_rows(rows(7, n=100))), lambda: table.upsert(rows(7, n=200, p=place))
    )
    with pytest.raises(lw.Conflict, match="k7"):
        run(table, change)
    change.calls = 0
    assert run(table, change, retry=1).attempts == 2
    assert held(table) == {"k1": 1, "k7": 107}


def test_writers_of_other_partitions_and_keys_do_not_meet() -> None:
    table = make(properties=NEW_FILES)
    table.insert(rows(1))
    change = Interrupted(
        Change(arrow_rows(rows(3, n=100))), lambda: table.upsert(rows(7, 8, n=200))
    )
    assert run(table, change).attempts == 1
    change = Interrupted(
        Change(arrow_rows(rows(9, n=100))), lambda: table.upsert(rows(9, p="b", n=200))
    )
    assert run(table, change).attempts == 1
    assert table.scan().count() == 6


def test_an_index_that_is_given_is_kept() -> None:
    table = make()
    update_properties(table._storage, {"hoodie.index.type": None})
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table.upsert(rows(*range(20)), options=options)
    properties = table.definition.properties
    assert {key: properties[key] for key in options} == options
    table.upsert(rows(*range(30)))
    names = {
        piece.group.file_id[:8]
        for part in table.get_latest_snapshot()
        for piece in part.file_slices
    }
    assert names == {"00000000", "00000001"}
    with pytest.raises(lw.Invalid):
        table.upsert(rows(1), options={"hoodie.bucket.index.num.buckets": "4"})


def test_columns_are_added_and_widened() -> None:
    table = make()
    table.insert(rows(1))
    table.upsert(pa.table({"id": ["k2"], "p": ["a"], "n": [2], "more": [1.5]}))
    table.upsert(pa.table({"id": ["k3"], "p": ["a"]}))
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert found["k1"] == {"id": "k1", "p": "a", "n": 1, "more": None}
    assert found["k2"]["more"] == 1.5
    assert found["k3"] == {"id": "k3", "p": "a", "n": None, "more": None}


def test_unchanged_rows_keep_their_commit_time() -> None:
    table = make()
    first = table.insert(rows(1, 2)).instant
    second = table.upsert(rows(2, 3, n=10)).instant
    assert first is not None
    assert second is not None
    found = table.scan(columns=["id", "_hoodie_commit_time"]).to_arrow().to_pylist()
    assert {row["id"]: row["_hoodie_commit_time"] for row in found} == {
        "k1": first.requested,
        "k2": second.requested,
        "k3": second.requested,
    }


@pytest.mark.parametrize(
    "form",
    [
        lambda t: t,
        lambda t: t.to_batches()[0],
        lambda t: t.to_reader(),
        lambda t: t.to_pylist(),
        lambda t: t.to_pandas(),
        lambda t: pytest.importorskip("polars").from_arrow(t),
    ],
    ids=["table", "batch", "reader", "dicts", "pandas", "polars"],
)
@pytest.mark.parametrize("limit", ["0", "1000000"])
def test_forms_of_rows(form: object, limit: str) -> None:
    table = make()
    options = {"lakewright.write.driver-bytes": limit}
    assert table.upsert(form(rows(1, 2, 3)), options=options).inserted == 3
    assert held(table) == {"k1": 1, "k2": 2, "k3": 3}


def test_meta_columns_in_rows_are_left_out() -> None:
    table = make()
    table.insert(rows(1, 2))
    again = table.scan(meta=True).to_arrow()
    assert table.upsert(again).updated == 2
    assert held(table) == {"k1": 1, "k2": 2}


def test_deletes_name_records_in_many_ways() -> None:
    table = make()
    table.insert(rows(*range(10)))
    table.delete(lw.col("n") == 0)
    table.delete("n = 1")
    table.delete({"id": "k2"})
    table.delete([{"id": "k3", "p": "a"}])
    table.delete({"k4"})
    table.delete(pa.array(["k5"]))
    table.delete(("k6",))
    table.delete(pa.table({"id": ["k7"], "p": ["other"]}))
    assert sorted(held(table)) == ["k7", "k8", "k9"]
    with pytest.raises(lw.Invalid, match="one of them"):
        table.delete()
    with pytest.raises(lw.Invalid, match="not a key"):
        table.delete([("k8", 1)])
    with pytest.raises(lw.Invalid, match="does not fit the column id"):
        table.delete([5])


def test_partitions_are_named_with_care() -> None:
    table = make()
    table.insert(rows(1))
    for wrong in ("p=a", {"p": "a"}, [5], ["../p=a"], [".hoodie"], [{"q": 1}], [{}]):
        with pytest.raises(lw.Invalid):
            table.delete_partitions(wrong)
    with pytest.raises(lw.Invalid, match="no partitions"):
        make(partition_by=()).delete_partitions(["p=a"])
    assert held(table) == {"k1": 1}


def test_results_show_themselves() -> None:
    result = make().insert(rows(1, 2))
    assert "p=a" in result._repr_html_()
    shown = dict(pair[:2] for pair in result.__rich_repr__())
    assert shown["inserted"] == 2


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_that_makes_its_keys(kind: str) -> None:
    table = lw.create_table(
        f"memory://promises/t{next(NUMBERS)}", schema=SCHEMA, key=None, partition_by="p", type=kind
    )
    same = pa.concat_tables([rows(1, 2), rows(1)])
    assert table.insert(same).inserted == 3
    large = {"lakewright.write.driver-bytes": "0"}
    assert table.bulk_insert(same, options=large).inserted == 3
    keys = table.scan(columns=["_hoodie_record_key"]).to_arrow().column(0)
    assert len(keys.unique()) == 6
    assert table.delete(where="id = 'k1'").deleted == 4
    assert table.scan().count() == 2
    for refused in (lambda: table.upsert(same), lambda: table.insert(same, dedupe=True)):
        with pytest.raises(lw.Invalid, match="makes its keys itself"):
            refused()
    with pytest.raises(lw.Invalid, match="makes its keys itself"):
        table.delete(rows(2))
