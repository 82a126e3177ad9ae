"""The Spark executor over Spark Connect, in a session of another zone than UTC."""

import os
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from lakewright.actions.executor import Spread
from lakewright.engine.spark.executor import SparkExecutor
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.errors import Invalid
from support import spark_tasks


def found(spark: Any) -> dict[str, object]:
    """What its ways to run tasks give."""
    cloudpickle.register_pickle_by_value(spark_tasks)
    small = spark.range(0, 10, 1, 3).selectExpr("id", "timestamp'2020-01-02 03:04:05' as at")
    rows = SparkExecutor(spark).few(small, 1 << 20)
    counted = SparkExecutor(spark).few(small.mapInArrow(lambda b: b, small.schema), 1 << 20)
    exploded = spark.range(1000).selectExpr("explode(sequence(1, 100)) n", "repeat('x', 1000) t")
    assert rows is not None
    assert counted is not None
    tasks = SparkExecutor(spark, {"lakewright.write.driver-work": "0"})
    blobs = [pa.array([os.urandom(1 << 20)]) for _ in range(6)]
    items = list(tasks.map(spark_tasks.describe, "s", blobs, size=lambda _: 1 << 23))
    try:
        list(tasks.map(spark_tasks.refuse, "s", range(5), size=lambda _: 1 << 23))
    except Invalid as error:
        refused = error.facts
    frame = spark.range(0, 1000).selectExpr("concat('k', id) as key", "concat('d', id % 3) as day")
    groups = {}
    for name, fields in {"native": ("key",), "python": ()}.items():
        spread = Spread(
            ("day",),
            BucketCounts.plain(4),
            ("key",),
            key_fields=fields,
            route=spark_tasks.by_bucket,
        )
        made = list(tasks.stream(spark_tasks.census, ("day",), frame, spread))
        groups[name] = sum(count for _, _, count in made)
    told: list[tuple[int, int]] = []
    options = {"lakewright.write.driver-work": "0", "lakewright.spark.task-bytes": str(1 << 20)}
    watched = SparkExecutor(spark, options, lambda done, known: told.append((done, known)))
    list(watched.map(spark_tasks.take_time, 2.0, range(4), size=lambda _: 1 << 20))
    return {
        "told": [max(done for done, _ in told) > 0, max(known for _, known in told), len(told) > 1],
        "few": [rows.num_rows, str(rows["at"][0].as_py()), rows["id"].to_pylist()],
        "same": counted.equals(rows),
        "many": SparkExecutor(spark).few(exploded, 1 << 20) is None,
        "items": all(made[1].equals(blobs[made[2].task]) for made in items),
        "elsewhere": os.getpid() not in {made[3] for made in items},
        "refused": refused,
        "groups": groups,
    }
