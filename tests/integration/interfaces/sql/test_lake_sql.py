"""SQL over a lake on the local engine."""

from collections.abc import Callable
from typing import Any

import pytest

import lakewright as lw
from lakewright.model.errors import (
    AlreadyExists,
    Invalid,
    LakewrightError,
    NotFound,
    TableNotFound,
)

pytest.importorskip("duckdb", reason="DuckDB is not installed")

CREATE = (
    "CREATE TABLE shop.orders (id STRING, dt STRING, qty INT, total DOUBLE, ts BIGINT) USING hudi "
    "PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = '{}')"
)
ROWS = (
    "INSERT INTO shop.orders VALUES ('a', 1, 1.5, 1, 'x'), ('b', 2, 2.5, 1, 'x'), "
    "('c', 3, 3.5, 1, 'y')"
)
Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(params=["mor"])
def sql(tmp_path: Any, request: pytest.FixtureRequest) -> Sql:
    lake = lw.connect(tmp_path)

    def run(text: str) -> list[tuple[Any, ...]]:
        answer = lake.sql(text)
        return [tuple(row.values()) for row in answer.to_pylist()]

    run(CREATE.format(request.param))
    run(ROWS)
    return run


def test_rows_in_and_out(sql: Sql) -> None:
    assert sql("SELECT * FROM shop.orders ORDER BY id") == [
        ("a", 1, 1.5, 1, "x"),  # partition columns come last, as in Spark
        ("b", 2, 2.5, 1, "x"),
        ("c", 3, 3.5, 1, "y"),
    ]
    sql("INSERT INTO shop.orders PARTITION (dt = 'z') SELECT 'd', 4, NULL, 1")
    sql("INSERT INTO shop.orders (id, ts, dt) VALUES ('e', 1, 'z')")
    sql("INSERT INTO shop.orders BY NAME SELECT 'f' AS id, 'z' AS dt, 1L AS ts")
    assert sql("SELECT id, qty FROM shop.orders WHERE dt = 'z' ORDER BY id") == [
        ("d", 4),
        ("e", None),
        ("f", None),
    ]


@pytest.mark.parametrize("sql", ["cow", "mor"], indirect=True)
def test_update_merge_delete(sql: Sql) -> None:
    sql("UPDATE shop.orders o SET o.qty = o.qty + 10 WHERE o.dt = 'x'")
    sql(
        "MERGE INTO shop.orders AS t USING (SELECT id, qty, dt FROM shop.orders WHERE id <> 'c' "
        "UNION ALL SELECT 'n', 9, 'w') AS s ON t.id = s.id "
        "WHEN MATCHED AND s.qty > 11 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET qty = s.qty * 2, dt = 'moved' "
        "WHEN NOT MATCHED THEN INSERT (id, qty, dt, ts) VALUES (s.id, s.qty, s.dt, 7) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET total = 0"
    )
    assert sql("SELECT id, qty, total, dt FROM shop.orders ORDER BY id") == [
        ("a", 22, 1.5, "moved"),
        ("c", 3, 0.0, "y"),
        ("n", 9, None, "w"),
    ]
    ((operation, *_),) = sql("DELETE FROM shop.orders WHERE dt IN ('y', 'w')")
    assert operation == "DELETE_PARTITION"  # no file is read for whole partitions
    ((operation, _, _, _, deleted, *_),) = sql("DELETE FROM shop.orders WHERE qty = 22")
    assert (operation, deleted) == ("DELETE", 1)
    assert sql("SELECT count(*) FROM shop.orders") == [(0,)]


