"""Scans as Spark DataFrames."""

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.actions.scan import ScanPlan
from lakewright.engine.spark.layout import lay_out
from lakewright.engine.spark.native import native_frame
from lakewright.engine.spark.schema import nullable, to_spark_schema
from lakewright.engine.spark.tasks import merged_frame
from lakewright.model.schema import Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def to_spark(plan: ScanPlan, spark: "SparkSession") -> "DataFrame":
    """Return the rows of a scan as one DataFrame; no row is read and none comes to the driver.

    Slices without logs are Spark's own parquet scan of exactly the live files, so that pruning
    and pushdown are Spark's; slices with logs are merged by Python workers. Settings of the
    session that planning changes are put back.
    """
    if not plan.schema.fields:
        # Spark takes no rows without columns from Python workers: read one, and drop it.
        first = replace(plan.spec, schema=Struct(plan.spec.table_schema.fields[:1]))
        return to_spark(replace(plan, spec=first), spark).select()
    spec = plan.spec
    layout = lay_out(spec, plan.tasks, overlay=False)
    frames = [native_frame(spark, spec, files, layout.columns) for files in layout.native]
    if layout.merged:
        frames.append(merged_frame(spark, spec, layout.merged))
    if not frames:
        return spark.createDataFrame([], to_spark_schema(nullable(spec.schema)))
    return reduce(lambda left, right: left.unionAll(right), frames)
