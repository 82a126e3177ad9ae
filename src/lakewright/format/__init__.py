"""Bytes to values and back, for each table format; formats do not know each other."""
