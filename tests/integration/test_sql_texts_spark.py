"""Texts in statements that Spark parses: what they are here, they are there."""

from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.interfaces.sql.spark_texts import for_spark
from lakewright.model.errors import Unsupported
from lakewright.model.expression.nodes import Literal
from lakewright.model.expression.parse import parse_expression
from support.sql_texts import TEXTS

pytestmark = pytest.mark.spark


def test_spark_reads_texts_as_we_do(spark: Any) -> None:
    for written, meant in TEXTS.items():
        (row,) = spark.sql(for_spark(f"SELECT {written}")).collect()
        assert row[0] == meant, written
        read = parse_expression(written)
        assert not isinstance(read, Literal) or read.value == meant, written


def test_queries_and_changes_agree(spark: Any, tmp_path: Path) -> None:
    lake = lw.connect(tmp_path, spark=spark)
    lake.sql(
        "CREATE TABLE d.t (id STRING, v STRING) USING hudi PARTITIONED BY (id) "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    lake.sql("INSERT INTO d.t (id, v) VALUES ('it''s', 'cost ${x}'), ('its', '\\${y}')")
    stored = lake.table("d.t").scan().to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in stored} == {"it's": "cost ${x}", "its": "${y}"}
    # Partitions are chosen by our reading of the constant, rows by Spark's.
    (row,) = lake.sql("SELECT v FROM d.t WHERE id = 'it''s' AND v LIKE '%${x}'").collect()
    assert row["v"] == "cost ${x}"
    lake.sql("DELETE FROM d.t WHERE id = 'it''s'")
    assert [row["id"] for row in lake.sql("SELECT id FROM d.t").collect()] == ["its"]


def test_a_session_that_reads_backslashes_otherwise(spark: Any, tmp_path: Path) -> None:
    lake = lw.connect(tmp_path, spark=spark)
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        with pytest.raises(Unsupported, match="escapedStringLiterals"):
            lake.sql(r"SELECT '\n' AS v")
        assert [tuple(row) for row in lake.sql("SELECT 'plain' AS v").collect()] == [("plain",)]
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
    with pytest.raises(Unsupported, match="no variable"):
        lake.sql("SELECT ${x}")
