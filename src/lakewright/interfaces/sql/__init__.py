"""SQL over a lake: statements about tables are carried out here, queries go to an engine."""
