"""Queries of Spark in DuckDB's words: what is known to mean the same, and nothing else.

Every expression is translated with its type in Spark, so that what depends on types (a division, a
conversion, a comparison with a text) is computed as there. A form or a function of which it is not
known that the answer is Spark's is refused.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp

from lakewright.interfaces.sql.duck_aggregates import AGGREGATES, WINDOWS
from lakewright.interfaces.sql.duck_casts import call, plain_cast
from lakewright.interfaces.sql.duck_expressions import Translator
from lakewright.interfaces.sql.duck_functions import FUNCTIONS
from lakewright.interfaces.sql.duck_kinds import Kind, Value, joined, only_spark
from lakewright.interfaces.sql.duck_scopes import Columns, Scope, Source
from lakewright.interfaces.sql.text import teaching
from lakewright.model.dialect import LakeSql
from lakewright.model.schema import INT, List, Map

#: What the column of ``SELECT ''`` is called, which has no name in Spark; DuckDB wants one.
NAMELESS = "lakewright_nameless"
#: Functions that make rows.
_GENERATORS = frozenset({"explode", "explode_outer", "posexplode", "posexplode_outer"})
_WITHIN = frozenset(
    {"this", "expression", "expressions", "alias", "with_", "distinct", "side", "kind"}
)
_SELECT = frozenset(
    {"with_", "hint", "distinct", "expressions", "from_", "joins", "laterals", "where", "group",
     "having", "qualify", "windows", "order", "limit", "offset", "kind"}
)  # fmt: skip
_SET = _WITHIN | {"order", "limit", "offset"}
_SUBQUERY = frozenset({"this", "alias", "with_", "order", "limit", "offset", "distinct"})
_TABLE = frozenset({"this", "alias", "sample", "db", "catalog", "version"})
_JOIN = frozenset({"this", "on", "using", "side", "kind", "method"})


_GROUPED = (
    exp.GroupingSets,
    exp.Rollup,
    exp.Cube,
    exp.Tuple,
    exp.Paren,
    exp.Column,
    exp.Identifier,
)


class _Unread(LakeSql):
    """Spark's SQL in which functions stay as they are written: their meaning is given here."""

    class Parser(LakeSql.Parser):  # type: ignore[valid-type, misc]
        """Knows of functions only those that are written with words between the arguments."""

        FUNCTIONS: ClassVar[dict[str, object]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, object]] = {
            name: LakeSql.Parser.FUNCTION_PARSERS[name]
            for name in (
                "CAST",
                "TRY_CAST",
                "EXTRACT",
                "TRIM",
                "SUBSTRING",
                "SUBSTR",
                "POSITION",
                "OVERLAY",
            )
        }


def read_plainly(text: str) -> exp.Expression:
    """Parse a query without giving its functions a meaning."""
    with teaching(text):
        tree: Any = sqlglot.parse_one(text, dialect=_Unread)
        return tree  # type: ignore[no-any-return]


def check_functions(text: str) -> None:
    """Refuse a query that calls a function that is not known, whatever its arguments are."""
    known = FUNCTIONS.keys() | AGGREGATES.keys() | WINDOWS.keys() | _GENERATORS
    for node in read_plainly(text).find_all(exp.Anonymous):
        if str(node.this).lower() not in known:
            raise only_spark(f"the function {node.this}")


def meant(tree: exp.Expression, tables: Mapping[int, Columns], *, strict: bool) -> Columns:
    """Translate a query in its place; returns its columns with the types that Spark gives them.

    ``tables`` has the columns of tables by the ``id`` of the place that names them.
    """
    return _Queries(tables, strict=strict).query(tree, {}, None)


