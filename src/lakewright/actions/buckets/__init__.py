"""The bucket index: rules and counts, rescaling, advice, checks and repair."""
