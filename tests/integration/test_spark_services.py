"""Services beside writes of Spark, and called through a lake that has a session."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.model.services import Outcome
from support.left_behind import left_behind

pytestmark = pytest.mark.spark

COMPACT = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "lakewright.write.driver-work": "0",
}


def test_a_write_of_a_session_is_followed_by_its_services(spark: Any, tmp_path: Path) -> None:
    lake = lw.connect(tmp_path, spark=spark)
    table = lake.create_table(
        "shop.t",
        schema="id string, n bigint",
        key="id",
        type="MERGE_ON_READ",
        properties=COMPACT,
    )
    table.upsert(spark.sql("SELECT cast(id AS string) AS id, id AS n FROM range(50)"))
    result = table.upsert(spark.sql("SELECT cast(id AS string) AS id, -id AS n FROM range(50)"))
    assert [told.outcome for told in result.services] == [Outcome.DONE]
    assert result.services[0].counts.rows == 50
    assert [found.groups for found in table.compactions()] == [1]
    assert table.scan().to_spark(spark).selectExpr("sum(n)").collect()[0][0] == -1225
    (row,) = lake.sql("CALL show_compaction(table => 'shop.t')").collect()  # type: ignore[operator]
    assert row.state == "COMPLETED" and row.operation_size == 1
    table.upsert(spark.sql("SELECT '1' AS id, 7L AS n"), options={"hoodie.compact.inline": "false"})
    (done,) = lake.sql("CALL run_compaction('scheduleAndExecute', 'shop.t')").collect()  # type: ignore[operator]
    assert done.state == "COMPLETED"
    assert table.scan(where="id = '1'").to_arrow().to_pylist() == [{"id": "1", "n": 7}]
    assert left_behind(table) == []


@pytest.mark.parametrize("staged", [False, True], ids=["direct", "staged"])
def test_the_data_source_ends_alike(spark: Any, tmp_path: Path, staged: bool) -> None:
    pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")
    options = {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "2",
        "hoodie.parquet.small.file.limit": "0",
    }
    table = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id")
    for number in range(2):
        rows = spark.sql(f"SELECT concat('{number}-', id) AS id, id AS n FROM range(10)")
        writer = rows.coalesce(1).write.format("lakewright").options(**options).mode("append")
        writer.option("operation", "upsert" if staged else "insert").save(table.path)
    assert [found.groups for found in table.clusterings()] == [1]
    assert table.scan().count() == 20
    (snapshot,) = table.get_latest_snapshot()
    assert len(snapshot.file_slices) == 1