class _Queries:
    def __init__(self, tables: Mapping[int, Columns], *, strict: bool) -> None:
        self._tables = tables
        self._strict = strict

    def query(
        self, node: exp.Expression, ctes: Mapping[str, Columns], outer: Scope | None
    ) -> Columns:
        """Translate a query; names of WITH are visible in it, and columns of what is around it."""
        ctes = self._with(node, ctes, outer)
        match node:
            case exp.Select():
                return self._select(node, ctes, outer)
            case exp.Subquery():
                _only(node, _SUBQUERY)
                columns = self.query(node.this, ctes, outer)
                self._tail(node, Scope([Source("", columns, columns)], {}, outer), ctes)
                return columns
            case exp.SetOperation():
                return self._set(node, ctes, outer)
            case exp.Values():
                return self._values(node, ctes, outer)
            case _:
                raise only_spark(f"{node.sql(dialect='spark')[:80]} as a query")

    def _translator(self, ctes: Mapping[str, Columns]) -> Translator:
        return Translator(lambda node, scope: self.query(node, ctes, scope), self._strict)

    def _with(
        self, node: exp.Expression, ctes: Mapping[str, Columns], outer: Scope | None
    ) -> Mapping[str, Columns]:
        within = node.args.get("with_")
        if within is None:
            return ctes
        if within.args.get("recursive"):
            raise only_spark("WITH RECURSIVE")
        known = dict(ctes)
        for cte in within.expressions:
            columns = self.query(cte.this, known, outer)
            known[cte.alias.lower()] = _renamed(columns, cte.args.get("alias"))
        return known

    def _set(
        self, node: exp.SetOperation, ctes: Mapping[str, Columns], outer: Scope | None
    ) -> Columns:
        _only(node, _SET)
        sides = [self.query(side, ctes, outer) for side in (node.this, node.expression)]
        if len(sides[0]) != len(sides[1]):
            raise only_spark("a UNION of different numbers of columns")
        kinds = [joined(one[1], other[1]) for one, other in zip(*sides, strict=True)]
        for place, side in zip(("this", "expression"), sides, strict=True):
            if [kind for _, kind in side] != kinds:
                node.set(place, _converted(node.args[place], side, kinds))
        columns = [(name, kind) for (name, _), kind in zip(sides[0], kinds, strict=True)]
        self._tail(node, Scope([Source("", columns, columns)], {}, outer), ctes)
        return columns

    def _values(
        self, node: exp.Values, ctes: Mapping[str, Columns], outer: Scope | None
    ) -> Columns:
        translator, scope = self._translator(ctes), Scope(outer=outer)
        rows = [
            list(row.expressions) if isinstance(row, exp.Tuple) else [row]
            for row in node.expressions
        ]
        values = [[translator.value(_bare(one), scope) for one in row] for row in rows]
        kinds: list[Kind] = [None] * len(values[0])
        for row in values:
            if len(row) != len(kinds):
                raise only_spark("VALUES of different lengths")
            kinds = [joined(kind, one.kind) for kind, one in zip(kinds, row, strict=True)]
        made = [
            exp.Tuple(
                expressions=[
                    one.node if kind is None else plain_cast(one.node, kind)
                    for one, kind in zip(row, kinds, strict=True)
                ]
            )
            for row in values
        ]
        node.set("expressions", made)
        names = [f"col{place}" for place in range(1, len(kinds) + 1)]
        alias = node.args.get("alias")
        return _renamed(list(zip(names, kinds, strict=True)), alias)

    # SELECT.

    def _select(
        self, node: exp.Select, ctes: Mapping[str, Columns], outer: Scope | None
    ) -> Columns:
        _only(node, _SELECT)
        if node.args.get("kind"):
            raise only_spark(f"SELECT {node.args['kind']}")
        node.set("hint", None)
        translator = self._translator(ctes)
        scope = Scope(outer=outer)
        if node.args.get("from_") is not None:
            scope.sources.append(self._source(node.args["from_"].this, ctes, outer))
        for join in node.args.get("joins") or ():
            self._join(join, scope, translator, ctes)
        self._laterals(node, scope, translator)
        columns = self._projections(node, scope, translator)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise only_spark("DISTINCT ON")
        for part in ("where", "having", "qualify"):
            if node.args.get(part) is not None:
                # HAVING too takes a name of SELECT before a column.
                within = scope.ordering() if part == "having" else scope
                held = translator.condition(node.args[part].this, within)
                node.args[part].set("this", held)
        self._group(node, scope, translator)
        for window in node.args.get("windows") or ():
            translator.window(window, scope)
        self._tail(node, scope, ctes)
        return columns

    def _tail(self, node: exp.Expression, scope: Scope, ctes: Mapping[str, Columns]) -> None:
        self._translator(ctes).order(node.args.get("order"), scope.ordering())
        for part in ("limit", "offset"):
            limit = node.args.get(part)
            if limit is not None and not isinstance(limit.expression, exp.Literal):
                raise only_spark(f"{part.upper()} that is not a constant")

    def _projections(self, node: exp.Select, scope: Scope, translator: Translator) -> Columns:
        columns: Columns = []
        made: list[exp.Expression] = []
        for one in node.expressions:
            starred = _starred(one, scope)
            if starred is not None:
                columns += [(name, kind) for _, name, kind in starred]
                made += _spelled(one, starred)
                continue
            name = _name(one)
            inner = one.this if isinstance(one, exp.Alias) else one
            value = _exploded(inner, scope, translator) or translator.value(inner, scope)
            alias = one.args["alias"] if isinstance(one, exp.Alias) else exp.to_identifier(name)
            if isinstance(one, exp.Column) and isinstance(value.node, exp.Column):
                made.append(value.node)
            else:
                made.append(exp.Alias(this=value.node, alias=alias))
            columns.append((name, value.kind))
            if isinstance(one, exp.Alias):
                scope.aliases[name.lower()] = value.kind
        node.set("expressions", made)
        return columns

    def _group(self, node: exp.Select, scope: Scope, translator: Translator) -> None:
        group = node.args.get("group")
        if group is None:
            return
        _only(group, frozenset({"expressions", "all", "rollup", "cube", "grouping_sets"}))
        group.set(
            "expressions",
            [
                one
                if isinstance(one, exp.Literal | exp.GroupingSets | exp.Rollup | exp.Cube)
                else translator.value(one, scope).node
                for one in group.expressions
            ],
        )
        for kind, form in (("rollup", exp.Rollup), ("cube", exp.Cube)):
            if any(not one.expressions for one in group.args.get(kind) or ()):
                # WITH ROLLUP is of everything before it.
                group.set(kind, [form(expressions=group.expressions)])
                group.set("expressions", [])
        sets = [
            one
            for kind in ("rollup", "cube", "grouping_sets")
            for one in group.args.get(kind) or ()
        ]
        sets += [
            one
            for one in group.expressions
            if isinstance(one, exp.GroupingSets | exp.Rollup | exp.Cube)
        ]
        for one in sets:
            if any(not isinstance(part, _GROUPED) for part in one.walk()):
                raise only_spark("ROLLUP, CUBE or GROUPING SETS of anything but columns")

    # FROM.

    def _source(
        self, node: exp.Expression, ctes: Mapping[str, Columns], outer: Scope | None
    ) -> Source:
        alias = node.args.get("alias")
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                _only(node, _TABLE)
                known = self._tables.get(id(node))
                columns = known if known is not None else ctes.get(node.name.lower(), [])
                columns = _renamed(columns, alias)
            case exp.Subquery():
                columns = _renamed(self.query(node, ctes, outer), alias)
            case exp.Values():
                columns = self.query(node, ctes, outer)
                if alias is None or not alias.args.get("columns"):
                    # DuckDB would name the columns otherwise.
                    name = alias.this if alias is not None else exp.to_identifier("lw_values")
                    names = [exp.to_identifier(one) for one, _ in columns]
                    node.set("alias", exp.TableAlias(this=name, columns=names))
            case _:
                raise only_spark(f"{node.sql(dialect='spark')[:80]} as a table")
        return Source(node.alias_or_name, columns, columns)

    def _join(
        self,
        join: exp.Join,
        scope: Scope,
        translator: Translator,
        ctes: Mapping[str, Columns],
    ) -> None:
        _only(join, _JOIN)
        method = str(join.args.get("method") or "").upper()
        kind = str(join.args.get("kind") or "").upper()
        if method not in ("", "NATURAL") or kind not in (
            "",
            "INNER",
            "CROSS",
            "OUTER",
            "SEMI",
            "ANTI",
        ):
            raise only_spark(f"a {method or kind} JOIN")
        source = self._source(join.this, ctes, scope.outer)
        both = Scope([*scope.sources, source], scope.aliases, scope.outer)
        if join.args.get("on") is not None:
            join.set("on", translator.condition(join.args["on"], both))
        left = {name.lower(): one for s in scope.sources for name, one in s.columns}
        shared = [str(name.name).lower() for name in join.args.get("using") or ()]
        if method == "NATURAL":
            shared = [name.lower() for name, _ in source.columns if name.lower() in left]
        right = {name.lower(): one for name, one in source.columns}
        if any(left.get(name) != right.get(name) for name in shared):
            raise only_spark("USING of columns of different types")
        if shared and str(join.side).upper() in ("RIGHT", "FULL"):
            raise only_spark(f"a {join.side} JOIN with USING (write ON)")
        if kind in ("SEMI", "ANTI"):
            return
        shown = [column for column in source.columns if column[0].lower() not in shared]
        scope.sources.append(Source(source.name, source.columns, shown))

    def _laterals(self, node: exp.Select, scope: Scope, translator: Translator) -> None:
        joins = list(node.args.get("joins") or ())
        for lateral in node.args.get("laterals") or ():
            inner = lateral.this
            name = str(inner.this).lower() if isinstance(inner, exp.Anonymous) else ""
            if name not in _GENERATORS or len(inner.expressions) != 1:
                raise only_spark(f"LATERAL {inner.sql(dialect='spark')}")
            value = translator.value(inner.expressions[0], scope)
            rows = _rows(name, value)
            alias = lateral.args.get("alias")
            given = [c.name for c in (alias.args.get("columns") or ())] if alias else []
            names = given or [default for default, _ in rows]
            if len(names) != len(rows):
                raise only_spark(f"{len(names)} names for the {len(rows)} columns of {name}")
            made = exp.Select(
                expressions=[
                    exp.alias_(one.node, to, quoted=True)
                    for to, (_, one) in zip(names, rows, strict=True)
                ]
            )
            table = str(alias.this.name) if alias and alias.this else f"lw_rows{len(joins)}"
            below = exp.Lateral(
                this=exp.Subquery(this=made),
                alias=exp.TableAlias(this=exp.to_identifier(table, quoted=True)),
            )
            outer = lateral.args.get("outer") or name.endswith("_outer")
            joins.append(exp.Join(this=below, side="LEFT" if outer else None, on=exp.true()))
            columns = [(to, one.kind) for to, (_, one) in zip(names, rows, strict=True)]
            scope.sources.append(Source(table, columns, columns))
        node.set("laterals", None)
        node.set("joins", joins)


