"""SQL over a lake with a Spark session: what the local engine does, Spark does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.model.errors import Invalid, TableNotFound

pytest.importorskip("duckdb", reason="DuckDB is not installed")

pytestmark = pytest.mark.spark

T = "shop.orders"
SCRIPT = (
    f"CREATE TABLE {T} (id STRING NOT NULL, qty INT, price DECIMAL(10,2), ts BIGINT, "
    "tags ARRAY<STRING>, dt STRING) USING hudi PARTITIONED BY (dt) TBLPROPERTIES "
    "(primaryKey = 'id', preCombineField = 'ts', type = 'mor', 'hoodie.index.type' = 'BUCKET', "
    "'hoodie.bucket.index.num.buckets' = '2')",
    f"INSERT INTO {T} VALUES ('a', 1, 1.25, 1, array('p'), 'x'), ('b', 2, 2, 1, array(), 'x'), "
    "('c', 3, NULL, 1, NULL, 'y')",
    f"INSERT INTO {T} PARTITION (dt = 'z') (id, ts) VALUES ('d', 1)",
    f"UPDATE {T} SET qty = coalesce(qty, 0) + 10, price = price * 2 WHERE dt <> 'y'",
    f"UPDATE {T} SET dt = 'moved' WHERE id = 'b'",
    f"MERGE INTO {T} AS t USING (SELECT id, qty, 5L AS ts, dt, 'u' AS op FROM {T} WHERE id <> 'c' "
    "UNION ALL SELECT 'n', 9, 5, 'x', 'u' UNION ALL SELECT 'o', 9, 5, 'x', 'd') AS s "
    "ON t.id = s.id AND t.dt = s.dt WHEN MATCHED AND s.qty = 12 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.op = 'u' THEN INSERT * "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET qty = -1, dt = 'w'",
    f"DELETE FROM {T} WHERE id = 'a' OR dt = 'nowhere'",
    f"CREATE TABLE shop.copied USING hudi TBLPROPERTIES (primaryKey = 'id') "
    f"AS SELECT id, qty * 2 AS twice FROM {T}",
)


def _rows(lake: lw.Lake, table: str) -> list[dict[str, Any]]:
    found = lake.table(table).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


@pytest.fixture(scope="module")
def lakes(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[lw.Lake, lw.Lake]:
    place = tmp_path_factory.mktemp("lakes")
    on_spark, local = lw.connect(place / "spark", spark=spark), lw.connect(place / "local")
    views = spark.catalog.listTables()
    for statement in SCRIPT:
        first = on_spark.sql(statement).collect()
        second = local.sql(statement).to_pylist()
        assert len(first) == len(second) == 1
        expected = _rows(local, T)
        assert _rows(on_spark, T) == expected, statement
    assert spark.catalog.listTables() == views  # nothing of the statements stays in the session
    return on_spark, local


def test_both_engines_leave_the_same_rows(lakes: tuple[lw.Lake, lw.Lake]) -> None:
    on_spark, local = lakes
    assert [(r["id"], r["qty"], r["dt"]) for r in _rows(local, T)] == [
        ("c", -1, "w"),
        ("d", 10, "z"),
        ("n", 9, "x"),
    ]
    assert _rows(on_spark, "shop.copied") == _rows(local, "shop.copied")


QUERIES = (
    f"SELECT id, qty FROM {T} WHERE dt <> 'w' ORDER BY id",
    f"SELECT shop.orders.dt AS day, count(*) AS n FROM {T} GROUP BY shop.orders.dt ORDER BY day",
    f"WITH orders AS (SELECT * FROM {T} WHERE qty > 0) SELECT max(qty) AS m FROM orders",
    f"SELECT a.id, b.twice FROM {T} a LEFT JOIN shop.copied b ON a.id = b.id ORDER BY a.id",
    f"SELECT '{{x}} %s' AS text, `orders`.`id` FROM {T} WHERE id = 'c' -- {{}}",
    f"SELECT id FROM {T} o WHERE EXISTS (SELECT 1 FROM shop.copied c WHERE c.id = o.id) ORDER BY 1",
)


def test_queries(lakes: tuple[lw.Lake, lw.Lake]) -> None:
    on_spark, local = lakes
    for query in QUERIES:
        expected = [tuple(row.values()) for row in local.sql(query).to_pylist()]
        assert expected
        assert [tuple(row) for row in on_spark.sql(query).collect()] == expected, query


def test_views_of_the_session_beside_tables_of_the_lake(
    lakes: tuple[lw.Lake, lw.Lake], spark: Any
) -> None:
    spark.range(3).createOrReplaceTempView("numbers")
    try:
        found = lakes[0].sql(f"SELECT max(n.id) AS m FROM numbers n CROSS JOIN {T}").collect()
    finally:
        spark.catalog.dropTempView("numbers")
    assert [tuple(row) for row in found] == [(2,)]
    with pytest.raises(TableNotFound, match=r"Nearest: shop\.orders"):
        lakes[0].sql("SELECT * FROM shop.ordes")
    with pytest.raises(Invalid, match="nope"):
        lakes[0].sql(f"SELECT nope FROM {T}")


def test_what_cannot_be_stored_is_refused(lakes: tuple[lw.Lake, lw.Lake], spark: Any) -> None:
    table = lakes[0].table(T)
    before = _rows(lakes[0], T)
    for text, told in (
        (f"UPDATE {T} SET qty = id", "column qty of type int cannot hold"),
        (f"UPDATE {T} SET ts = 0", "rows would get a lower ts"),
        (f"INSERT INTO {T} (id, qty, ts, dt) VALUES ('e', 'many', 1, 'x')", "column qty"),
    ):
        with pytest.raises(Invalid, match=told):
            lakes[0].sql(text)
    twice = spark.createDataFrame([("n", 1), ("n", 2)], "id string, qty int")
    with pytest.raises(Invalid, match=r"1 row of the table .*'n'"):
        table.merge(twice, "t.id = s.id", when_matched={"set": {"qty": "s.qty"}})
    assert _rows(lakes[0], T) == before


@pytest.mark.slow
def test_over_connect(tmp_path: Path, spark: Any) -> None:
    pytest.importorskip("pyspark.sql.connect", reason="PySpark is not installed")
    pytest.importorskip("grpc", reason="Spark Connect's packages are not installed")
    support = Path(__file__).parents[1] / "support" / "connect_sql.py"
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, str(support), str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["a", 11, "moved"],
        ["c", 3, "y"],
        ["it's ${x}", None, "q"],
        ["n", 7, "x"],
    ]
