"""Names as Spark SQL takes them."""


def quoted(name: str) -> str:
    """Return a column name that Spark takes literally, dots and all."""
    return "`" + name.replace("`", "``") + "`"
