"""Names and texts of any kind reach the table as they are, and nothing else happens."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakewright as lw
from lakewright.interfaces.sql.creating import show_create
from lakewright.interfaces.sql.duck import translated
from lakewright.interfaces.sql.names import quoted, text_literal
from lakewright.interfaces.sql.query import parse_query, rewritten
from lakewright.interfaces.sql.read import read_statement, read_statements
from lakewright.interfaces.sql.statements import Call, CreateTable, Query, Update
from lakewright.model.errors import LakewrightError
from lakewright.model.expression.nodes import Literal, Reference
from lakewright.model.schema import STRING, Field, Struct
from lakewright.model.table import TableDef, TableId, TableType

NASTY = st.text(
    st.sampled_from("ab '\"`\\;-/*{}().,%_\n\tä😀") | st.characters(codec="utf-8"),
    min_size=1,
    max_size=12,
).filter(lambda text: "\x00" not in text)


@settings(deadline=None, max_examples=150)
@given(NASTY, NASTY)
def test_names_and_texts_come_back_as_they_were(name: str, text: str) -> None:
    read = read_statement(f"UPDATE t SET {quoted(name)} = {text_literal(text)}")
    assert isinstance(read, Update)
    assert [*read.values] == [name]
    assert read.values[name].identical(Literal(text))
    called = read_statement(f"CALL p({text_literal(text)}, x => {text_literal(text)})")
    assert called == Call("p", (text,), {"x": text})


@settings(deadline=None, max_examples=100)
@given(NASTY, NASTY)
def test_a_script_has_as_many_statements_as_were_written(name: str, text: str) -> None:
    one = f"SELECT {text_literal(text)} AS {quoted(name)} FROM t"
    assert [*read_statements(f"{one}; {one} ;")] == [Query(one), Query(one)]


@settings(deadline=None, max_examples=100)
@given(NASTY, NASTY, NASTY)
def test_only_the_name_of_the_table_is_replaced(table: str, column: str, text: str) -> None:
    query = (
        f"SELECT {quoted(column)}, {text_literal(text)} FROM {quoted('db', table)} "
        f"WHERE {quoted('db', table, column)} = {text_literal(text)}"
    )
    parsed = parse_query(query)
    (use,) = parsed.uses
    assert use.parts == ("db", table)
    pieces = [*rewritten(parsed, parsed.uses)]
    assert "".join(f"<{p}>" if isinstance(p, int) else p for p in pieces) == (
        f"SELECT {quoted(column)}, {text_literal(text)} FROM <0> AS {quoted(table)} "
        f"WHERE {quoted(table)}.{quoted(column)} = {text_literal(text)}"
    )


@settings(deadline=None, max_examples=30)
@given(NASTY, NASTY)
def test_duckdb_gets_the_same_names_and_texts(column: str, text: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    parsed = parse_query(
        f"SELECT {quoted(column)} AS found FROM db.t WHERE {quoted(column)} = {text_literal(text)}"
    )
    rows = pa.table({column: [text, text + "x"]})
    duckdb.register("lakewright_0", rows)
    written, _ = translated(parsed, [(use, rows.schema) for use in parsed.uses])
    assert duckdb.sql(written).fetchall() == [(text,)]


@settings(deadline=None, max_examples=100)
@given(st.lists(NASTY, min_size=1, max_size=3, unique_by=str.lower), NASTY)
def test_show_create_table_reads_back(names: list[str], text: str) -> None:
    columns = Struct(tuple(Field(name, STRING, doc=text) for name in names))
    definition = TableDef(
        TableId("db", "t"),
        "/x",
        columns,
        TableType.MERGE_ON_READ,
        9,
        record_key=(names[0],),
        partition_by=tuple(names[1:]),
        properties={"hoodie.x": text},
    )
    read = read_statement(show_create("db.t", definition))
    assert isinstance(read, CreateTable)
    assert read.columns == columns
    assert read.partition_by == tuple(names[1:])
    assert read.properties["hoodie.x"] == text
    assert read.properties["primaryKey"] == names[0]


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("SELECTabFROM '\"`\\;-/*(),=>\n 1."), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        for statement in read_statements(text):
            if isinstance(statement, Query):
                parse_query(statement.text)
    except LakewrightError:
        pass


def test_a_table_name_cannot_leave_the_lake(tmp_path: pytest.TempPathFactory) -> None:
    lake = lw.connect(str(tmp_path))
    for name in ("`../x`", "a.`b/c`", "`a.b`.c", "`a.b`"):
        with pytest.raises(LakewrightError):
            lake.sql(f"CREATE TABLE {name} (id STRING) USING hudi TBLPROPERTIES (primaryKey='id')")
    assert lake.tables() == []


def test_references_keep_quoted_dots() -> None:
    read = read_statement("UPDATE t SET a = `b.c`")
    assert isinstance(read, Update)
    assert read.values["a"].identical(Reference(("b.c",)))


def test_an_empty_text_is_a_column_without_a_name(tmp_path: pytest.TempPathFactory) -> None:
    lake = lw.connect(str(tmp_path))
    assert lake.sql("SELECT ''").to_pylist() == [{"": ""}]
    assert lake.sql("SELECT * FROM (SELECT '', 1 AS n)").to_pylist() == [{"": "", "n": 1}]
    lake.sql("CREATE TABLE d.t (id STRING, s STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    lake.sql("INSERT INTO d.t SELECT 'a', ''")
    assert lake.sql("SELECT s FROM d.t").to_pylist() == [{"s": ""}]
