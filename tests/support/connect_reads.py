"""Tables as read over Spark Connect."""

from dataclasses import replace
from typing import Any

import lakewright as lw
from lakewright.engine.spark.scan import to_spark
from support.spark_rows import golden_rows

LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def found(spark: Any, *reads: tuple[str, str]) -> list[Any]:
    """The rows of each read, which is a plan of merging and a table's path."""
    before = spark.conf.get(LISTING)
    rows = []
    for merging, path in reads:
        plan = lw.open_table(path).scan(meta=True).plan()
        spec = replace(plan.spec, options={"lakewright.spark.merging": merging})
        rows.append(golden_rows(to_spark(replace(plan, spec=spec), spark)))
    assert spark.conf.get(LISTING) == before
    return rows
