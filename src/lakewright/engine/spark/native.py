"""Base files as Spark's own parquet scans."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lakewright.actions.tasks.read import ReadSpec
from lakewright.engine.spark.expression import to_column
from lakewright.engine.spark.layout import NativeFiles, path_columns
from lakewright.engine.spark.paths import escape_glob, read_files, spark_root
from lakewright.engine.spark.quoting import quoted
from lakewright.engine.spark.schema import as_nullable, nullable, to_spark_schema, to_spark_type
from lakewright.engine.spark.session import changed_settings, is_connect, setting
from lakewright.model.schema import COMMIT_TIME, Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Above this many paths Spark starts a job of that many tasks to list them; asking for the
#: status of files whose names are known is quicker from the driver.
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"

#: A session may be told to pass over missing or broken files; a table must not lose rows so.
#: Hudi's writers store dates and times in the proleptic calendar, as the parquet format says.
_READER_OPTIONS: Mapping[str, str] = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


def native_frame(
    spark: "SparkSession", spec: ReadSpec, files: NativeFiles, columns: Struct
) -> "DataFrame":
    """Return the rows of base files, with the filter of the scan on top for Spark to push."""
    frame = scan_frame(spark, spec, files)
    if spec.filter is None and spec.changed_by is None:
        wanted = typed(files, spec.schema)
        if not is_connect(spark) and wanted == [quoted(name) for name in frame.columns]:
            return frame
        return frame.selectExpr(*wanted)
    return conditioned(frame.selectExpr(*typed(files, columns)), spec)


def scan_frame(spark: "SparkSession", spec: ReadSpec, files: NativeFiles) -> "DataFrame":
    """Return the bare parquet scan over exactly these files."""
    root = spark_root(spec.open_storage(), spark)
    paths = [
        escape_glob(f"{root}/{task.slice.base.path}") for task in files.tasks if task.slice.base
    ]
    reader = spark.read.schema(to_spark_schema(nullable(path_columns(files, spec))))
    reader = reader.options(**_READER_OPTIONS)
    if files.by_path:
        reader = reader.option("basePath", root)
    told = setting(spark, _LISTING)
    if len(paths) <= (int(told) if told and told.isdigit() else 0):
        return read_files(spark, reader, paths)
    with changed_settings(spark, {_LISTING: str(len(paths) + 1)}):
        frame = read_files(spark, reader, paths)
        if is_connect(spark):
            _ = frame.schema  # the server lists the files now, not after the setting is back
        return frame


def typed(files: NativeFiles, columns: Struct) -> list[str]:
    """Return the columns of the scan with the types of the table, as Spark SQL.

    Texts go to the JVM in one call each, where columns take several.
    """
    made = []
    for field in columns:
        name = quoted(field.name)
        wanted = to_spark_type(as_nullable(field.type))
        held = to_spark_type(files.read_as.field(field.name).type)
        cast = f"cast({name} as {wanted.simpleString()}) as {name}"
        made.append(name if held == wanted else cast)
    return made


def conditioned(frame: "DataFrame", spec: ReadSpec) -> "DataFrame":
    """Return the rows that the scan wants, with the columns that it wants."""
    if spec.changed_by is not None:
        frame = frame.where(F.col(COMMIT_TIME).isin(sorted(spec.changed_by)))
    if spec.filter is not None:
        frame = frame.where(to_column(spec.filter))
    return frame.selectExpr(*(quoted(name) for name in spec.schema.names))
