"""The same statements by real Hudi's Spark SQL and by ours: the rows are the same after each.

Ours run by Spark, and by this process too where DuckDB is there to answer queries.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw

pytestmark = pytest.mark.interop

DATABASE = "judge"


def _script() -> list[str]:
    t, s, c = (f"{DATABASE}.{name}" for name in ("orders", "updates", "copied"))
    return [
        f"CREATE TABLE {t} (id STRING, name STRING, qty INT, price DOUBLE, ts BIGINT, dt STRING) "
        f"USING hudi PARTITIONED BY (dt) TBLPROPERTIES (type = 'mor', primaryKey = 'id', "
        "preCombineField = 'ts')",
        f"INSERT INTO {t} VALUES ('1', 'a', 1, 1.5, 10, 'x'), ('2', 'b', 2, 2.5, 10, 'x'), "
        "('3', 'c', 3, 3.5, 10, 'y'), ('4', NULL, NULL, NULL, 10, 'y'), "
        "('5', 'e', 5, 5, 10, 'z')",
        f"INSERT INTO {t} PARTITION (dt = 'w') SELECT '6', 'f', 6, 6.5D, 10L",
        f"INSERT INTO {t} SELECT concat(id, '0'), name, qty * 10, price, ts, dt FROM {t} "
        "WHERE dt = 'x'",
        f"UPDATE {t} SET qty = qty + 100, name = concat(name, '!') WHERE id IN ('1', '3')",
        f"UPDATE {t} SET price = CASE WHEN qty > 100 THEN 0 ELSE price * 2 END, ts = ts + 1 "
        "WHERE dt = 'x'",
        f"DELETE FROM {t} WHERE id = '5' OR qty IS NULL",
        f"CREATE TABLE {s} (id STRING, name STRING, qty INT, price DOUBLE, ts BIGINT, dt STRING, "
        "op STRING) USING hudi TBLPROPERTIES (type = 'cow', primaryKey = 'id')",
        f"INSERT INTO {s} VALUES ('1', 'A', 7, 7.5, 20, 'x', 'u'), "
        "('2', 'B', 8, 8.5, 20, 'x', 'd'), "
        "('7', 'G', 9, 9.5, 20, 'z', 'u'), ('8', 'H', 9, 9.5, 20, 'z', 'd')",
        # The conditions exclude each other: Hudi tries updates before deletes.
        f"MERGE INTO {t} AS t USING (SELECT * FROM {s} WHERE qty > 0) AS s "
        "ON t.id = s.id AND t.dt = s.dt WHEN MATCHED AND s.op = 'd' THEN DELETE "
        "WHEN MATCHED AND s.op = 'u' THEN UPDATE SET t.id = s.id, t.name = s.name, "
        "t.qty = s.qty * 2, t.ts = s.ts WHEN NOT MATCHED AND s.op = 'u' THEN "
        "INSERT (id, name, qty, price, ts, dt) VALUES (s.id, s.name, s.qty, s.price, s.ts, s.dt)",
        f"MERGE INTO {t} AS t USING (SELECT id, name, qty, price, ts + 5 AS ts, dt FROM {s}) AS s "
        "ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *",
        f"CREATE TABLE {c} USING hudi PARTITIONED BY (dt) TBLPROPERTIES (type = 'cow', "
        f"primaryKey = 'id', preCombineField = 'ts') AS SELECT id, qty, ts, dt FROM {t}",
        f"INSERT OVERWRITE {c} PARTITION (dt = 'x') SELECT '9', 9, 9L",
        f"ALTER TABLE {c} DROP PARTITION (dt = 'w')",
        f"DELETE FROM {c} WHERE dt = 'y'",
        f"INSERT OVERWRITE {c} SELECT 'o', 7, 1L, 'q'",
        f"DROP TABLE {s}",
    ]


QUERIES = (
    "SELECT count(*) AS n, sum(qty) AS q FROM {t}",
    "SELECT dt, count(DISTINCT name) AS n FROM {t} GROUP BY dt ORDER BY dt",
    "SELECT a.id, b.qty FROM {t} a LEFT JOIN {c} b ON a.id = b.id AND b.qty > 5 ORDER BY a.id",
    "WITH big AS (SELECT * FROM {t} WHERE qty > 5) SELECT max(id) AS m FROM big WHERE dt <> 'z'",
)


@pytest.fixture(scope="module")
def hudi_database(hudi_spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("hudi")
    hudi_spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{place}'")
    # Without these Hudi keeps a metadata table, which the comparison has no use for.
    hudi_spark.sql("SET hoodie.metadata.enable=false")
    yield hudi_spark
    hudi_spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def test_the_same_statements_give_the_same_rows(hudi_database: Any, tmp_path: Path) -> None:
    spark, lakes = hudi_database, _lakes(hudi_database, tmp_path)
    _compare(spark, lakes, _script(), ("orders", "copied"))
    for query in QUERIES:
        text = query.format(t=f"{DATABASE}.orders", c=f"{DATABASE}.copied")
        expected = [tuple(row) for row in spark.sql(text).collect()]
        assert [tuple(r) for r in lakes["spark"].sql(text).collect()] == expected, text
        if "local" in lakes:
            found = lakes["local"].sql(text).to_pylist()
            assert [tuple(row.values()) for row in found] == expected, text


BUCKETS = "'hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '2', "


def _merge_on_read(name: str, more: str) -> list[str]:
    """Everything that changes a merge-on-read table, again over logs that are there by then."""
    t = f"{DATABASE}.{name}"
    some = "SELECT '{}' AS id, {} AS qty, {}L AS ts, '{}' AS dt, '{}' AS op"
    first = " UNION ALL ".join(
        some.format(*values)
        for values in (
            ("1", 10, 20, "x", "u"),  # newer
            ("2", 20, 5, "x", "u"),  # late: the stored row stays
            ("3", 30, 20, "y", "d"),
            ("7", 70, 20, "z", "u"),
            ("8", 80, 20, "z", "d"),  # neither stored nor wanted
        )
    )
    second = " UNION ALL ".join(
        some.format(*values) for values in (("1", 11, 30, "x", "d"), ("3", 31, 30, "y", "u"))
    )
    merging = (
        "MERGE INTO {t} AS t USING ({source}) AS s ON t.id = s.id AND t.dt = s.dt "
        "WHEN MATCHED AND s.op = 'd' THEN DELETE "
        "WHEN MATCHED AND s.op = 'u' THEN UPDATE SET t.id = s.id, t.qty = s.qty, t.ts = s.ts "
        "WHEN NOT MATCHED AND s.op = 'u' THEN INSERT (id, qty, ts, dt) "
        "VALUES (s.id, s.qty, s.ts, s.dt)"
    )
    return [
        f"CREATE TABLE {t} (id STRING, qty INT, ts BIGINT, dt STRING) USING hudi "
        f"PARTITIONED BY (dt) TBLPROPERTIES ({more}type = 'mor', primaryKey = 'id', "
        "preCombineField = 'ts')",
        f"INSERT INTO {t} VALUES ('1', 1, 10, 'x'), ('2', 2, 10, 'x'), ('3', 3, 10, 'y'), "
        "('4', 4, 10, 'y')",
        merging.format(t=t, source=first),
        merging.format(t=t, source=second),
        f"ALTER TABLE {t} ADD COLUMNS (note STRING, more DOUBLE)",
        f"INSERT INTO {t} (id, qty, ts, note, more, dt) VALUES ('5', 5, 10, 'new', 0.5, 'y')",
        f"UPDATE {t} SET note = concat('n', id), ts = ts + 1 WHERE id IN ('2', '5')",
        f"MERGE INTO {t} AS t USING (SELECT '2' AS id, 'x' AS dt, 99L AS ts, 'merged' AS note) "
        "AS s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET t.note = s.note, "
        "t.ts = s.ts",
        f"ALTER TABLE {t} DROP PARTITION (dt = 'z')",
        f"TRUNCATE TABLE {t} PARTITION (dt = 'x')",
        f"INSERT INTO {t} (id, qty, ts, note, more, dt) VALUES ('1', 6, 1, 'again', 1.5, 'x')",
        f"TRUNCATE TABLE {t}",
    ]


@pytest.mark.parametrize("more", ["", BUCKETS], ids=["lookup", "bucket"])
def test_merging_altering_and_emptying_tables_with_logs(
    hudi_database: Any, tmp_path: Path, more: str
) -> None:
    name = "bucketed" if more else "logged"
    lakes = _lakes(hudi_database, tmp_path)
    _compare(hudi_database, lakes, _merge_on_read(name, more), (name,))
    # Hudi's TRUNCATE makes the table anew, and cannot insert into the added columns then.
    t, last = f"{DATABASE}.{name}", {"id": "1", "qty": 7, "ts": 1, "dt": "x"}
    for lake in lakes.values():
        lake.sql(f"INSERT INTO {t} (id, qty, ts, note, dt) VALUES ('1', 7, 1, 'last', 'x')")
        expected = _sorted([{**last, "note": "last", "more": None}])
        assert _our_rows(lake, t) == _read_by_hudi(hudi_database, lake, t) == expected


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_merging_into_tables_that_make_their_keys(
    hudi_database: Any, tmp_path: Path, kind: str
) -> None:
    """Matched rows keep the keys that were made for them, others get new ones."""
    t = f"{DATABASE}.keyless_{kind}"
    source = (
        "SELECT 'b' AS name, 20 AS qty, 'x' AS dt, 'u' AS op UNION ALL SELECT 'c', 0, 'y', 'd' "
        "UNION ALL SELECT 'n', 40, 'x', 'u' UNION ALL SELECT 'm', 50, 'new', 'u'"
    )
    script = [
        f"CREATE TABLE {t} (name STRING, qty INT, dt STRING) USING hudi PARTITIONED BY (dt) "
        # Hudi 1.2 cannot update rows of a file that grows by the same MERGE.
        f"TBLPROPERTIES (type = '{kind}', 'hoodie.parquet.small.file.limit' = '0')",
        f"INSERT INTO {t} VALUES ('a', 1, 'x'), ('b', 2, 'x'), ('c', 3, 'y'), ('a', 1, 'x')",
        f"MERGE INTO {t} AS t USING ({source}) AS s ON t.name = s.name AND t.dt = s.dt "
        "WHEN MATCHED AND s.op = 'd' THEN DELETE "
        # Hudi leaves null in columns of such tables that are not assigned, if they have logs.
        "WHEN MATCHED AND s.op = 'u' THEN UPDATE SET t.name = s.name, t.qty = s.qty "
        "WHEN NOT MATCHED AND s.op = 'u' THEN INSERT (name, qty, dt) "
        "VALUES (s.name, s.qty, s.dt)",
        f"INSERT INTO {t} VALUES ('z', 9, 'x')",
    ]
    lakes = _lakes(hudi_database, tmp_path)
    _compare(hudi_database, lakes, script, (f"keyless_{kind}",))
    for lake in lakes.values():
        found = lake.table(t).scan(meta=True).to_arrow().to_pylist()
        keys = [row["_hoodie_record_key"] for row in found]
        assert len(set(keys)) == len(keys) == 6
        assert all(keys)


def _lakes(spark: Any, place: Path) -> dict[str, lw.Lake]:
    lakes = {"spark": lw.connect(place / "spark", spark=spark)}
    if find_spec("duckdb") is not None:
        lakes["local"] = lw.connect(place / "local")
    return lakes


def _compare(
    spark: Any, lakes: Mapping[str, lw.Lake], script: Sequence[str], names: Sequence[str]
) -> None:
    """Run statements everywhere; after each our tables hold Hudi's rows, for Hudi too."""
    tables = [f"{DATABASE}.{name}" for name in names]
    for number, statement in enumerate(script):
        try:
            spark.sql(statement)
        except Exception as error:
            raise AssertionError(f"Hudi refuses {number}: {statement}") from error
        if statement.startswith("ALTER"):
            spark.catalog.refreshTable(tables[0])
        for lake in lakes.values():
            lake.sql(statement)
        for table in filter(spark.catalog.tableExists, tables):
            expected = _hudi_rows(spark, table)
            for name, lake in lakes.items():
                where = f"{number} on {name}: {statement}"
                assert _our_rows(lake, table) == expected, where
                if expected:  # Hudi's reader refuses a path without a commit
                    assert _read_by_hudi(spark, lake, table) == expected, where


def _read_by_hudi(spark: Any, lake: lw.Lake, table: str) -> list[dict[str, Any]]:
    return _plain(spark.read.format("hudi").load(lake.table(table).path))


def _hudi_rows(spark: Any, table: str) -> list[dict[str, Any]]:
    return _plain(spark.table(table))


def _plain(frame: Any) -> list[dict[str, Any]]:
    """The rows of a DataFrame without Hudi's own columns."""
    rows = [row.asDict() for row in frame.collect()]
    return _sorted([{k: v for k, v in row.items() if not k.startswith("_hoodie")} for row in rows])


def _our_rows(lake: lw.Lake, table: str) -> list[dict[str, Any]]:
    return _sorted(lake.table(table).scan().to_arrow().to_pylist())


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((dict(sorted(row.items())) for row in rows), key=str)
