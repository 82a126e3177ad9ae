"""``foreachBatch`` on Spark 3.5, into a table that real Hudi writes between the batches."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from support import hudi_writer
from support.left_behind import left_behind
from support.stream_feed import SCHEMA, Feed

pytestmark = pytest.mark.interop

PLAIN = {
    **hudi_writer.PLAIN,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.mark.parametrize("mor", [False, True], ids=["cow-lookup", "mor-bucket"])
@pytest.mark.parametrize("driver", ["67108864", "0"], ids=["driver", "executors"])
def test_batches_between_the_writes_of_hudi(
    hudi_spark: Any, tmp_path: Path, mor: bool, driver: str
) -> None:
    """Each batch is in the table once, though Spark runs one again and Hudi writes between."""
    kind = "MERGE_ON_READ" if mor else "COPY_ON_WRITE"
    table = lw.create_table(
        tmp_path / "t",
        schema=SCHEMA,
        key="id",
        order_by="ts",
        type=kind,
        buckets=2 if mor else None,
    )
    feed = Feed(hudi_spark, table, tmp_path)
    write = table.stream_writer(
        checkpoint=str(feed.checkpoint), options={"lakewright.write.driver-bytes": driver}
    )

    def go_on(*rows: tuple[str, int, int]) -> None:
        feed.put(*rows).run(lambda writer: writer.foreachBatch(write))

    go_on(("a", 1, 1), ("b", 1, 1))
    index = {k: v for k, v in table.definition.properties.items() if ".index." in k} if mor else {}
    frame = hudi_spark.createDataFrame([("b", 2, 2), ("h", 2, 2)], SCHEMA)
    options = {**PLAIN, **index, "hoodie.datasource.write.table.type": kind}
    frame.write.format("hudi").options(**options).mode("append").save(table.path)

    feed.forget_commit(0)
    go_on(("a", 3, 3), ("b", 0, 0), ("c", 3, 3))
    assert len(table.timeline.data()) == 3  # two batches, and Hudi's write
    go_on(("h", 4, 4), ("d", 4, 4))
    expected = [("a", 3), ("b", 2), ("c", 3), ("d", 4), ("h", 4)]
    assert feed.rows() == expected
    read = hudi_writer.read(hudi_spark, table.path)
    assert sorted((row["id"], row["n"]) for row in read) == expected
    assert left_behind(table) == []


def test_a_stream_of_deletes_beside_hudi(hudi_spark: Any, tmp_path: Path) -> None:
    """Deletes of a stream are deletes for Hudi, whatever the ordering values."""
    table = lw.create_table(tmp_path / "t", schema=SCHEMA, key="id", order_by="ts")
    rows = [{"id": name, "n": 1, "ts": 9} for name in ("a", "b", "c")]
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
    table.insert(pa.Table.from_pylist(rows, schema=schema))
    feed = Feed(hudi_spark, table, tmp_path)
    write = table.stream_writer(checkpoint=str(feed.checkpoint), operation="delete")
    feed.put(("a", 0, 1), ("z", 0, 1)).run(lambda writer: writer.foreachBatch(write))
    read = hudi_writer.read(hudi_spark, table.path)
    assert sorted(row["id"] for row in read) == ["b", "c"]
    assert [row[0] for row in feed.rows()] == ["b", "c"]
