"""The data source ``lakewright`` of Spark 4."""
