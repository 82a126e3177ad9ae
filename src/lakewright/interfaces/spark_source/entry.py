"""The door through which Spark finds the data source."""

from pyspark import __version__ as version

from lakewright.model.errors import Unsupported


def default_source() -> type:
    """Return the class behind ``format("lakewright")``; Spark before 4.0 has no place for it."""
    if int(version.split(".")[0]) < 4:
        raise Unsupported(
            f'format("lakewright") needs Spark 4.0 or later; this is PySpark {version}.',
            next_step="Use lakewright.open_table(path).scan().to_spark(spark), which gives the "
            "same rows on Spark 3.5.",
            version=version,
        )
    from lakewright.interfaces.spark_source.source import LakewrightSource

    return LakewrightSource
