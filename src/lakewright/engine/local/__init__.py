"""The local engine: threads and pyarrow, no JVM."""
