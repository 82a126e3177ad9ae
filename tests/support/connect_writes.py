"""Writes and streams over Spark Connect, in a session that tries failed tasks again."""

from pathlib import Path
from typing import Any

import lakewright as lw
from support.failing_rows import failing
from support.left_behind import left_behind

SCHEMA = "id string, n bigint"


def told(table: lw.Table) -> dict[str, Any]:
    rows = table.scan().to_arrow().to_pylist()
    return {
        "rows": sorted([row["id"], row["n"]] for row in rows),
        "commits": len(table.timeline.data()),
        "pending": len(table.timeline.pending()),
        "left": left_behind(table),
    }


def stream(reader: Any, writer: Any, checkpoint: Path) -> None:
    query = writer(reader.writeStream).option("checkpointLocation", str(checkpoint))
    assert query.trigger(availableNow=True).start().awaitTermination(600)


def found(spark: Any, place: str) -> dict[str, Any]:
    """What tables in an empty folder hold after each way to write."""
    folder = Path(place)

    def table(name: str, **details: Any) -> lw.Table:
        return lw.create_table(folder / name, schema=SCHEMA, key="id", order_by="n", **details)

    def frame(*rows: tuple[str, int]) -> Any:
        return spark.createDataFrame(list(rows), SCHEMA)

    source = table("source")
    failed = failing(frame(("a", 1), ("b", 1)).repartition(2), 0, times=1, folder=folder / "tries")
    failed.write.format("lakewright").mode("append").save(source.path)
    came = {"append": told(source)}

    buckets = table("buckets", buckets=2, type="MERGE_ON_READ")
    follow = spark.readStream.format("lakewright").load(source.path)

    def upsert(writer: Any) -> Any:
        return writer.format("lakewright").options(path=buckets.path, operation="upsert")

    stream(follow, upsert, folder / "first")
    newer = frame(("b", 2), ("c", 2)).write.format("lakewright").mode("append")
    newer.option("operation", "upsert").save(source.path)
    stream(follow, upsert, folder / "first")
    came["sink"] = told(buckets)

    copy = table("copy")
    write = copy.stream_writer(checkpoint=str(folder / "second"))
    for _ in range(2):
        stream(follow, lambda writer: writer.foreachBatch(write), folder / "second")
    came["foreachBatch"] = told(copy)
    return came