def test_overwrite_and_truncate(sql: Sql) -> None:
    sql("INSERT OVERWRITE shop.orders PARTITION (dt = 'x') SELECT 'z', 1, 1, 1")
    assert sql("SELECT id FROM shop.orders ORDER BY 1") == [("c",), ("z",)]
    sql("INSERT OVERWRITE TABLE shop.orders SELECT 'o', 1, 1, 1, 'q'")
    assert sql("SELECT id, dt FROM shop.orders") == [("o", "q")]
    sql("INSERT INTO shop.orders VALUES ('p', 1, 1, 1, 'r')")
    sql("TRUNCATE TABLE shop.orders PARTITION (dt = 'q')")
    assert sql("SELECT id FROM shop.orders") == [("p",)]
    sql("TRUNCATE TABLE shop.orders")
    assert sql("SELECT id FROM shop.orders") == []


def test_what_insert_into_does_is_a_property_of_the_table(
    sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    operation = "hoodie.spark.sql.insert.into.operation"
    again = "INSERT INTO shop.orders VALUES ('a', 7, 0.5, 2, 'x')"
    sql(f"ALTER TABLE shop.orders SET TBLPROPERTIES ('{operation}' = 'upsert')")
    sql(again)
    assert sql("SELECT qty FROM shop.orders WHERE id = 'a'") == [(7,)]
    sql(f"ALTER TABLE shop.orders SET TBLPROPERTIES ('{operation}' = 'bulk_insert')")
    sql(again)
    assert sql("SELECT qty FROM shop.orders WHERE id = 'a'") == [(7,), (7,)]
    assert not [message for message in caplog.messages if "no effect" in message]
    sql(f"ALTER TABLE shop.orders SET TBLPROPERTIES ('{operation}' = 'delete')")
    with pytest.raises(lw.InvalidOption, match="insert, bulk_insert, upsert"):
        sql(again)


def test_create_table_as_and_alter(sql: Sql) -> None:
    sql(
        "CREATE TABLE shop.copy USING hudi PARTITIONED BY (dt) TBLPROPERTIES (primaryKey = 'id') "
        "AS SELECT dt, id, qty FROM shop.orders"
    )
    sql("CREATE TABLE IF NOT EXISTS shop.copy USING hudi AS SELECT 1 AS other")
    with pytest.raises(AlreadyExists):
        sql("CREATE TABLE shop.copy USING hudi AS SELECT 1 AS other")
    sql("ALTER TABLE shop.copy ADD COLUMNS (note STRING)")
    sql("ALTER TABLE shop.copy ALTER COLUMN qty TYPE BIGINT")
    sql("INSERT INTO shop.copy (id, qty, dt, note) VALUES ('n', 3000000000, 'x', 'new')")
    assert sql("SELECT * FROM shop.copy ORDER BY id DESC LIMIT 2") == [
        ("n", 3000000000, "new", "x"),  # the new column comes before those of partitions
        ("c", 3, None, "y"),
    ]
    sql("INSERT INTO shop.copy VALUES ('o', 1, 'by place', 'x')")
    assert sql("SELECT note FROM shop.copy WHERE id = 'o'") == [("by place",)]
    sql("ALTER TABLE shop.copy DROP PARTITION (dt = 'x')")
    assert sql("SELECT id FROM shop.copy") == [("c",)]
    sql("ALTER TABLE shop.copy SET TBLPROPERTIES ('hoodie.parquet.small.file.limit' = '0')")
    assert sql("SHOW TBLPROPERTIES shop.copy ('hoodie.parquet.small.file.limit')")[0][1] == "0"
    sql("ALTER TABLE shop.copy UNSET TBLPROPERTIES ('hoodie.parquet.small.file.limit')")
    for refused in (
        "ALTER COLUMN qty TYPE INT",
        "SET TBLPROPERTIES ('hoodie.table.type' = 'x')",
        "UNSET TBLPROPERTIES ('hoodie.nothing')",
        "ADD COLUMNS (ID INT)",
    ):
        with pytest.raises(LakewrightError):
            sql(f"ALTER TABLE shop.copy {refused}")
    sql("DROP TABLE shop.copy PURGE; DROP TABLE IF EXISTS shop.copy")
    with pytest.raises(TableNotFound):
        sql("DROP TABLE shop.copy")


def test_a_failed_create_table_as_leaves_no_table(sql: Sql) -> None:
    with pytest.raises(Invalid, match="key"):
        sql(
            "CREATE TABLE shop.copy USING hudi TBLPROPERTIES (primaryKey = 'id') "
            "AS SELECT nullif(id, 'b') AS id, qty FROM shop.orders"
        )
    assert sql("SHOW TABLES IN shop") == [("shop", "orders")]


def test_tables_that_lie_elsewhere(sql: Sql, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("elsewhere") / "far"
    sql(
        f"CREATE TABLE shop.far (id STRING) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        f"LOCATION '{place}'"
    )
    sql("INSERT INTO shop.far VALUES ('a'); DROP TABLE shop.far")
    sql(f"CREATE TABLE shop.near USING hudi LOCATION '{place}'")
    assert sql("SELECT * FROM shop.near") == [("a",)]


def test_time_travel(sql: Sql) -> None:
    ((first, *_),) = sql("CALL show_timeline('shop.orders', limit => 1)")
    sql("DELETE FROM shop.orders WHERE id = 'a'")
    assert sql("SELECT count(*) FROM shop.orders") == [(2,)]
    assert sql(f"SELECT count(*) FROM shop.orders VERSION AS OF '{first}'") == [(3,)]
    assert sql(f"SELECT count(*) FROM shop.orders TIMESTAMP AS OF '{first}' AS o") == [(3,)]
    assert sql("SELECT count(*) FROM shop.orders FOR TIMESTAMP AS OF '2020-01-01'") == [(0,)]


def test_queries_of_every_form(sql: Sql) -> None:
    assert sql("SELECT shop.orders.id FROM shop.orders WHERE orders.qty > 2") == [("c",)]
    assert sql("WITH orders AS (SELECT * FROM shop.orders) SELECT count(*) FROM orders") == [(3,)]
    assert sql(
        "SELECT a.id FROM shop.orders a LEFT JOIN shop.orders b ON a.qty = b.qty + 1 "
        "WHERE b.id IS NULL"
    ) == [("a",)]
    assert sql("SELECT id FROM shop.orders WHERE qty = (SELECT max(qty) FROM shop.orders)") == [
        ("c",)
    ]
    assert sql("SELECT sum(qty) AS s FROM shop.orders; SELECT 2 AS two") == [(2,)]
    assert sql("SELECT dt FROM shop.orders ORDER BY nullif(dt, 'x'), id") == [
        ("x",),  # nulls first, as in Spark
        ("x",),
        ("y",),
    ]


def test_showing(sql: Sql) -> None:
    sql("CREATE DATABASE IF NOT EXISTS spare")
    assert sql("SHOW TABLES") == [("shop", "orders")]
    assert ("spare",) in sql("SHOW DATABASES")
    assert sql("SHOW DATABASES LIKE 'sp*'") == [("spare",)]
    sql("DROP DATABASE spare")
    assert sorted(sql("SHOW PARTITIONS shop.orders")) == [("dt=x",), ("dt=y",)]
    assert sql("SHOW PARTITIONS shop.orders PARTITION (dt = 'y')") == [("dt=y",)]
    assert sql("SHOW COLUMNS IN shop.orders")[0] == ("id",)
    assert ("qty", "int", None) in sql("DESCRIBE shop.orders")
    facts = {name: kind for name, kind, _ in sql("DESCRIBE EXTENDED shop.orders")}
    assert facts["Record Key"] == "id"
    ((made,),) = sql("SHOW CREATE TABLE shop.orders")
    sql(f"DROP TABLE shop.orders PURGE; {made}")
    assert sql("SHOW CREATE TABLE shop.orders") == [(made,)]


def test_procedures(sql: Sql) -> None:
    assert len(sql("CALL show_commits(table => 'shop.orders')")) == 1
    assert sql("CALL fsck('shop.orders', deep => true)") == []
    assert sql("CALL show_tables()") == [("shop", "orders")]
    assert len(sql("CALL show_files('shop.orders')")) == 2
    assert sql("SHOW PROCEDURES LIKE 'fsck'")[0][0] == "fsck"
    assert ("show_commits", "limit", "a whole number", "10") in sql("CALL help()")
    with pytest.raises(NotFound, match="show_commits"):
        sql("CALL show_comits('shop.orders')")
    with pytest.raises(Invalid, match="Nearest: table"):
        sql("CALL show_commits(tabel => 'shop.orders')")
    with pytest.raises(Invalid, match="limit is a whole number, not 'x'"):
        sql("CALL show_commits('shop.orders', limit => 'x')")
    with pytest.raises(Invalid, match="takes 3 arguments, not 4"):
        sql("CALL show_commits('shop.orders', 1, 'p', 2)")


MISTAKES = [
    ("SELECT * FROM shop.ordrs", TableNotFound, r"line 1, column 15\). Nearest: shop.orders"),
    ("SELECT nope FROM shop.orders", Invalid, "nope"),
    ("SELEC 1", Invalid, "Did you mean SELECT"),
    ("INSERT INTO shop.orders VALUES (1, 2)", Invalid, "the table takes 5"),
    ("INSERT INTO shop.orders (idd) VALUES (1)", Invalid, "Nearest: id"),
    ("INSERT INTO shop.orders PARTITION (qty = 1) SELECT 1", Invalid, "dt"),
    ("INSERT INTO shop.orders VALUES ('z', 'many', 1, 1, 'x')", Invalid, "column qty"),
    ("UPDATE shop.orders SET id = 'z'", Invalid, "record key"),
    ("UPDATE shop.orders SET ts = 0", Invalid, "3 rows would get a lower ts"),
    ("CREATE TABLE t USING hudi", Invalid, "LOCATION"),
    ("CREATE TABLE t (a INT) USING hudi TBLPROPERTIES (x = 1)", Invalid, "property x"),
    (
        "CREATE TABLE t (a INT) USING hudi OPTIONS (preCombineFeld = 'a')",
        Invalid,
        "Did you mean preCombineField",
    ),
    (";", Invalid, "no statement"),
]


def test_errors_teach(sql: Sql) -> None:
    for text, error, told in MISTAKES:
        with pytest.raises(error, match=told):
            sql(text)
    assert len(sql("SELECT id FROM shop.orders")) == 3


def test_a_script_with_a_mistake_changes_nothing(sql: Sql) -> None:
    with pytest.raises(Invalid):
        sql("DELETE FROM shop.orders; SHOW COLUMNS IN")
    assert sql("SELECT count(*) FROM shop.orders") == [(3,)]


@pytest.mark.parametrize("error", [lw.CommitStateUnknown("lost"), lw.Unavailable("down")])
def test_a_table_that_may_hold_rows_is_kept(
    sql: Sql, monkeypatch: pytest.MonkeyPatch, error: LakewrightError
) -> None:
    """CREATE TABLE AS whose write took effect although its answer was lost."""
    insert = lw.Table.bulk_insert

    def lost(self: Any, rows: object, **how: Any) -> Any:
        insert(self, rows, **how)
        raise error

    monkeypatch.setattr(lw.Table, "bulk_insert", lost)
    with pytest.raises(type(error)):
        sql("CREATE TABLE shop.copy USING hudi AS SELECT id, qty FROM shop.orders")
    assert sql("SELECT count(*) FROM shop.copy") == [(3,)]


def test_a_folder_that_the_user_named_is_not_deleted(sql: Sql, tmp_path: Any) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "mine.txt").write_text("keep")
    with pytest.raises(LakewrightError):
        sql(
            f"CREATE TABLE shop.copy USING hudi LOCATION '{place}' "
            "TBLPROPERTIES (primaryKey = 'id') "
            "AS SELECT nullif(id, 'b') AS id, qty FROM shop.orders"
        )
    assert (place / "mine.txt").read_text() == "keep"
