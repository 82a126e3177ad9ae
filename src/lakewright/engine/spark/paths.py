"""File names as Spark wants them."""

import re
from typing import TYPE_CHECKING

from lakewright.engine.spark.session import setting
from lakewright.model.errors import Unsupported
from lakewright.storage.port import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Characters that Spark takes for a pattern in the paths given to a reader.
_GLOB = re.compile(r"[\\{}\[\]*?]")
_OURS_ONLY = ("memory://", "fsspec+")


def spark_root(storage: Storage, spark: "SparkSession") -> str:
    """Return the table's folder under the name that Spark knows; patterns are not escaped."""
    root = storage.locate("").rstrip("/")
    if root.startswith(_OURS_ONLY):
        raise Unsupported(
            f"Spark cannot read {root}.",
            next_step="Copy the table to a place that Spark's workers see, or use to_arrow().",
            uri=root,
        )
    scheme, separator, rest = root.partition("://")
    if not separator:
        return f"file://{root}"
    if scheme in {"s3", "s3n"} and setting(spark, f"spark.hadoop.fs.{scheme}.impl") is None:
        return f"s3a://{rest}"
    return f"gs://{rest}" if scheme == "gcs" else root


def escape_glob(path: str) -> str:
    """Return the path with everything escaped that Spark would read as a pattern."""
    return _GLOB.sub(r"\\\g<0>", path)
