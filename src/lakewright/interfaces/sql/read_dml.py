"""INSERT, UPDATE, DELETE and MERGE."""

from collections.abc import Sequence

from sqlglot import exp

from lakewright.actions.rowlevel.clauses import Act, Clause
from lakewright.interfaces.sql.names import alias_of, parts_of, table_name
from lakewright.interfaces.sql.read_parts import condition, expression, partition_spec, query_text
from lakewright.interfaces.sql.statements import Delete, Insert, Merge, Update
from lakewright.interfaces.sql.text import Piece, refused
from lakewright.model.expression.nodes import Expression


def read_insert(statement: Piece) -> Insert:
    """Read INSERT INTO or OVERWRITE [TABLE] … [PARTITION (…)] [(columns)] query."""
    tree = statement.parse()
    if not isinstance(tree, exp.Insert):
        raise refused("this INSERT cannot be read.", "Write INSERT INTO t SELECT ….")
    columns = None
    if isinstance(tree.this, exp.Schema):
        columns = tuple(str(c.name) for c in tree.this.expressions)
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if not isinstance(table, exp.Table):
        raise refused("INSERT writes into a table of the lake.", "Name it: INSERT INTO db.t ….")
    verb = statement.words(len(statement.tokens)).index("INSERT")
    before = statement.text[: statement.tokens[verb].start]
    query = query_text(statement, _behind_name(statement, verb, table))
    return Insert(
        name=table_name(table),
        query=before + query,
        columns=columns,
        partition=partition_spec(table.args.get("partition") or tree.args.get("partition")),
        overwrite=bool(tree.args.get("overwrite")),
        by_name=bool(tree.args.get("by_name")),
    )


def _behind_name(statement: Piece, verb: int, table: exp.Table) -> int:
    """Return the token after the table's name, so that ``TABLE`` in front of it is no query."""
    end = table.parts[-1].meta.get("end", 0)
    behind = (n for n, token in enumerate(statement.tokens) if token.start > end)
    return max(next(behind, verb), verb)


def read_update(statement: Piece) -> Update:
    """Read UPDATE t SET … [WHERE …]."""
    tree = statement.parse()
    if not isinstance(tree, exp.Update) or tree.args.get("from_") is not None:
        raise refused(
            "this UPDATE cannot be read.",
            "Write UPDATE t SET column = value [WHERE …]; with another table, use MERGE INTO.",
        )
    return Update(
        table_name(tree.this),
        _assignments(tree.expressions),
        condition(tree.args.get("where")),
        alias_of(tree.this),
    )


def _assignments(entries: Sequence[exp.Expression]) -> dict[str, Expression]:
    values: dict[str, Expression] = {}
    for entry in entries:
        if not isinstance(entry, exp.EQ) or not isinstance(entry.this, exp.Column):
            raise refused(
                f"{entry.sql(dialect='spark')} sets no column.", "Write SET column = value, …."
            )
        name = ".".join(str(part.this) for part in entry.this.parts)
        if name in values:
            raise refused(f"column {name} is set twice.", "Set it once.")
        values[name] = expression(entry.expression)
    return values


def read_delete(statement: Piece) -> Delete:
    """Read DELETE FROM t [WHERE …]."""
    tree = statement.parse()
    if not isinstance(tree, exp.Delete) or tree.args.get("using"):
        raise refused("this DELETE cannot be read.", "Write DELETE FROM t [WHERE …].")
    return Delete(table_name(tree.this), condition(tree.args.get("where")), alias_of(tree.this))


def read_merge(statement: Piece) -> Merge:
    """Read MERGE INTO t USING source ON … WHEN …."""
    tree = statement.parse()
    whens = tree.args.get("whens")
    if not isinstance(tree, exp.Merge) or whens is None:
        raise refused("this MERGE cannot be read.", "Write MERGE INTO t USING s ON … WHEN ….")
    clauses: dict[str, list[Clause]] = {}
    for when in whens.expressions:
        clauses.setdefault(_kind(when), []).append(_clause(when))
    return Merge(
        name=table_name(tree.this),
        source=_source_text(statement, tree.args["using"]),
        on=expression(tree.args["on"]),
        clauses={kind: tuple(found) for kind, found in clauses.items()},
        alias=alias_of(tree.this),
        source_names=_source_names(tree.args["using"]),
    )


def _source_names(using: exp.Expression) -> tuple[tuple[str, ...], ...]:
    alias = alias_of(using)
    if alias is not None:
        return ((alias,),)
    if isinstance(using, exp.Table) and isinstance(using.this, exp.Identifier):
        parts = parts_of(using)
        return (parts, parts[-1:])
    return ()


def _source_text(statement: Piece, using: exp.Expression) -> str:
    """Return the source as a query, in the words of the statement."""
    words = statement.words(len(statement.tokens))
    start = words.index("USING") + 1
    if isinstance(using, exp.Subquery):
        depth = 0
        for place in range(start, len(statement.tokens)):
            depth += statement.nesting(place)
            if depth == 0:
                return statement.text[
                    statement.tokens[start].end + 1 : statement.tokens[place].start
                ]
    on = _matching_on(statement, words, start)
    return "SELECT * FROM " + statement.text[statement.tokens[start].start : on]


def _matching_on(statement: Piece, words: Sequence[str], start: int) -> int:
    depth = 0
    for place in range(start, len(words)):
        depth += statement.nesting(place)
        if depth == 0 and words[place] == "ON":
            return int(statement.tokens[place].start)
    raise refused("MERGE has no ON.", "Write MERGE INTO t USING s ON t.id = s.id ….")


def _kind(when: exp.Expression) -> str:
    if when.args.get("matched"):
        return "when_matched"
    return "when_not_matched_by_source" if when.args.get("source") else "when_not_matched"


def _clause(when: exp.Expression) -> Clause:
    where = condition(when.args.get("condition"))
    then = when.args["then"]
    if isinstance(then, exp.Update):
        entries = then.expressions
        star = len(entries) == 1 and isinstance(entries[0], exp.Star)
        return Clause(Act.UPDATE, where, None if star else _assignments(entries))
    if isinstance(then, exp.Insert):
        if isinstance(then.this, exp.Star):
            return Clause(Act.INSERT, where, None)
        return Clause(Act.INSERT, where, _inserted(then))
    if str(then.this).upper() == "DELETE":
        return Clause(Act.DELETE, where)
    raise refused(
        f"{then.sql(dialect='spark')} cannot follow THEN.",
        "Allowed: UPDATE SET …, DELETE, INSERT … VALUES ….",
    )


def _inserted(then: exp.Insert) -> dict[str, Expression]:
    columns = then.this.expressions if isinstance(then.this, exp.Tuple | exp.Schema) else []
    values = then.expression.expressions if then.expression is not None else []
    if not columns or len(columns) != len(values):
        raise refused(
            f"INSERT names {len(columns)} columns and gives {len(values)} values.",
            "Write INSERT (a, b) VALUES (s.a, s.b), or INSERT *.",
        )
    names = [str(c.name) for c in columns]
    return {n: expression(v) for n, v in zip(names, values, strict=True)}
