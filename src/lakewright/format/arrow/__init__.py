"""Arrow forms of our values: schemas, expressions, evolution. One room, free of table formats."""
