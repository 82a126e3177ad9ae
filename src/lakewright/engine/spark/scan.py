"""Scans as Spark DataFrames."""

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from lakewright.actions.scan import ScanPlan
from lakewright.engine.spark.layout import lay_out
from lakewright.engine.spark.native import native_frame
from lakewright.engine.spark.overlay import overlaid_frame, wants_overlay, without_twins
from lakewright.engine.spark.schema import nullable, to_spark_schema
from lakewright.engine.spark.tasks import merged_frame
from lakewright.model.schema import Struct
from lakewright.table.standing import files_standing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def to_spark(plan: ScanPlan, spark: "SparkSession") -> "DataFrame":
    """Return the rows of a scan as one DataFrame; no row is read and none comes to the driver.

    Slices without logs are Spark's own parquet scan of exactly the live files, so that pruning
    and pushdown are Spark's; slices with logs are merged by Python workers, or their base files
    are scanned natively too and overlaid with the logs. Settings of the session that planning
    changes are put back. ``SnapshotGone`` where files of the plan are not there any more; those
    that go later make the Spark job fail.
    """
    if not plan.schema.fields:
        # Spark takes no rows without columns from Python workers: read one, and drop it.
        first = replace(plan.spec, schema=Struct(plan.spec.table_schema.fields[:1]))
        return to_spark(replace(plan, spec=first), spark).select()
    spec, tasks = plan.spec, tuple(plan.tasks)
    known = plan.request.columns is not None and "*" not in plan.request.columns
    overlay = wants_overlay(spec, tasks, spark, columns_known=known)
    with files_standing():
        layout = lay_out(spec, tasks, overlay=overlay)
    frames = [native_frame(spark, spec, files, layout.columns) for files in layout.native]
    merged = list(layout.merged)
    for group in layout.overlaid:
        files, twins = without_twins(group)
        frames.append(overlaid_frame(spark, spec, files, layout.columns))
        merged.extend(twins)
    if merged:
        frames.append(merged_frame(spark, spec, merged))
    if not frames:
        return spark.createDataFrame([], to_spark_schema(nullable(spec.schema)))
    return reduce(lambda left, right: left.unionAll(right), frames)
