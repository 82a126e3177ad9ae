"""Spark's own types, for annotations of rooms that do not know Spark otherwise."""

from pyspark.sql import DataFrame, SparkSession

__all__ = ["DataFrame", "SparkSession"]
