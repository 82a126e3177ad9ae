"""Names of tables and columns in statements, and how they are written back safely."""

from collections.abc import Sequence
from difflib import get_close_matches

from sqlglot import exp

from lakewright.model.errors import Invalid, TableNotFound


def quoted(*parts: str) -> str:
    """Write a name for Spark SQL, whatever characters it holds."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def text_literal(value: str) -> str:
    """Write a text for Spark SQL: as it reads where that is plain, else by its escapes."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"


def parts_of(table: exp.Expression | None) -> tuple[str, ...]:
    """Return the parts of a table's name as they were written, quotes taken off."""
    if isinstance(table, exp.Schema):
        table = table.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        shown = "" if table is None else table.sql(dialect="spark")
        raise Invalid(
            f"{shown!r} is no table name.", next_step="Write database.table or table.", name=shown
        )
    return tuple(str(part.this) for part in table.parts if isinstance(part, exp.Identifier))


def table_name(table: exp.Expression | None) -> str:
    """Return the name of a table as the lake knows it: ``database.table`` or ``table``."""
    parts = parts_of(table)
    if len(parts) > 2 or any("." in part for part in parts):
        raise Invalid(
            f"{quoted(*parts)} is no table name.",
            next_step="Write database.table or table, without dots inside either.",
            name=".".join(parts),
        )
    return ".".join(parts)


def alias_of(table: exp.Expression) -> str | None:
    """Return the alias that a statement gives to a table."""
    alias = table.args.get("alias")
    return str(alias.this.this) if isinstance(alias, exp.TableAlias) and alias.this else None


def no_table(name: str, known: Sequence[str], where: str = "") -> TableNotFound:
    """Return the error for a table that is not there, with the nearest that are."""
    bare = {full.rpartition(".")[2]: full for full in known}
    near = get_close_matches(name, [*known, *bare], n=3)
    likely = list(dict.fromkeys(bare.get(text, text) for text in near))
    hint = f"Nearest: {', '.join(likely)}. " if likely else ""
    shown = ", ".join(known[:20]) or "none"
    return TableNotFound(
        f"no table {name}{f' ({where})' if where else ''}.",
        next_step=f"{hint}Known: {shown}{'…' if len(known) > 20 else ''}.",
        table=name,
    )
