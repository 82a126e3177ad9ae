"""Table and Scan as users hold them: conversions, reprs, refusals, the missing extra."""

import datetime as dt
import importlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.model.instant import Action, Instant, State


@pytest.fixture(scope="module")
def orders(own_table: Callable[[str], Path]) -> lw.Table:
    return lw.open_table(own_table("orders_mor"))


def test_a_table_opened_by_path_is_named_by_it(orders: lw.Table) -> None:
    assert orders.name == "orders_mor"
    assert orders.path.endswith("/orders_mor")
    assert repr(orders) == f"Table('orders_mor', path={orders.path!r})"


def test_rows_come_in_every_form(orders: lw.Table) -> None:
    scan = orders.scan(where=lw.col("n") >= 3, columns=["id", "n"])
    expected = sorted(scan.to_arrow().to_pylist(), key=str)
    assert len(expected) == 4
    assert sorted(scan.to_pandas().to_dict("records"), key=str) == expected
    assert sorted(scan.to_polars().to_dicts(), key=str) == expected
    assert sorted(scan.to_duckdb().fetchall()) == sorted(tuple(r.values()) for r in expected)
    assert sorted(pa.table(scan).to_pylist(), key=str) == expected
    batches = [row for batch in scan.to_batches() for row in batch.to_pylist()]
    assert sorted(batches, key=str) == expected
    assert scan.count() == 4


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.binary(3)), [b"abc"]),
        (pa.struct([("a", pa.list_(pa.binary(3)))]), {"a": [b"abc"]}),
        (pa.map_(pa.string(), pa.list_(pa.binary(3))), [("k", [b"abc"])]),
    ],
    ids=str,
)
def test_pandas_holds_bytes_of_a_fixed_length_at_any_depth(
    tmp_path: Path, kind: pa.DataType, value: object
) -> None:
    schema = pa.schema([("id", pa.string()), ("c", kind)])
    table = lw.create_table(tmp_path / "t", schema=schema, key="id")
    table.upsert(pa.Table.from_pylist([{"id": "a", "c": value}], schema=schema))
    assert table.scan(columns=["c"]).to_arrow().schema.field("c").type == kind
    (held,) = table.scan(columns=["c"]).to_pandas()["c"]
    assert b"abc" in _leaves(held)


