"""``spark.read.format("lakewright")``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from support.spark_rows import golden_rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

Table = Callable[[str], Path]


@pytest.mark.parametrize("name", ["cow_nested_v9", "mor_nested_v9"])
def test_load_finds_the_source_without_a_register_call(
    golden_table: Table, spark: Any, name: str
) -> None:
    path = golden_table(name)
    frame = spark.read.format("lakewright").option("meta", "true").load(str(path))
    assert golden_rows(frame) == golden_rows(lw.open_table(path).scan(meta=True).to_spark(spark))


def test_options_prune_and_travel(golden_table: Table, spark: Any) -> None:
    path = golden_table("mor_basic_v9")
    table = lw.open_table(path)
    reader = spark.read.format("lakewright")
    frame = reader.options(columns="id, qty", where="qty > 0").load(str(path))
    assert frame.columns == ["id", "qty"]
    wanted = table.scan(where="qty > 0", columns=["id", "qty"])
    assert sorted(r.id for r in frame.collect()) == sorted(wanted.to_arrow()["id"].to_pylist())

    first = table.timeline.completed()[0]
    old = spark.read.format("lakewright").option("as_of", first.requested).load(str(path))
    assert old.count() == table.scan(as_of=first.requested).count()
    news = spark.read.format("lakewright").options(mode="incremental", start=first.completed)
    assert news.load(str(path)).count() == table.incremental(start=first.completed).count()
    changes = spark.read.format("lakewright").option("mode", "cdc").load(str(path))
    assert changes.columns == ["op", "ts_ms", "before", "after"]
    assert changes.count() == table.changes().to_arrow().num_rows


def test_a_temporary_view_reads_by_sql(golden_table: Table, spark: Any) -> None:
    path = golden_table("cow_basic_v9")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW t USING lakewright OPTIONS (path '{path}')")
    assert spark.sql("SELECT count(*) FROM t").first()[0] == lw.open_table(path).scan().count()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "sideways"}, "snapshot, read_optimized, incremental, cdc"),
        ({"colums": "id"}, "unknown option colums"),
        ({"meta": "maybe"}, "true, false"),
    ],
)
def test_bad_options_are_named(
    golden_table: Table, spark: Any, options: dict[str, str], message: str
) -> None:
    reader = spark.read.format("lakewright").options(**options)
    with pytest.raises(Exception, match=message):
        reader.load(str(golden_table("cow_basic_v9"))).count()
