"""Values and errors: no I/O, standard library only (and sqlglot for expression text)."""
