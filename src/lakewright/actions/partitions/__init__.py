"""Whole partitions: what was dropped comes back."""
