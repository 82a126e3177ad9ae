"""Parts that many statements share: constants, partition specs, properties, inner queries."""

from collections.abc import Sequence

from sqlglot import TokenType, exp

from lakewright.index.layout import PARTITION_RULES
from lakewright.interfaces.sql.rule_texts import rules_text
from lakewright.interfaces.sql.statements import PartitionSpec
from lakewright.interfaces.sql.text import Piece, refused
from lakewright.model.errors import LakewrightError
from lakewright.model.expression.nodes import Expression, Literal
from lakewright.model.expression.parse import read_tree
from lakewright.model.expression.types import Value

_QUERY_WORDS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE"})


def condition(tree: exp.Expression | None) -> Expression | None:
    """Read the condition of a WHERE clause."""
    if isinstance(tree, exp.Where):
        tree = tree.this
    return None if tree is None else expression(tree)


def expression(tree: exp.Expression) -> Expression:
    """Read an expression over the columns of one row; a subquery is refused with the way out."""
    if tree.find(exp.Query) is not None:
        raise refused(
            f"a subquery cannot stand here: {tree.sql(dialect='spark')}.",
            "Use MERGE INTO with the subquery as its source.",
        )
    return read_tree(tree)


def constant(tree: exp.Expression) -> Value:
    """Read a constant; a bare word is a text, as in Hudi's CALL and TBLPROPERTIES."""
    if isinstance(tree, exp.Column) and len(tree.parts) == 1:
        return str(tree.this.this)
    if isinstance(tree, exp.Var | exp.RawString):
        return str(tree.this)
    read: Expression | None
    try:
        read = read_tree(tree)
    except LakewrightError:
        read = None
    if not isinstance(read, Literal):
        raise refused(
            f"{tree.sql(dialect='spark')} is not a constant.", "Write a number, a text or a date."
        )
    return read.value


def partition_spec(tree: exp.Expression | None) -> PartitionSpec | None:
    """Read ``PARTITION (dt = '2026-11-01', hour)``; a column without a value is left open."""
    if not isinstance(tree, exp.Partition):
        return None
    spec: dict[str, Value] = {}
    for part in tree.expressions:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column):
            spec[str(part.this.name)] = constant(part.expression)
        elif isinstance(part, exp.Column | exp.Identifier):
            spec[str(part.name)] = None
        else:
            raise refused(
                f"{part.sql(dialect='spark')} does not name a partition.",
                "Write PARTITION (column = value, …).",
            )
    return spec


def properties(entries: Sequence[exp.Expression]) -> dict[str, str]:
    """Read ``('key' = 'value', …)``; keys keep their case."""
    found = {}
    for entry in entries:
        if isinstance(entry, exp.Property):
            found[_key(entry.this)] = text_of(constant(entry.args["value"]))
        elif isinstance(entry, exp.EQ):
            found[_key(entry.this)] = text_of(constant(entry.expression))
    if PARTITION_RULES.key in found:
        found[PARTITION_RULES.key] = rules_text(found[PARTITION_RULES.key])
    return found


def _key(tree: exp.Expression | str) -> str:
    if isinstance(tree, str):
        return tree
    if isinstance(tree, exp.Dot):
        return f"{_key(tree.this)}.{_key(tree.expression)}"
    if isinstance(tree, exp.Column):
        return ".".join(str(part.this) for part in tree.parts)
    return str(tree.this)


def text_of(value: Value) -> str:
    """Write a constant as the text of a property."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def query_text(statement: Piece, start: int) -> str:
    """Return the query within a statement: from the first word that begins one, at any depth 0.

    ``start`` is the token to look from. A WITH before the statement's verb belongs to the query.
    """
    depth = 0
    for place in range(start, len(statement.tokens)):
        token = statement.tokens[place]
        if token.token_type is TokenType.L_PAREN:
            if depth == 0 and statement.word(place + 1) in _QUERY_WORDS | {"("}:
                return statement.since(place)
            depth += 1
        elif token.token_type is TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and statement.word(place) in _QUERY_WORDS:
            return statement.since(place)
    return ""
