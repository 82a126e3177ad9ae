"""Ways in: the command line and the Spark data source."""
