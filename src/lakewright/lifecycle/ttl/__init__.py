"""Partition TTL: policies, what they say of a table's partitions, and the statistics they need."""
