"""Read tables over Spark Connect and print their rows; run as a script.

Arguments: pairs of a merging plan and a table's path. A Connect session cannot live in a process
that has a classic one, so tests start this as a process of its own.
"""

import json
import sys
import warnings
from dataclasses import replace

from pyspark.sql import SparkSession

import lakewright as lw
from lakewright.engine.spark.scan import to_spark
from support.spark_rows import golden_rows

LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    builder = SparkSession.builder.remote("local[2]")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    before = spark.conf.get(LISTING)
    found = []
    for merging, path in zip(arguments[::2], arguments[1::2], strict=True):
        plan = lw.open_table(path).scan(meta=True).plan()
        spec = replace(plan.spec, options={"lakewright.spark.merging": merging})
        found.append(golden_rows(to_spark(replace(plan, spec=spec), spark)))
    assert spark.conf.get(LISTING) == before
    print(json.dumps(found))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
