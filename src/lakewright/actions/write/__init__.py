"""Writing: from rows to file groups to one commit."""
