"""Reading file slices as streams of Arrow batches."""
