"""Statements read from text."""

from typing import Any

import pytest

from lakewright.actions.rowlevel.clauses import Act
from lakewright.interfaces.sql.read import read_statement, read_statements
from lakewright.interfaces.sql.statements import (
    AddColumns,
    AlterTable,
    Call,
    ChangeType,
    CreateDatabase,
    CreateTable,
    Delete,
    Describe,
    DropDatabase,
    DropPartitions,
    DropTable,
    Insert,
    Merge,
    Other,
    Query,
    SetProperties,
    Show,
    Truncate,
    Update,
)
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import LakewrightError, Unsupported


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", Query("SELECT 1")),
        ("explain select 1", Query("select 1", "explain ")),
        ("EXPLAIN EXTENDED SELECT 1", Query("SELECT 1", "EXPLAIN EXTENDED ")),
        ("CREATE DATABASE IF NOT EXISTS x", CreateDatabase("x", True)),
        ("CREATE SCHEMA `my-db`", CreateDatabase("my-db")),
        ("DROP DATABASE x CASCADE", DropDatabase("x", cascade=True)),
        ("DROP TABLE IF EXISTS a.b PURGE", DropTable("a.b", True, True)),
        ("TRUNCATE TABLE a.b", Truncate("a.b")),
        ("TRUNCATE TABLE b PARTITION (dt = 'x')", Truncate("b", {"dt": "x"})),
        ("DESC FORMATTED a.b", Describe("a.b", True)),
        ("DESCRIBE TABLE a.b", Describe("a.b")),
        ("SHOW TABLES IN x LIKE 'a*'", Show("TABLES", "x", "a*")),
        ("SHOW SCHEMAS", Show("DATABASES")),
        ("SHOW PARTITIONS a.b PARTITION (d = 1)", Show("PARTITIONS", "a.b", None, {"d": 1})),
        ("SHOW TBLPROPERTIES a.`b` ('k')", Show("TBLPROPERTIES", "a.b", "k")),
        ("SHOW CREATE TABLE b", Show("CREATE", "b")),
        ("SHOW COLUMNS IN a.b", Show("COLUMNS", "a.b")),
        ("SHOW PROCEDURES", Show("PROCEDURES")),
        ("SHOW FUNCTIONS", Other("SHOW FUNCTIONS")),
        ("CALL p('x', -3, limit => 10)", Call("p", ("x", -3), {"limit": 10})),
        (
            "CALL system.p(table => 'a;b', deep => true)",
            Call("p", (), {"table": "a;b", "deep": True}),
        ),
        ("CALL p()", Call("p")),
    ],
)
def test_statements(text: str, expected: object) -> None:
    assert read_statement(text) == expected


def test_scripts_are_cut_at_semicolons_outside_of_texts_and_comments() -> None:
    script = "SELECT ';' AS a; -- not ; here\n ; /* nor ; here */ CALL p(';'); SELECT `;`"
    assert [*read_statements(script)] == [
        Query("SELECT ';' AS a"),
        Call("p", (";",)),
        Query("SELECT `;`"),
    ]


def test_create_table() -> None:
    read = read_statement(
        "CREATE TABLE IF NOT EXISTS shop.`or-ders` (id STRING NOT NULL COMMENT 'it\\'s', "
        "total DECIMAL(10, 2), tags ARRAY<STRING>) USING hudi PARTITIONED BY (dt DATE) "
        "COMMENT 'about' TBLPROPERTIES (primaryKey = 'id', hoodie.index.type = 'BUCKET', "
        "'hoodie.bucket.index.num.buckets' = 8) LOCATION '/x'"
    )
    assert read == CreateTable(
        "shop.or-ders",
        parse_ddl(
            "id STRING NOT NULL COMMENT 'it\\'s', total DECIMAL(10,2), tags ARRAY<STRING>, dt DATE"
        ),
        ("dt",),
        {
            "primaryKey": "id",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "8",
        },
        "/x",
        True,
    )


def test_create_table_as_keeps_the_words_of_the_query() -> None:
    text = "CREATE TABLE t USING hudi AS SELECT 1 AS id, DATE'2026-01-01'"
    read = read_statement(text)
    assert isinstance(read, CreateTable)
    assert read.query == "SELECT 1 AS id, DATE'2026-01-01'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO t SELECT 1", Insert("t", "SELECT 1")),
        ("INSERT INTO TABLE a.t VALUES (1)", Insert("a.t", "VALUES (1)")),
        ("INSERT INTO TABLE t TABLE u", Insert("t", "TABLE u")),
        ("INSERT INTO t (SELECT 1)", Insert("t", "(SELECT 1)")),
        ("INSERT INTO t (a, b) VALUES (1, 2)", Insert("t", "VALUES (1, 2)", ("a", "b"))),
        ("INSERT INTO t BY NAME SELECT 1 a", Insert("t", "SELECT 1 a", by_name=True)),
        (
            "INSERT OVERWRITE TABLE t PARTITION (p = 'x', q) SELECT 1",
            Insert("t", "SELECT 1", None, {"p": "x", "q": None}, True),
        ),
        (
            "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c",
            Insert("t", "WITH c AS (SELECT 1) SELECT * FROM c"),
        ),
    ],
)
def test_insert(text: str, expected: Insert) -> None:
    assert read_statement(text) == expected


