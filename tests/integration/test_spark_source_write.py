"""``df.write.format("lakewright")``: which way rows go, and what a failure leaves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from support.failing_rows import failing
from support.left_behind import left_behind

pytestmark = pytest.mark.spark

SCHEMA = "id string, n bigint, ts bigint, dt string"
Make = Callable[..., lw.Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def table(**details: Any) -> lw.Table:
        told = {"key": "id", "partition_by": "dt", "order_by": "ts", **details}
        return lw.create_table(tmp_path / "table", schema=SCHEMA, **told)

    return table


def rows_of(count: int, *, n: int = 0, ts: int = 1) -> list[tuple[str, int, int, str]]:
    return [(f"k{i:03d}", n + i, ts, f"d{i % 2}") for i in range(count)]


def save(spark: Any, table: lw.Table, rows: Any, mode: str = "append", **options: str) -> None:
    frame = spark.createDataFrame(rows, SCHEMA) if isinstance(rows, list) else rows
    frame.write.format("lakewright").mode(mode).options(**options).save(table.path)


def found(table: lw.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_appends_write_new_file_groups_from_the_executors(
    spark: Any, make: Make, kind: str
) -> None:
    table = make(type=kind)
    save(spark, table, spark.createDataFrame(rows_of(10), SCHEMA).repartition(2))
    save(spark, table, [("k100", 1, 1, "d0")])
    assert found(table) == [*rows_of(10), ("k100", 1, 1, "d0")]
    first, second = table.timeline.data()
    body = table.timeline.commit_metadata(first)
    assert body.operation == "BULK_INSERT"
    assert all(s.prev_commit == "null" for stats in body.write_stats.values() for s in stats)
    assert len(table.timeline.commit_metadata(second).write_stats) == 1
    assert left_behind(table) == []
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("details", [{"buckets": 2}, {"type": "MERGE_ON_READ"}, {}])
def test_upserts_are_staged_and_merged(spark: Any, make: Make, details: dict[str, Any]) -> None:
    table = make(**details)
    save(spark, table, rows_of(10), operation="upsert")
    save(spark, table, rows_of(6, n=50, ts=2), operation="upsert")
    save(spark, table, rows_of(4, n=90, ts=0), operation="upsert")  # late: older than stored
    assert found(table) == sorted([*rows_of(6, n=50, ts=2), *rows_of(10)[6:]])
    save(spark, table, rows_of(3), operation="delete")
    assert [row[0] for row in found(table)] == [f"k{i:03d}" for i in range(3, 10)]
    assert left_behind(table) == []


def test_appends_to_buckets_are_staged(spark: Any, make: Make) -> None:
    table = make(buckets=2)
    save(spark, table, rows_of(10))
    assert found(table) == rows_of(10)
    (write,) = table.timeline.data()
    stats = table.timeline.commit_metadata(write).write_stats
    assert sum(len(some) for some in stats.values()) <= 4
    assert left_behind(table) == []


@pytest.mark.parametrize("details", [{"buckets": 2}, {}])
def test_overwrite_replaces_all_rows(spark: Any, make: Make, details: dict[str, Any]) -> None:
    table = make(**details)
    save(spark, table, rows_of(10))
    save(spark, table, rows_of(2, n=7), "overwrite")
    assert found(table) == rows_of(2, n=7)
    save(spark, table, [("x", 1, 1, "d1")], "overwrite", operation="insert_overwrite")
    assert found(table) == sorted([rows_of(1, n=7)[0], ("x", 1, 1, "d1")])
    assert [i.action.value for i in table.timeline.data()][1:] == ["replacecommit"] * 2


@pytest.mark.parametrize("options", [{}, {"operation": "upsert"}])
def test_a_task_that_always_fails_leaves_nothing(
    spark: Any, make: Make, tmp_path: Path, options: dict[str, str]
) -> None:
    table = make()
    save(spark, table, rows_of(2))
    frame = spark.createDataFrame(rows_of(10, ts=2), SCHEMA).repartition(2)
    with pytest.raises(Exception, match="told to fail"):
        save(spark, table, failing(frame, 1, times=99, folder=tmp_path / "tries"), **options)
    assert found(table) == rows_of(2)
    assert len(table.timeline.data()) == 1 and not table.timeline.pending()
    assert left_behind(table) == []


def test_null_keys_are_refused_and_nothing_is_left(spark: Any, make: Make) -> None:
    table = make()
    with pytest.raises(Exception, match="null"):
        save(spark, table, [("a", 1, 1, "d0"), (None, 2, 1, "d0")])
    assert found(table) == [] and not table.timeline.pending() and left_behind(table) == []


def test_rows_beyond_what_is_staged_are_refused(spark: Any, make: Make) -> None:
    table = make(buckets=2)
    limit = {"lakewright.write.staged-bytes": "100"}
    with pytest.raises(Exception, match=r"table\.upsert\(df\)"):
        save(spark, table, rows_of(10), **limit)
    assert len(table.timeline) == 0 and left_behind(table) == []


def test_no_rows_make_no_commit(spark: Any, make: Make) -> None:
    table = make()
    save(spark, table, spark.createDataFrame([], SCHEMA))
    save(spark, table, spark.createDataFrame([], SCHEMA), operation="upsert")
    assert len(table.timeline) == 0 and left_behind(table) == []


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("append", {"operation": "merge"}, "insert, bulk_insert, upsert, delete"),
        ("append", {"operation": "insert_overwrite"}, "goes with mode overwrite"),
        ("overwrite", {"operation": "upsert"}, "goes with mode append"),
        ("append", {"colums": "x"}, "unknown option colums"),
        ("append", {"hoodie.parquet.max.file.size": "big"}, "a whole number of bytes"),
        ("errorifexists", {}, "append"),
        ("ignore", {}, "append"),
    ],
)
def test_what_is_refused_writes_nothing(
    spark: Any, make: Make, mode: str, options: dict[str, str], message: str
) -> None:
    table = make()
    with pytest.raises(Exception, match=message):
        save(spark, table, rows_of(2), mode, **options)
    assert len(table.timeline) == 0


def test_columns_that_do_not_fit_are_refused_before_anything_begins(spark: Any, make: Make) -> None:
    table = make()
    save(spark, table, rows_of(1))
    wrong = SCHEMA.replace("bigint", "string", 1)
    frame = spark.createDataFrame([("a", "not a number", 1, "d0")], wrong)
    with pytest.raises(Exception, match="n"):
        save(spark, table, frame)
    assert len(table.timeline) == 1