def _rows(name: str, value: Value) -> list[tuple[str, Value]]:
    """Return the columns that a function makes rows of."""
    node = value.node
    made: list[tuple[str, Value]] = []
    if name.startswith("pos"):
        # Counted from 0, and as many as there are.
        places = call(
            "range", call("len" if isinstance(value.kind, List) else "cardinality", node.copy())
        )
        made.append(("pos", Value(plain_cast(call("unnest", places), INT), INT)))
    match value.kind:
        case List(kind):
            made.append(("col", Value(call("unnest", node), kind)))
        case Map(kind, key):
            made.append(("key", Value(call("unnest", call("map_keys", node)), key)))
            made.append(("value", Value(call("unnest", call("map_values", node.copy())), kind)))
        case _:
            raise only_spark(f"{name} of {value.kind}")
    return made


def _exploded(node: exp.Expression, scope: Scope, translator: Translator) -> Value | None:
    """Translate explode among the columns of SELECT."""
    if not isinstance(node, exp.Anonymous) or str(node.this).lower() != "explode":
        return None
    rows = _rows("explode", translator.value(node.expressions[0], scope))
    select = node.find_ancestor(exp.Select)
    assert select is not None
    calls = [c for c in select.find_all(exp.Anonymous) if str(c.this).lower() in _GENERATORS]
    if len(rows) != 1 or len(calls) > 1:
        raise only_spark("explode of a map, or twice, in SELECT (write LATERAL VIEW)")
    return rows[0][1]