def _leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    if isinstance(value, bytes | str):
        return [value]
    return [leaf for part in value for leaf in _leaves(part)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("blocks", ["parquet", "avro"])
@pytest.mark.parametrize("order_by", ["ts", None])
@pytest.mark.parametrize("memory", ["0", "1000000"])
def test_a_column_that_no_log_has_yet_costs_no_row(
    tmp_path: Path, blocks: str, order_by: str | None, memory: str
) -> None:
    told = {"hoodie.logfile.data.block.format": blocks, "lakewright.read.log-memory": memory}
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = lw.create_table(
        tmp_path / "t",
        schema=schema,
        key="id",
        order_by=order_by,
        type="MERGE_ON_READ",
        buckets=1,
        options=told,
    )
    for ts, count in enumerate([10, 6, 4]):
        table.upsert(pa.table({"id": [f"k{n}" for n in range(count)], "ts": [ts] * count}, schema))
    table.upsert(pa.table({"id": ["k0"], "ts": [9], "new": [7]}))
    found = table.scan(columns=["new"]).to_arrow().column("new").to_pylist()
    assert sorted(found, key=str) == [7] + [None] * 9


def test_counting_reads_footers_where_they_are_exact(own_table: Callable[[str], Path]) -> None:
    plain = lw.open_table(own_table("orders_cow"))
    counted, rest = plain.scan().plan().split_countable()
    assert counted == plain.scan().to_arrow().num_rows and not rest.tasks


def test_a_scan_is_pinned_when_it_is_made(orders: lw.Table, tmp_path: Path) -> None:
    scan = orders.scan()
    first = scan.to_arrow().num_rows
    assert scan.to_arrow().num_rows == first == scan.count()


@pytest.mark.parametrize("moment", [dt.date(2100, 1, 1), dt.datetime(2100, 1, 1), "2100-01-01"])
def test_times_may_be_written_in_many_ways(orders: lw.Table, moment: dt.date | str) -> None:
    assert orders.scan(as_of=moment).count() == orders.scan().count()


def test_meta_columns_come_in_front_or_by_name(orders: lw.Table) -> None:
    own = ["id", "city", "item", "n", "total", "at"]
    assert orders.scan().schema.names == own
    assert orders.scan(meta=True).schema.names[5:] == own
    assert orders.scan(columns=["*", "_hoodie_record_key"]).schema.names == [
        *own,
        "_hoodie_record_key",
    ]


def test_notebooks_see_tables(orders: lw.Table) -> None:
    assert "<table>" in orders._repr_html_() and "MERGE_ON_READ" in orders._repr_html_()
    assert "deltacommit" in orders.timeline._repr_html_()
    assert "partitions" in orders.scan(where="city = 'oslo'")._repr_html_()
    assert repr(orders.scan(where="n > 1")) == "Scan(orders_mor, snapshot, where n > 1)"


@pytest.mark.parametrize(
    ("ask", "kind", "words"),
    [
        (lambda t: t.scan(mode="fast"), lw.Invalid, "read_optimized"),
        (lambda t: t.scan(columns="id"), lw.Invalid, r"columns=\['id'\]"),
        (lambda t: t.scan(columns=["idd"]).to_arrow(), lw.UnknownColumn, "Known: .*id"),
        (lambda t: t.scan(where="nn = 1").to_arrow(), lw.UnknownColumn, "nn"),
        (lambda t: t.scan(where="n = ").to_arrow(), lw.InvalidExpression, "n = "),
        (lambda t: t.scan(mode=["snapshot"]), lw.Invalid, r"\['snapshot'\] is not known"),
        (lambda t: t.scan(columns=5), lw.Invalid, "5 is no name"),
        (lambda t: t.scan(columns=[["id"]]), lw.Invalid, r"\['id'\] is no name"),
        (lambda t: t.incremental(None, columns=["id", None]), lw.Invalid, "None is no name"),
        (lambda t: t.scan(as_of="soon"), lw.Invalid, "soon"),
        (lambda t: t.scan(as_of=20261116120000000), lw.Invalid, r"20261116120000000 \(int\)"),
        (lambda t: t.scan(as_of="20201301000000000"), lw.Invalid, "no date and time"),
        (lambda t: t.incremental(5), lw.Invalid, r"5 \(int\) is neither"),
        (lambda t: t.changes(None, dt.time(1)), lw.Invalid, r"\(time\) is neither"),
        (lambda t: t.get_snapshot(b"2026"), lw.Invalid, r"\(bytes\) is neither"),
        (lambda t: t.scan(where="id < '\udcff'").to_arrow(), lw.InvalidExpression, "half a char"),
        (lambda t: t.scan(where=f"n = {'9' * 5000}").to_arrow(), lw.InvalidExpression, "38 digits"),
    ],
)
def test_a_mistake_names_value_and_way_out(
    orders: lw.Table, ask: Callable[[lw.Table], object], kind: type[lw.LakewrightError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        ask(orders)


def test_no_table_no_table(tmp_path: Path) -> None:
    with pytest.raises(lw.TableNotFound, match=str(tmp_path)):
        lw.open_table(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("package", "call", "line"),
    [
        ("pandas", lambda s: s.to_pandas(), r"pip install 'lakewright\[pandas\]'"),
        ("polars", lambda s: s.to_polars(), r"pip install 'lakewright\[polars\]'"),
        ("duckdb", lambda s: s.to_duckdb(), r"pip install 'lakewright\[duckdb\]'"),
        ("pyspark", lambda s: s.to_spark(), r"pip install 'lakewright\[spark\]'"),
    ],
)
def test_a_missing_extra_is_answered_with_its_line(
    orders: lw.Table,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    call: Callable[[lw.Scan], object],
    line: str,
) -> None:
    real = importlib.import_module

    def absent(name: str, *rest: str) -> object:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=package)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(lw.MissingExtra, match=line):
        call(orders.scan())


def test_creating_is_checked_before_anything_is_written(tmp_path: Path) -> None:
    place = tmp_path / "new"
    mistakes = [
        {"schema": "id string", "key": "idd"},
        {"schema": "id string", "key": []},
        {"schema": "id strin", "key": "id"},
        {"schema": "id string, tags array<string>", "key": "tags"},
        {"schema": "id string", "key": "id", "type": "FAST"},
        {"schema": "id string", "key": "id", "version": 8},
        {"schema": "id string", "key": "id", "merge_mode": "EVENT_TIME_ORDERING"},
        {
            "schema": "id string, ts long",
            "key": "id",
            "order_by": "ts",
            "merge_mode": "COMMIT_TIME_ORDERING",
        },
        {"schema": "_hoodie_record_key string", "key": "_hoodie_record_key"},
        {"schema": "id string", "key": "id", "properties": {"colour": "blue"}},
        {"schema": "id string", "key": "id", "bucket": 4},
    ]
    for mistake in mistakes:
        with pytest.raises(lw.Invalid):
            lw.create_table(place, **mistake)  # type: ignore[arg-type]
    assert not place.exists()


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_created_table_is_read_by_us_and_by_hudi_rs(
    tmp_path: Path, version: int, kind: str
) -> None:
    from hudi import HudiTableBuilder

    made = lw.create_table(
        tmp_path / "orders",
        schema=pa.schema([("id", pa.string()), ("dt", pa.date32()), ("ts", pa.int64())]),
        key="id",
        partition_by="dt",
        order_by="ts",
        type=kind,
        version=version,
    )
    assert made.scan().to_arrow().num_rows == 0
    assert made.schema.names == ["id", "dt", "ts"]
    assert made.definition.ordering == ("ts",) and made.fsck().ok
    assert HudiTableBuilder.from_base_uri(made.path).build().read() == []
    with pytest.raises(lw.AlreadyExists):
        lw.create_table(made.path, schema="id string", key="id")


@pytest.mark.parametrize("version", [9, 6])
def test_the_instant_of_a_write_is_a_point_in_time(tmp_path: Path, version: int) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n int", key="id", version=version)
    done = [table.upsert([{"id": name, "n": 1}]).instant for name in "abc"]
    assert all(done)

    def ids(scan: lw.Scan) -> list[str]:
        return sorted(scan.to_arrow().column("id").to_pylist())

    assert ids(table.scan(as_of=done[1])) == ["a", "b"]
    assert ids(table.incremental(done[0])) == ["b", "c"]
    assert ids(table.incremental(start=done[0], end=done[1])) == ["b"]
    assert ids(table.incremental()) == ["a", "b", "c"]
    assert [row["id"] for row in table.changes(done[1]).to_arrow()["after"].to_pylist()] == ["c"]
    assert len(list(table.get_snapshot(done[0]))) == 1
    (window,) = table.follow(done[1] or "")
    assert ids(window.scan) == ["c"]


def test_a_pending_instant_bounds_no_window(orders: lw.Table) -> None:
    pending = Instant("20261101000000000", Action.COMMIT, State.REQUESTED)
    with pytest.raises(lw.Invalid, match="pending"):
        orders.incremental(pending)
