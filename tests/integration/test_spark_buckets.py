"""Buckets are checked and mended by Spark's tasks, and managed by SQL on a session."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw

pytestmark = pytest.mark.spark
#: Nothing is small enough for the driver.
ON_WORKERS = {"lakewright.write.driver-bytes": "0", "lakewright.write.driver-work": "0"}


def claim_buckets(table: lw.Table, number: int) -> None:
    file = Path(table.path) / ".hoodie" / "hoodie.properties"
    text = re.sub(r"(index\.num\.buckets=)\d+", rf"\g<1>{number}", file.read_text())
    file.write_text(re.sub(r"hoodie\.table\.checksum=.*\n", "", text))


def test_workers_check_and_mend(spark: Any, tmp_path: Path) -> None:
    plain = lw.create_table(
        tmp_path / "t",
        schema="id int, n int, p string",
        key="id",
        partition_by="p",
        buckets=4,
        type="MERGE_ON_READ",
    )
    plain.upsert([{"id": i, "n": 1, "p": f"x{i % 2}"} for i in range(80)])
    claim_buckets(plain, 6)
    plain.upsert([{"id": i, "n": 2, "p": f"x{i % 2}"} for i in range(100)])
    claim_buckets(plain, 4)
    table = lw.open_table(plain.path, spark=spark)
    found = table.buckets.check(options=ON_WORKERS)
    here = plain.buckets.check()
    assert not found.ok
    assert (found.problems, found.checked) == (here.problems, here.checked)
    result = table.buckets.repair(options=ON_WORKERS).apply()
    assert result.rows == 100 and result.dropped > 0
    assert table.buckets.check(options=ON_WORKERS).ok
    rows = plain.scan(columns=["id", "n"]).to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": i, "n": 2} for i in range(100)]


def test_sql_on_a_session_rescales(spark: Any, tmp_path: Path) -> None:
    lake = lw.connect(tmp_path, spark=spark)
    lake.sql(
        "CREATE TABLE shop.t (id INT, n INT, dt STRING) USING hudi PARTITIONED BY (dt) "
        "TBLPROPERTIES (primaryKey = 'id', 'hoodie.index.type' = 'BUCKET', "
        r"'hoodie.bucket.index.partition.expressions' = '\\d-11,8', "
        "'hoodie.bucket.index.num.buckets' = '2')"
    )
    lake.sql("INSERT INTO shop.t SELECT id, id, concat('2026-1', id % 3) FROM range(30)")
    table = lake.table("shop.t")

    def numbers() -> dict[str, int]:
        return {one.partition: one.buckets for one in table.buckets.show().partitions}

    assert numbers() == {"dt=2026-10": 2, "dt=2026-11": 8, "dt=2026-12": 2}
    lake.sql("ALTER TABLE shop.t SET ('hoodie.bucket.index.partition.expressions' = '4')")
    lake.sql("INSERT OVERWRITE shop.t PARTITION (dt) SELECT * FROM shop.t WHERE dt = '2026-11'")
    assert numbers() == {"dt=2026-10": 2, "dt=2026-11": 4, "dt=2026-12": 2}
    answer: Any = lake.sql(
        "CALL partition_bucket_index_manager(table => 'shop.t', add => '2026-12,3', "
        "dry_run => false)"
    )
    assert [row["operation"] for row in answer.collect()] == ["OVERWRITE"]
    assert numbers() == {"dt=2026-10": 4, "dt=2026-11": 4, "dt=2026-12": 3}
    counted: Any = lake.sql("SELECT count(*) AS n, sum(n) AS s FROM shop.t")
    assert [tuple(row) for row in counted.collect()] == [(30, sum(range(30)))]
    assert table.buckets.check().ok