def _starred(node: exp.Expression, scope: Scope) -> list[tuple[str, str, Kind]] | None:
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        return None
    if star.args.get("replace") or star.args.get("rename"):
        raise only_spark("SELECT * with other names or values")
    left_out = {one.name.lower() for one in star.args.get("except_") or ()}
    table = node.table.lower() if isinstance(node, exp.Column) else None
    return [
        (source.name, *column)
        for source in scope.sources
        if table is None or source.name.lower() == table
        for column in (source.shown if table is None else source.columns)
        if column[0].lower() not in left_out
    ]


def _spelled(node: exp.Expression, starred: list[tuple[str, str, Kind]]) -> list[exp.Expression]:
    """Return a star as it is, or without those that are left out: they may not have been read."""
    star = node.this if isinstance(node, exp.Column) else node
    if not star.args.get("except_"):
        return [node]
    return [
        exp.column(
            exp.to_identifier(name, quoted=True),
            table=exp.to_identifier(table, quoted=True) if table else None,
        )
        for table, name, _ in starred
    ]


def _name(node: exp.Expression) -> str:
    """Return the name of a column of SELECT: its own, or its text, as in Spark."""
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column | exp.Dot):
        return str(node.name)
    if isinstance(node, exp.Literal):
        return str(node.this) or NAMELESS
    written = node.sql(dialect=_Unread, normalize_functions=False)
    return "count(1)" if written.lower() == "count(*)" else written


