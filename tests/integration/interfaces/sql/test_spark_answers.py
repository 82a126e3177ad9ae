"""Without Spark, queries answer as Spark does, in its types, or are refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from golden.make_spark_answers import ANSWERS, plain
from lakewright.format.arrow.schema import from_arrow_type
from lakewright.interfaces.sql.querying import run_query
from lakewright.model.errors import LakewrightError
from lakewright.model.expression.types import sql_type
from support.spark_expressions import CREATE, EXPRESSIONS, NEEDS_SPARK, OVERFLOWS, QUERIES, ROWS

pytest.importorskip("duckdb", reason="DuckDB is not installed")

_GIVEN = json.loads(ANSWERS.read_text())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> lw.Lake:
    found = lw.connect(tmp_path_factory.mktemp("answers"))
    found.sql(CREATE)
    found.table("t").insert(pa.Table.from_pylist(ROWS, schema=found.table("t").scan().schema))
    return found


def _types(schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        void = pa.types.is_null(field.type)
        yield "void" if void else sql_type(from_arrow_type(field.type)).lower()


def _values(column: pa.ChunkedArray) -> list[Any]:
    maps = pa.types.is_map(column.type)
    return [plain(dict(v) if maps and v is not None else v) for v in column.to_pylist()]


def _rows(lake: lw.Lake, query: str, *, stored: bool = False) -> pa.Table:
    found: Any = run_query(lake, query, stored=stored)
    return found.read_all()


def _answers(lake: lw.Lake, texts: list[str], *, stored: bool) -> dict[str, tuple[str, list[Any]]]:
    columns = ", ".join(f"{text} AS x{place}" for place, text in enumerate(texts))
    rows = _rows(lake, f"SELECT {columns} FROM t ORDER BY id", stored=stored)
    found = zip(texts, _types(rows.schema), rows.columns, strict=True)
    return {text: (kind, _values(column)) for text, kind, column in found}


def _expected(texts: list[str]) -> dict[str, tuple[str, list[Any]]]:
    given = {text: _GIVEN["expressions"][text] for text in texts}
    return {text: (one["type"], one["values"]) for text, one in given.items()}


def _chosen(*, failing: bool) -> list[str]:
    """Return expressions that have a value in every row, or have none in some."""
    found = []
    for text in EXPRESSIONS:
        given = _GIVEN["expressions"][text]
        known = text not in NEEDS_SPARK and "refused" not in given
        if known and bool(given.get("errors")) == failing:
            found.append(text)
    return found


def test_expressions_answer_as_on_spark(lake: lw.Lake) -> None:
    texts = _chosen(failing=False)
    for start in range(0, len(texts), 40):
        part = texts[start : start + 40]
        assert _answers(lake, part, stored=True) == _expected(part)


@pytest.mark.parametrize("text", _chosen(failing=True))
def test_what_has_no_value_is_null_and_is_never_stored(lake: lw.Lake, text: str) -> None:
    with pytest.raises(LakewrightError):
        _answers(lake, [text], stored=True)
    if text not in OVERFLOWS:
        assert _answers(lake, [text], stored=False) == _expected([text])


@pytest.mark.parametrize("text", [text for text in QUERIES if text not in NEEDS_SPARK])
def test_queries_answer_as_on_spark(lake: lw.Lake, text: str) -> None:
    given = _GIVEN["queries"][text]
    found = _rows(lake, text)
    rows = [list(row) for row in zip(*(_values(c) for c in found.columns), strict=True)]
    ordered = "ORDER BY" in text
    assert list(_types(found.schema)) == given["types"]
    assert (rows if ordered else sorted(rows, key=str)) == (
        given["rows"] if ordered else sorted(given["rows"], key=str)
    )


def test_what_is_not_known_is_refused(lake: lw.Lake) -> None:
    for text in NEEDS_SPARK:
        query = text if text in QUERIES else f"SELECT {text} AS x FROM t"
        with pytest.raises(LakewrightError, match="without Spark"):
            _rows(lake, query)


def test_a_script_with_an_unknown_function_changes_nothing(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    with pytest.raises(LakewrightError, match="soundex is not known without Spark"):
        lake.sql(f"{CREATE}; SELECT soundex(s) FROM t")
    assert lake.tables() == []


def test_stored_values_are_sparks(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    lake.sql(
        "CREATE TABLE n (id STRING, n INT, s STRING) USING hudi TBLPROPERTIES (primaryKey='id')"
    )
    lake.sql("INSERT INTO n VALUES ('a', CAST(2.7 AS INT), NULL), ('d', 0, NULL)")
    lake.sql("INSERT INTO n SELECT 'b', CAST(-2.5 AS INT), substr('xyz', 0, 1)")
    lake.sql(
        "MERGE INTO n USING (SELECT 'd' AS id, CAST(4.7 AS INT) AS n) s ON n.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.n"
    )
    rows = lake.sql("SELECT id, n, s FROM n ORDER BY id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("a", 2, None), ("b", -2, "x"), ("d", 4, None)]
    lake.sql(
        "CREATE TABLE k USING hudi TBLPROPERTIES (primaryKey='id') AS "
        "SELECT id, date_add(DATE'2024-02-28', 1) AS d, CAST(n AS DECIMAL(10,2)) / 3 AS q FROM n"
    )
    kinds = {f.name: str(f.type) for f in lake.table("k").definition.schema}
    assert (kinds["d"], kinds["q"]) == ("date", "decimal(14,6)")
