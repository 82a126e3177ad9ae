"""What the history means now: file groups, slices, the file index and the slice reader."""
