"""DataFrames of which something is missing: keys that are gone, void columns, no partition."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw

pytestmark = pytest.mark.spark

SHUFFLE = {"lakewright.write.driver-bytes": "0"}
DDL = "k string, p string, n bigint"


def rows_in(table: lw.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def slices_of(table: lw.Table) -> list[Any]:
    return [piece for part in table.get_latest_snapshot() for piece in part.file_slices]


def test_a_key_that_logs_deleted_comes_back_once(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema=DDL, key="k", partition_by="p", type="MERGE_ON_READ", spark=spark
    )

    def frame(n: int, *keys: str) -> Any:
        return spark.createDataFrame([(key, "1", n) for key in keys], DDL)

    table.insert(frame(1, "a", "b"), options=SHUFFLE)
    for n in (2, 4):
        table.delete(frame(0, "a").select("k", "p"), options=SHUFFLE)
        table.insert(frame(n, "a", "b"), dedupe=True, options=SHUFFLE)
        assert rows_in(table) == [("a", "1", n), ("b", "1", 1)]
        table.upsert(frame(n + 1, "a"), options=SHUFFLE)
        assert rows_in(table) == [("a", "1", n + 1), ("b", "1", 1)]
    groups = len(slices_of(table))
    table.delete(["a"])
    table.upsert(frame(9, "a", "c"), options=SHUFFLE)
    assert rows_in(table) == [("a", "1", 9), ("b", "1", 1), ("c", "1", 9)]
    # It is back where it was deleted last, where the delete's ordering value is met; the new key
    # has found no room beside logs.
    assert len(slices_of(table)) == groups + 1


@pytest.mark.parametrize("options", [{}, SHUFFLE])
def test_a_void_column_is_a_column_of_nulls(
    spark: Any, tmp_path: Path, options: dict[str, str]
) -> None:
    table = lw.create_table(
        tmp_path / "t", schema=f"{DDL}, l array<int>", key="k", partition_by="p"
    )
    table.insert([{"k": "a", "p": "1", "n": 1, "l": [1]}])
    table.delete(spark.sql("SELECT 'a' AS k, NULL AS p"), options=options)
    assert rows_in(table) == [("a", "1", 1, [1])]
    voids = "SELECT 'a' AS k, '1' AS p, NULL AS n, array() AS l, NULL AS other"
    table.upsert(spark.sql(voids), options=options)
    assert rows_in(table) == [("a", "1", None, [])]
    table.upsert([{"k": "a", "p": "1", "n": 1, "l": [1]}])
    assigns = {"set": {"n": "s.n"}, "where": "s.n IS NULL"}
    source = spark.sql("SELECT 'a' AS k, NULL AS n")
    assert table.merge(source, "t.k = s.k", when_matched=assigns, options=options).updated == 1
    assert rows_in(table) == [("a", "1", None, [1])]


@pytest.mark.parametrize("options", [{}, SHUFFLE])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_generated_keys_are_deleted_by_a_condition(
    spark: Any, tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="p string, n int", key=None, partition_by="p", type=kind, spark=spark
    )
    table.insert([{"p": f"{n % 2}", "n": n} for n in range(6)])
    table.delete(where="n > 3", options=options)
    assert rows_in(table) == [("0", 0), ("0", 2), ("1", 1), ("1", 3)]


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_many_keys_are_deleted_without_their_partitions(
    spark: Any, tmp_path: Path, index: str
) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="k int, s string, p string", key=["k", "s"], partition_by="p",
        index=index,
    )  # fmt: skip
    table.insert([{"k": n, "s": None if n == 3 else "s", "p": f"{n % 3}"} for n in range(9)])
    gone = spark.sql("SELECT id AS k, if(id = 3, NULL, 's') AS s FROM range(1, 6)")
    table.delete(gone, options=SHUFFLE)
    assert [row[0] for row in rows_in(table)] == [0, 6, 7, 8]


def test_all_rows_of_a_key_that_a_file_holds_twice_give_way(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="k string, n int", key="k", type="MERGE_ON_READ")
    table.insert([{"k": key, "n": n} for n, key in enumerate("aabb")])
    table.upsert(spark.createDataFrame([("a", 9)], "k string, n int"), options=SHUFFLE)
    assert rows_in(table) == [("a", 9), ("b", 2), ("b", 3)]
    table.delete(spark.createDataFrame([("b",)], "k string"), options=SHUFFLE)
    assert rows_in(table) == [("a", 9)]
