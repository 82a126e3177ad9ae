"""Table services: what keeps a table fast, small and recoverable."""
