"""What of each table a query needs: the columns it names, and conditions that all rows must meet.

Reading less is all that this is for: whatever is not understood is simply wanted whole, and the
engine applies the query's own conditions again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from lakewright.interfaces.sql.query import Parsed, Use
from lakewright.model.errors import LakewrightError
from lakewright.model.expression.bind import bind
from lakewright.model.expression.nodes import And, Expression, InZone
from lakewright.model.expression.parse import read_tree
from lakewright.model.schema import Struct

_OUTER = frozenset({"RIGHT", "FULL"})


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """What a query needs of a table; None stands for all columns, and for all rows."""

    columns: tuple[str, ...] | None = None
    where: Expression | None = None


def needs(
    parsed: Parsed, tables: Sequence[tuple[Use, Struct]], zone: str | None = None
) -> list[Need]:
    """Say for each use of a table what the query needs of it.

    ``zone`` is the one in which the engine reads the query's times, None for UTC.
    """
    everything = [Need() for _ in tables]
    if parsed.tree is None:
        return everything
    tree = parsed.tree.copy()
    try:
        names = _renamed(parsed.tree, tree, [use for use, _ in tables])
        schema: dict[str, object] = {
            name: {field.name: "unknown" for field in struct}
            for name, (_, struct) in zip(names, tables, strict=True)
        }
        whole = qualify(
            tree,
            schema=schema,
            dialect="spark",
            validate_qualify_columns=False,
            quote_identifiers=False,
        )
        return _read(whole, names, [struct for _, struct in tables], zone)
    except (SqlglotError, RecursionError):
        return everything


def _renamed(original: exp.Expression, copy: exp.Expression, uses: Sequence[Use]) -> list[str]:
    """Give each table a name of its own in the copy, its old one becoming the alias."""
    places = {id(node): n for n, node in enumerate(original.walk())}
    copies = list(copy.walk())
    names = []
    for number, use in enumerate(uses):
        table = copies[places[id(use.node)]]
        name = f"lw{number}"
        if use.alias is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(use.parts[-1], quoted=True)))
        table.set("this", exp.to_identifier(name))
        table.set("db", None)
        table.set("catalog", None)
        table.set("version", None)
        names.append(name)
    known = {tuple(p.lower() for p in use.parts) for use in uses if len(use.parts) == 2}
    for column in copy.find_all(exp.Column):
        if column.args.get("db") and (column.db.lower(), column.table.lower()) in known:
            column.set("db", None)
    return names


def _read(
    tree: exp.Expression, names: Sequence[str], schemas: Sequence[Struct], zone: str | None
) -> list[Need]:
    scopes = traverse_scope(tree)
    used = _columns(tree)
    aliases: dict[str, str] = {}
    wheres: dict[str, Expression] = {}
    for scope in scopes:
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table) and source.name in names:
                aliases[source.name] = alias
                struct = schemas[names.index(source.name)]
                where = _condition(scope, alias, struct, zone)
                if where is not None:
                    wheres[source.name] = where
    found = []
    for name, struct in zip(names, schemas, strict=True):
        columns = None
        if used is not None and name in aliases:
            columns = _own(used.get(aliases[name], set()), struct)
        found.append(Need(columns, wheres.get(name)))
    return found


def _columns(tree: exp.Expression) -> Mapping[str, set[str]] | None:
    """Collect the columns named, by alias; None where some name could be anybody's."""
    used: dict[str, set[str]] = {}
    for star in tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            return None
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or not column.table:
            return None
        used.setdefault(column.table, set()).add(column.name)
    return used


def _own(named: set[str], struct: Struct) -> tuple[str, ...] | None:
    """Return the columns under the names that the table has; None where that is in doubt."""
    folded: dict[str, list[str]] = {}
    for name in struct.names:
        folded.setdefault(name.lower(), []).append(name)
    found: set[str] = set()
    for name in named:
        alike = folded.get(name.lower(), [])
        if len(alike) != 1:
            return None
        found.add(alike[0])
    return tuple(name for name in struct.names if name in found)


def _condition(scope: Scope, alias: str, struct: Struct, zone: str | None) -> Expression | None:
    """Return the parts of WHERE that only look at one table, where its rows can be left out."""
    select = scope.expression
    if not isinstance(select, exp.Select) or not _may_filter(select, alias):
        return None
    where = select.args.get("where")
    if where is None:
        return None
    whole: Expression | None = None
    for part in _conjuncts(where.this):
        read = _readable(part, alias, struct, zone)
        if read is not None:
            whole = read if whole is None else And(whole, read)
    return whole


def _may_filter(select: exp.Select, alias: str) -> bool:
    joins = select.args.get("joins") or []
    if any(str(join.side).upper() in _OUTER for join in joins):
        return False
    for join in joins:
        if join.this.alias_or_name == alias:
            return not join.side and str(join.kind).upper() in ("", "INNER", "CROSS")
    return True


def _conjuncts(tree: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    elif isinstance(tree, exp.Paren):
        yield from _conjuncts(tree.this)
    else:
        yield tree


def _readable(
    part: exp.Expression, alias: str, struct: Struct, zone: str | None
) -> Expression | None:
    columns = list(part.find_all(exp.Column))
    if not columns or any(c.table != alias for c in columns) or part.find(exp.Query):
        return None
    bare = part.copy()
    for column in list(bare.find_all(exp.Column)):
        for qualifier in ("table", "db", "catalog"):
            column.set(qualifier, None)
    try:
        read = read_tree(bare) if zone is None else InZone(read_tree(bare), zone)
        bind(read, struct)
    except LakewrightError:
        return None
    return read
