"""Engines that run task functions: Spark, and threads of this process."""
