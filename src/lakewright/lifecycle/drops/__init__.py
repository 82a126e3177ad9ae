"""Partitions that are dropped by a plan, and come back by its undo."""
