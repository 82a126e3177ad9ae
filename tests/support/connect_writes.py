"""Write over Spark Connect and print what came of it; run as a script.

Argument: an empty folder. Tasks that fail are tried again here, which the session of the other
tests does not do.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

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


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    builder = SparkSession.builder.remote("local[2,3]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()

    def table(name: str, **details: Any) -> lw.Table:
        return lw.create_table(folder / name, schema=SCHEMA, key="id", order_by="n", **details)

    def frame(*rows: tuple[str, int]) -> Any:
        return spark.createDataFrame(list(rows), SCHEMA)

    source = table("source")
    failed = failing(frame(("a", 1), ("b", 1)).repartition(2), 0, times=1, folder=folder / "tries")
    failed.write.format("lakewright").mode("append").save(source.path)
    found = {"append": told(source)}

    buckets = table("buckets", buckets=2, type="MERGE_ON_READ")
    follow = spark.readStream.format("lakewright").load(source.path)

    def upsert(writer: Any) -> Any:
        return writer.format("lakewright").options(path=buckets.path, operation="upsert")

    stream(follow, upsert, folder / "first")
    newer = frame(("b", 2), ("c", 2)).write.format("lakewright").mode("append")
    newer.option("operation", "upsert").save(source.path)
    stream(follow, upsert, folder / "first")
    found["sink"] = told(buckets)

    copy = table("copy")
    write = copy.stream_writer(checkpoint=str(folder / "second"))
    for _ in range(2):
        stream(follow, lambda writer: writer.foreachBatch(write), folder / "second")
    found["foreachBatch"] = told(copy)
    print(json.dumps(found))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
