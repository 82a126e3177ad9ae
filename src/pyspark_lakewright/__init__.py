"""The door through which Spark finds the data source ``lakewright``."""
