"""What statements say of themselves: done, not needed, or why not."""

from pathlib import Path

import pytest

import lakewright as lw
from lakewright.model.errors import Invalid, InvalidExpression, LakewrightError

pytest.importorskip("duckdb", reason="DuckDB is not installed")

CREATE = (
    "CREATE TABLE IF NOT EXISTS d.t (id STRING, n INT) USING hudi TBLPROPERTIES (primaryKey='id')"
)


@pytest.fixture
def lake(tmp_path: Path) -> lw.Lake:
    return lw.connect(tmp_path)


def test_what_was_not_done_is_not_told_as_done(lake: lw.Lake) -> None:
    for text, told in (
        ("CREATE DATABASE IF NOT EXISTS e", "database e created"),
        ("CREATE DATABASE IF NOT EXISTS e", "database e is there already"),
        (CREATE, "table d.t created"),
        (CREATE, "table d.t is there already"),
        ("DROP TABLE IF EXISTS d.t", "table d.t dropped"),
        ("DROP TABLE IF EXISTS d.t", "there is no table d.t"),
        ("DROP TABLE IF EXISTS t PURGE", "there is no table t"),
        ("DROP DATABASE IF EXISTS e", "database e dropped"),
        ("DROP DATABASE IF EXISTS e", "there is no database e"),
    ):
        assert lake.sql(text).column(0).to_pylist() == [told], text


def test_a_known_word_is_not_guessed_at(lake: lw.Lake) -> None:
    with pytest.raises(Invalid, match="CREATE VIEW is not known here") as refused:
        lake.sql("CREATE VIEW v AS SELECT 1")
    assert "Did you mean" not in str(refused.value)
    with pytest.raises(Invalid, match="Did you mean SELECT"):
        lake.sql("SELEKT 1")


def test_a_value_is_no_filter(lake: lw.Lake) -> None:
    lake.sql(CREATE)
    with pytest.raises(InvalidExpression, match="greatest cannot stand in an expression") as told:
        lake.sql("UPDATE d.t SET n = greatest(n, 2)")
    assert "coalesce" in str(told.value)


@pytest.mark.parametrize(
    "mistake",
    [
        "SELEKT 1",
        "SELECT FROM WHERE",
        "SELECT * FROM d.t WHERE (n = 1",
        "INSERT INTO d.t SELECT FROM WHERE",
        "MERGE INTO d.t USING (SELECT FROM WHERE) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "CREATE TABLE d.u USING hudi AS SELECT FROM WHERE",
        "CREATE VIEW v AS SELECT 1",
        "CALL no_such_thing()",
        "UPDATE d.t SET n = greatest(n, 2)",
    ],
)
def test_a_script_with_a_mistake_in_any_statement_changes_nothing(
    lake: lw.Lake, mistake: str
) -> None:
    lake.sql(CREATE)
    with pytest.raises(LakewrightError):
        lake.sql(f"INSERT INTO d.t VALUES ('a', 1); {mistake}; SELECT 1")
    assert lake.table("d.t").scan().to_arrow().num_rows == 0


def test_a_table_may_be_made_by_the_statement_before(lake: lw.Lake) -> None:
    made = f"{CREATE}; INSERT INTO d.t VALUES ('a', 1); SELECT n FROM d.t"
    assert lake.sql(made)["n"].to_pylist() == [1]


def test_advice_that_was_followed_is_not_given(tmp_path: Path) -> None:
    for encoded in (True, False):
        table = lw.create_table(
            tmp_path / str(encoded),
            schema="k string, p string",
            key="k",
            partition_by="p",
            url_encode=encoded,
        )
        with pytest.raises(Invalid, match="cannot be part of a partition path") as refused:
            table.insert([{"k": "a", "p": ".."}])
        assert ("url encoding" in str(refused.value)) is not encoded
