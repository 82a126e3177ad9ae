"""Real Hudi's writer, told everything that keeps it to the table as it was made."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.model_table import Kind, Values

PLAIN = {
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.compact.inline.max.delta.commits": "100",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.simple.index.parallelism": "1",
    "hoodie.global.simple.index.parallelism": "1",
    "hoodie.finalize.write.parallelism": "1",
    "hoodie.markers.delete.parallelism": "1",
    "hoodie.write.markers.type": "DIRECT",
}
COMPACT = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
CLUSTER = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
CLEAN = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock."
    "FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "2000",
    "hoodie.write.lock.num_retries": "50",
    "hoodie.write.lock.wait_time_ms_between_retry": "100",
}


def options_of(kind: Kind) -> dict[str, str]:
    """The write options that mean the same as the table's own properties."""
    found = {
        **PLAIN,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if kind.mor else "COPY_ON_WRITE",
        "hoodie.datasource.write.recordkey.field": ",".join(kind.key),
        "hoodie.datasource.write.partitionpath.field": "p" if kind.partitioned else "",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": str(kind.url_encode).lower(),
        "hoodie.write.table.version": str(kind.version),
    }
    if kind.ordering is not None:
        found["hoodie.datasource.write.precombine.field"] = "ts"
    if kind.index == "bucket":
        found |= {
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": str(kind.buckets),
            "hoodie.bucket.index.hash.field": ",".join(kind.key),
        }
    else:
        found["hoodie.index.type"] = "GLOBAL_SIMPLE" if kind.index == "global" else "SIMPLE"
    return found


def frame_of(spark: Any, rows: pa.Table) -> Any:
    """The rows in one partition, by way of a file: given values, Spark starts Python for them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    folder = Path(spark.conf.get("spark.local.dir"))
    folder.mkdir(exist_ok=True)
    path = folder / f"{uuid.uuid4().hex}.parquet"
    pq.write_table(rows, path)
    return spark.read.schema(from_arrow_schema(rows.schema)).parquet(str(path)).coalesce(1)


def write(
    spark: Any,
    path: Path | str,
    kind: Kind,
    rows: Sequence[Values],
    operation: str = "upsert",
    more: Mapping[str, str] | None = None,
) -> None:
    values = pa.Table.from_pylist(list(rows), schema=kind.schema)
    writer = frame_of(spark, values).write.format("hudi").options(**options_of(kind))
    writer = writer.options(**(more or {})).option("hoodie.datasource.write.operation", operation)
    writer.mode("append").save(str(path))


def read(spark: Any, path: Path | str, **options: str) -> list[dict[str, Any]]:
    frame = spark.read.format("hudi").options(**options).load(str(path))
    return [row.asDict() for row in frame.collect()]
