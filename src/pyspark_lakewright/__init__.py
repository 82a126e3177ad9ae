"""Where Spark 4 looks for the data source ``lakewright``; nothing else lives here."""

from lakewright.interfaces.spark_source.entry import default_source

DefaultSource = default_source()

__all__ = ["DefaultSource"]
