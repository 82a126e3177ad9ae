"""File names as Spark wants them."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from lakewright.engine.spark.gateway import Py4JError, java_class
from lakewright.engine.spark.session import is_connect, setting
from lakewright.model.errors import Unsupported
from lakewright.storage.port import Storage
from lakewright.table.standing import snapshot_gone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

#: Characters that Spark takes for a pattern in the paths given to a reader.
_GLOB = re.compile(r"[\\{}\[\]*?]")
_OURS_ONLY = ("memory://", "fsspec+")
#: From here on one text to the JVM, with two calls to take it apart, is quicker than a call a path.
_MANY = 16


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


def can_be_given(location: str) -> bool:
    """Say whether a reader of Spark finds the file when it is given this name, escaped.

    A name with an escape in it is looked up folder by folder, and there Hadoop takes a folder
    with a colon for an address of another kind.
    """
    _, separator, rest = location.partition("://")
    folders = rest.partition("/")[2] if separator else location
    return ":" not in folders or not _GLOB.search(location)


def read_files(
    spark: "SparkSession", reader: "DataFrameReader", paths: Sequence[str]
) -> "DataFrame":
    """Return what ``reader.parquet(*paths)`` returns.

    PySpark hands the JVM one path a call, which for ten thousand files takes longer than Spark's
    own planning of them. Here they go as one text. ``SnapshotGone`` where one is not there.
    """
    try:
        return _read_files(spark, reader, paths)
    except AnalysisException as refused:
        # A name that changed between releases of Spark; the text of the error holds it.
        if "PATH_NOT_FOUND" not in str(refused):
            raise
        raise snapshot_gone("Spark finds not all of its files any more.") from refused


def _read_files(
    spark: "SparkSession", reader: "DataFrameReader", paths: Sequence[str]
) -> "DataFrame":
    if is_connect(spark) or len(paths) < _MANY:
        return reader.parquet(*paths)
    try:
        pattern = java_class(spark, "java.util.regex.Pattern")
        array = pattern.compile("\0").split("\0".join(paths))
    except Py4JError:  # a gateway that lets only listed classes be called
        return reader.parquet(*paths)
    return reader._df(reader._jreader.parquet(array))