def _renamed(columns: Columns, alias: exp.Expression | None) -> Columns:
    names = [one.name for one in (alias.args.get("columns") or ())] if alias is not None else []
    if not names:
        return columns
    if len(names) != len(columns):
        raise only_spark(f"{len(names)} names for {len(columns)} columns")
    return [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)]


def _converted(query: exp.Expression, columns: Columns, kinds: list[Kind]) -> exp.Expression:
    """Return a query with its columns in other types."""
    names = [name for name, _ in columns]
    if len({name.lower() for name in names}) < len(names):
        raise only_spark("a UNION of other types with columns of the same name")
    inner = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query.copy())
    inner.set("alias", exp.TableAlias(this=exp.to_identifier("lw_side")))
    parts = [
        exp.alias_(
            exp.column(exp.to_identifier(name, quoted=True))
            if kind is None
            else plain_cast(exp.column(exp.to_identifier(name, quoted=True)), kind),
            name,
            quoted=True,
        )
        for name, kind in zip(names, kinds, strict=True)
    ]
    return exp.Select(expressions=parts, from_=exp.From(this=inner))


def _bare(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Alias) else node


def _only(node: exp.Expression, known: frozenset[str]) -> None:
    """Refuse parts of a query that are not known."""
    for name, part in node.args.items():
        if name not in known and part not in (None, False, [], ()):
            shown = part[0] if isinstance(part, list) else part
            words = shown.sql(dialect="spark") if isinstance(shown, exp.Expression) else name
            raise only_spark(f"{words.strip()[:80] or name}")
