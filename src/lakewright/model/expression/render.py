"""Expressions to SQL text; ``parse_expression`` reads it back to the same tree."""

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite, isnan
from typing import assert_never

from lakewright.model.errors import InvalidExpression, InvalidOption
from lakewright.model.expression import nodes
from lakewright.model.expression.bound import BoundExpression, BoundNode
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.types import Value, sql_type
from lakewright.model.expression.unbind import unbind
from lakewright.model.expression.zones import absolute, reading_in

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that the parser does not take for a name.
_RESERVED = frozenset(
    word
    for line in (
        "all alter analyze and any as begin between cache call case cast comment commit",
        "connect_by_root copy create cross current_date current_timestamp current_user declare",
        "delete desc describe distinct drop else end except execute explain false fetch for from",
        "glob grant having if ilike in inner insert int intersect interval into is join kill",
        "lateral left like load lower merge minus not notnull null on optimize or order outer",
        "partitioned_by pivot pragma prepare qualify refresh regexp rename returning revoke right",
        "rlike rollback select serdeproperties session_user set show table tablesample then true",
        "truncate uncache union unpivot update use using vacuum values when where with xor",
    )
    for word in line.split()
)
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def to_sql(expression: Expression | BoundExpression, dialect: str = "spark") -> str:
    """Write an expression, bound or not, as it would stand in a WHERE clause."""
    if dialect != "spark":
        raise InvalidOption(
            f"expressions are written as SQL of Spark, not of {dialect!r}.",
            next_step="Use 'spark'.",
        )
    return _sql(unbind(expression) if isinstance(expression, BoundNode) else expression)


def quoted_name(path: tuple[str, ...]) -> str:
    """Write the path of a column, with backticks where a name needs them."""
    return ".".join(
        name
        if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED
        else f"`{name.replace('`', '``')}`"
        for name in path
    )


def sql_literal(value: Value) -> str:
    """Write a constant so that it is read back with its type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return _float(value)
        case Decimal():
            text = format(value, "f")
            return text if "." in text else f"{text}BD"
        case str():
            return f"'{value.translate(_ESCAPES)}'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            return _moment(value)
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case _:
            assert_never(value)


def _float(value: float) -> str:
    if isfinite(value):
        text = repr(value)
        return text if "e" in text else f"{text}E0"
    name = "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{name}' AS DOUBLE)"


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    try:
        moment = absolute(value).astimezone(UTC)
    except OverflowError as cause:
        raise InvalidExpression(
            f"{value.isoformat()} is beyond the calendar in UTC.",
            next_step="Give a moment between the years 1 and 9999, in UTC as well.",
        ) from cause
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"


def _sql(node: Expression) -> str:
    match node:
        case nodes.Literal(value):
            return sql_literal(value)
        case nodes.Reference(path):
            return quoted_name(path)
        case nodes.And():
            return " AND ".join(_link(part) for part in nodes.chain(node, nodes.And))
        case nodes.Or():
            return " OR ".join(_link(part) for part in nodes.chain(node, nodes.Or))
        case nodes.Comparison(op, left, right):
            return f"{_operand(left)} {op.value} {_operand(right)}"
        case nodes.Arithmetic(op, left, right):
            return f"{_operand(left)} {op.value} {_operand(right)}"
        case nodes.Not(child):
            return _negated(child)
        case nodes.Negate(child):
            return f"-({_sql(child)})"
        case nodes.TextMatch(test, left, right):
            return f"{test.value}({_sql(left)}, {_sql(right)})"
        case nodes.Cast(child, to, safe):
            return f"{'TRY_CAST' if safe else 'CAST'}({_sql(child)} AS {sql_type(to)})"
        case nodes.Function(name, arguments):
            return f"{name}({', '.join(_sql(a) for a in arguments)})"
        case nodes.InZone(child, zone):
            with reading_in(zone):
                return _sql(child)
        case nodes.Case(branches, otherwise):
            whens = " ".join(f"WHEN {_sql(test)} THEN {_sql(value)}" for test, value in branches)
            return f"CASE {whens} ELSE {_sql(otherwise)} END"
        case _:
            return _test(node, "")


def _negated(child: Expression) -> str:
    if isinstance(child, (nodes.IsNull, nodes.In, nodes.Between, nodes.Like)):
        return _test(child, "NOT ")
    return f"NOT ({_sql(child)})"


def _test(node: Expression, negation: str) -> str:
    match node:
        case nodes.IsNull(child):
            return f"{_operand(child)} IS {negation}NULL"
        case nodes.In(_, ()):
            # SQL has no empty list; nothing is in it, and everything is not.
            return "TRUE" if negation else "FALSE"
        case nodes.In(child, options):
            return f"{_operand(child)} {negation}IN ({', '.join(_sql(o) for o in options)})"
        case nodes.Between(child, low, high):
            bounds = f"{_operand(low)} AND {_operand(high)}"
            return f"{_operand(child)} {negation}BETWEEN {bounds}"
        case nodes.Like(child, pattern, escape):
            written = f"{_operand(child)} {negation}LIKE {sql_literal(pattern)}"
            return written if escape == "\\" else f"{written} ESCAPE {sql_literal(escape)}"
        case _:
            raise InvalidExpression(
                f"{node!r} cannot be written as SQL.",
                next_step="Please report it: this is a fault of Lakewright.",
            )


_ATOMS = (nodes.Literal, nodes.Reference, nodes.Cast, nodes.Function, nodes.TextMatch, nodes.Case)


def _operand(node: Expression) -> str:
    """Put parentheses around all but the plainest."""
    return _sql(node) if isinstance(node, _ATOMS) else f"({_sql(node)})"


def _link(node: Expression) -> str:
    """Every condition but AND and OR binds closer than they do."""
    return f"({_sql(node)})" if isinstance(node, (nodes.And, nodes.Or)) else _sql(node)
