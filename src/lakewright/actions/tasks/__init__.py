"""Functions that engines run on workers; all their arguments can be pickled."""
