"""The Spark engine: the one room that knows pyspark."""