def test_update_and_delete() -> None:
    update = read_statement("UPDATE a.t AS x SET x.n = x.n + 1, s = 'q' WHERE x.id = 3")
    assert isinstance(update, Update)
    assert (update.name, update.alias, [*update.values]) == ("a.t", "x", ["x.n", "s"])
    delete = read_statement("DELETE FROM t")
    assert isinstance(delete, Delete)
    assert delete.where is None
    with pytest.raises(LakewrightError, match="MERGE INTO"):
        read_statement("DELETE FROM t WHERE id IN (SELECT id FROM gone)")
    with pytest.raises(LakewrightError, match="twice"):
        read_statement("UPDATE t SET n = 1, n = 2")


def test_merge_with_all_its_clauses() -> None:
    read = read_statement(
        "MERGE INTO db.t USING (SELECT ')' AS q FROM u) AS n ON t.id = n.id "
        "WHEN MATCHED AND n.op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED AND n.ok THEN INSERT * "
        "WHEN NOT MATCHED BY TARGET THEN INSERT (a, b) VALUES (n.a, 3) "
        "WHEN NOT MATCHED BY SOURCE AND t.z < 3 THEN UPDATE SET b = 0 "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert isinstance(read, Merge)
    assert read.source == "SELECT ')' AS q FROM u"
    assert read.source_names == (("n",),)
    acts = {kind: [c.act for c in clauses] for kind, clauses in read.clauses.items()}
    assert acts == {
        "when_matched": [Act.DELETE, Act.UPDATE],
        "when_not_matched": [Act.INSERT, Act.INSERT],
        "when_not_matched_by_source": [Act.UPDATE, Act.DELETE],
    }
    table = read_statement("MERGE INTO t USING b.u ON t.id = u.id WHEN MATCHED THEN DELETE")
    assert isinstance(table, Merge)
    assert table.source.strip() == "SELECT * FROM b.u"
    assert table.source_names == (("b", "u"), ("u",))


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("ADD COLUMNS (a INT, b STRING)", AddColumns(tuple(parse_ddl("a INT, b STRING")))),
        ("ADD COLUMN a INT", AddColumns(tuple(parse_ddl("a INT")))),
        ("ALTER COLUMN a TYPE BIGINT", ChangeType("a", parse_ddl("a BIGINT").field("a"))),
        ("CHANGE COLUMN a a BIGINT", ChangeType("a", parse_ddl("a BIGINT").field("a"))),
        ("SET TBLPROPERTIES ('a' = 'b')", SetProperties({"a": "b"})),
        (
            "UNSET TBLPROPERTIES IF EXISTS ('a', 'b.c')",
            SetProperties({"a": None, "b.c": None}, True),
        ),
        ("UNSET TBLPROPERTIES ('a')", SetProperties({"a": None})),
        ("DROP IF EXISTS PARTITION (d = 'x')", DropPartitions(({"d": "x"},))),
    ],
)
def test_alter(text: str, change: Any) -> None:
    assert read_statement(f"ALTER TABLE db.t {text}") == AlterTable("db.t", change)


@pytest.mark.parametrize(
    "text", ["RENAME TO z", "RENAME COLUMN a TO b", "DROP COLUMN a", "ADD COLUMN a INT FIRST"]
)
def test_alterations_that_need_files_rewritten(text: str) -> None:
    with pytest.raises(Unsupported):
        read_statement(f"ALTER TABLE t {text}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("INSERT INTO t VALUES (1", "line 1, column"),
        ("UPDATE t\nSET a = 1 WHERE (b = ", "line 2, column"),
        ("CREATE TABLE t (a INT) USING delta", "USING hudi"),
        ("CREATE OR REPLACE TABLE t (a INT)", "DROP TABLE"),
        ("SELECT 'a", "not closed"),
        ("CALL p", "CALL procedure"),
        ("CALL p(a => 1, a => 2)", "twice"),
        ("CALL p(a => 1, 2)", "first"),
        ("CALL p(a => 1 + b)", "constant"),
        ("CREATE TABLE a.b.c (id INT)", "no table name"),
        ("ALTER TABLE t ADD COLUMNS (a INT NOT NULL)", "NOT NULL"),
        ("SHOW COLUMNS IN", "missing"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(LakewrightError, match=told):
        read_statement(text)
