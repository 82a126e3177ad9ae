"""Texts in statements: one meaning in every statement and on every engine."""

from pathlib import Path

import pytest

import lakewright as lw
from lakewright.interfaces.sql.read import read_statement
from lakewright.interfaces.sql.spark_texts import check_session, for_spark
from lakewright.interfaces.sql.statements import AlterTable, Call, SetProperties
from lakewright.interfaces.sql.text import piece, pieces
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import LakewrightError, Unsupported
from support.sql_texts import TEXTS


@pytest.fixture
def lake(tmp_path: Path) -> lw.Lake:
    found = lw.connect(tmp_path)
    found.sql("CREATE TABLE d.t (id STRING, v STRING) USING hudi TBLPROPERTIES (primaryKey='id')")
    return found


def _rows(lake: lw.Lake) -> dict[str, str]:
    return {row["id"]: row["v"] for row in lake.table("d.t").scan().to_arrow().to_pylist()}


def test_the_row_that_is_named_goes_and_no_other(lake: lw.Lake) -> None:
    lake.table("d.t").insert([{"id": "it's", "v": "named"}, {"id": "its", "v": "another"}])
    assert lake.sql("SELECT v FROM d.t WHERE id = 'it''s'")["v"].to_pylist() == ["named"]
    lake.sql("UPDATE d.t SET v = 'don''t' WHERE id = 'it''s'")
    assert _rows(lake) == {"it's": "don't", "its": "another"}
    lake.sql(
        "MERGE INTO d.t USING (SELECT 'it''s' AS id) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 'it''s' THEN UPDATE SET v = 'won''t'"
    )
    assert _rows(lake) == {"it's": "won't", "its": "another"}
    assert lake.table("d.t").scan(where="id = 'it''s'").to_arrow()["v"].to_pylist() == ["won't"]
    lake.sql("DELETE FROM d.t WHERE id = 'it''s'")
    assert _rows(lake) == {"its": "another"}


@pytest.mark.parametrize("written", TEXTS)
def test_texts_on_duckdb_and_in_expressions(lake: lw.Lake, written: str) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    assert lake.sql(f"SELECT {written} AS v")["v"].to_pylist() == [TEXTS[written]]
    lake.sql(f"INSERT INTO d.t VALUES ('a', {written})")
    lake.table("d.t").insert([{"id": "b", "v": "another"}])
    assert _rows(lake)["a"] == TEXTS[written]
    lake.sql(f"UPDATE d.t SET v = concat({written}, '!') WHERE v = {written}")
    assert _rows(lake) == {"a": f"{TEXTS[written]}!", "b": "another"}


def test_constants_of_calls_properties_and_comments() -> None:
    call = read_statement("CALL p(path => 'a''b', other => \"c\"\"d\")")
    assert isinstance(call, Call)
    assert call.named == {"path": "a'b", "other": 'c"d'}
    alter = read_statement("ALTER TABLE t SET TBLPROPERTIES ('hoodie.x' = 'it''s')")
    assert isinstance(alter, AlterTable)
    assert alter.change == SetProperties({"hoodie.x": "it's"})
    assert parse_ddl("a int comment 'it''s'").fields[0].doc == "it's"


def test_statements_end_outside_of_texts() -> None:
    texts = ["SELECT 'a'';b'", "SELECT r'\\'", 'SELECT "";""', "SELECT 1"]
    assert [one.text for one in pieces(";".join(texts))] != texts  # "";"" is two texts
    texts[2] = 'SELECT "a"";b"'
    assert [one.text for one in pieces(";".join(texts))] == texts


def test_raw_texts_are_not_joined_by_guess() -> None:
    for text in ("r'a''b'", "'a' r'b'"):
        with pytest.raises(LakewrightError):
            read_statement(f"UPDATE t SET v = {text}")


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("SELECT 'plain', \"x\", r'\\d', '\\n', 'it\"\"s'", None),
        ("SELECT 'it''s' -- don't ${x}", r"SELECT 'it\'s' -- don't ${x}"),
        ('SELECT "a""b\'"', "SELECT 'a\"b\\''"),
        ("SELECT '${x}', r'\\${y}'", r"SELECT '\u0024{x}', '\\\u0024{y}'"),
        (r"SELECT '\\''\0'", r"SELECT '\\\'\u0000'"),
        ("SET a.b=it''s ${x}", None),
        ("SET VAR x = 'it''s'", r"SET VAR x = 'it\'s'"),
    ],
)
def test_what_spark_is_given(written: str, given: str | None) -> None:
    assert for_spark(written) == (written if given is None else given)


class _Session:
    """A session of which settings alone are asked."""

    def __init__(self, **settings: str) -> None:
        self._settings = {key.replace("__", "."): value for key, value in settings.items()}

    @property
    def conf(self) -> "_Session":
        return self

    def get(self, key: str, default: str | None = None) -> str | None:
        return self._settings.get(key, default)


@pytest.mark.parametrize(
    ("text", "session", "told"),
    [
        (r"UPDATE t SET v = '\n'", _Session(spark__sql__parser__escapedStringLiterals="true"), "n"),
        ("SELECT 'a''b'", _Session(spark__sql__parser__escapedStringLiterals="true"), "a''b"),
        (
            'DELETE FROM t WHERE v = "x"',
            _Session(spark__sql__ansi__doubleQuotedIdentifiers="true"),
            '"x" at line 1, column 25',
        ),
        ("SELECT ${x}", _Session(), "no variable"),
        ("SELECT `${x}`", _Session(), "no variable"),
    ],
)
def test_a_session_that_reads_otherwise_is_refused(
    text: str, session: "_Session", told: str
) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    with pytest.raises(Unsupported, match=told):
        check_session(piece(text), session)  # type: ignore[arg-type]
    plain = _Session(spark__sql__variable__substitute="false")
    check_session(piece(text), plain)  # type: ignore[arg-type]
    check_session(piece("SELECT 'plain' -- ${x}"), session)  # type: ignore[arg-type]
