"""Rules that say how many buckets a partition has."""
