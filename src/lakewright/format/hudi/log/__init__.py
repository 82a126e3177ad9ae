"""Hudi log files: framed blocks of records, deletes, changes and commands."""
