"""Resolving an expression against a schema, once, before any file is opened."""

from datetime import datetime

from lakewright.model.errors import InvalidExpression, UnknownColumn
from lakewright.model.expression import nodes
from lakewright.model.expression.bind_functions import (
    bind_arithmetic,
    bind_call,
    bind_cast,
    bind_negate,
    require_text,
    unified,
)
from lakewright.model.expression.bound import (
    BoundAnd,
    BoundCase,
    BoundComparison,
    BoundExpression,
    BoundIn,
    BoundIsNull,
    BoundLike,
    BoundLiteral,
    BoundNot,
    BoundOr,
    BoundReference,
    BoundTextMatch,
    joined,
)
from lakewright.model.expression.coerce import describe, is_null, sides_of_one_type
from lakewright.model.expression.nodes import Comparator, Expression, TextTest
from lakewright.model.expression.patterns import Wildcard, tokens
from lakewright.model.expression.types import Value, type_of
from lakewright.model.expression.zones import absolute, reading_in
from lakewright.model.schema import BOOLEAN, STRING, Field, Struct

__all__ = ["BoundExpression", "bind"]


def bind(expression: Expression, schema: Struct, *, predicate: bool = True) -> BoundExpression:
    """Resolve names and types; with ``predicate`` the whole must be a condition.

    Names are taken as the schema spells them, or in any case where only one column fits.
    Hudi's own columns can be named when the schema holds them.
    """
    if not predicate:
        return _bind(expression, schema)
    return _condition(expression, schema, "a filter")


def _bind(node: Expression, schema: Struct) -> BoundExpression:
    match node:
        case nodes.Literal(value):
            return _literal(value)
        case nodes.Reference(path):
            return _reference(path, schema)
        case nodes.Comparison(op, left, right):
            return _comparison(op, _bind(left, schema), _bind(right, schema))
        case nodes.And():
            links = nodes.chain(node, nodes.And)
            return joined([_condition(link, schema, "AND") for link in links], BoundAnd)
        case nodes.Or():
            links = nodes.chain(node, nodes.Or)
            return joined([_condition(link, schema, "OR") for link in links], BoundOr)
        case nodes.Not(child):
            return BoundNot(_condition(child, schema, "NOT"))
        case nodes.In(child, options):
            return _in(_bind(child, schema), [_bind(o, schema) for o in options])
        case nodes.Between(child, low, high):
            tested = _bind(child, schema)
            return BoundAnd(
                _comparison(Comparator.GE, tested, _bind(low, schema)),
                _comparison(Comparator.LE, tested, _bind(high, schema)),
            )
        case nodes.Like(child, pattern, escape):
            return _like(require_text(_bind(child, schema), "LIKE"), pattern, escape)
        case nodes.TextMatch(test, left, right):
            text, piece = _bind(left, schema), _bind(right, schema)
            return BoundTextMatch(
                test, require_text(text, test.value), require_text(piece, test.value)
            )
        case nodes.IsNull(child):
            return BoundIsNull(_bind(child, schema))
        case nodes.Cast(child, to, safe):
            return bind_cast(_bind(child, schema), to, safe=safe)
        case nodes.Arithmetic(op, left, right):
            return bind_arithmetic(op, _bind(left, schema), _bind(right, schema))
        case nodes.Negate(child):
            return bind_negate(_bind(child, schema))
        case nodes.Function(name, arguments):
            return bind_call(name, tuple(_bind(a, schema) for a in arguments))
        case nodes.InZone(child, zone):
            with reading_in(zone):
                return _bind(child, schema)
        case nodes.Case(branches, otherwise):
            return _case(branches, otherwise, schema)
        case _:
            raise InvalidExpression(
                f"{node!r} is not an expression.",
                next_step="Make one with lakewright.col() and lit(), or write SQL text.",
            )


def _condition(node: Expression, schema: Struct, place: str) -> BoundExpression:
    bound = _bind(node, schema)
    if is_null(bound):
        return BoundLiteral(None, BOOLEAN)
    if bound.type != BOOLEAN:
        raise InvalidExpression(
            f"{place} takes a condition, not {describe(bound)}.",
            next_step="Compare it with something.",
            type=str(bound.type),
        )
    return bound


def _literal(value: Value) -> BoundLiteral:
    if isinstance(value, datetime):
        value = absolute(value)
    # NULL takes the type of what it meets; alone it is a condition.
    return BoundLiteral(value, type_of(value) or BOOLEAN)


def _reference(path: tuple[str, ...], schema: Struct) -> BoundReference:
    if not path:
        raise InvalidExpression(
            "a column name is missing.", next_step="Write name, or struct.member."
        )
    whole = ".".join(path)
    if len(path) > 1 and _find(path[0], schema) is None and whole in schema:
        path = (whole,)  # a top-level column whose own name holds dots
    found: list[str] = []
    within, nullable = schema, False
    for position, name in enumerate(path):
        field = _find(name, within)
        if field is None:
            raise _unknown(path, position, within)
        found.append(field.name)
        nullable = nullable or field.nullable
        if position == len(path) - 1:
            return BoundReference(tuple(found), field.type, nullable)
        if not isinstance(field.type, Struct):
            raise InvalidExpression(
                f"{'.'.join(found)} is a {field.type}, so it has no member {path[position + 1]!r}.",
                next_step="Only members of structs can be named.",
                column=whole,
            )
        within = field.type
    raise AssertionError("a path has at least one name")


def _find(name: str, within: Struct) -> Field | None:
    exact = next((f for f in within if f.name == name), None)
    if exact is not None:
        return exact
    folded = name.lower()
    alike = [f for f in within if f.name.lower() == folded]
    if len(alike) > 1:
        raise UnknownColumn(
            f"no column {name!r}, and more than one that differs only in case.",
            next_step=f"Write one of: {', '.join(f.name for f in alike)}.",
            column=name,
            known=[f.name for f in alike],
        )
    return alike[0] if alike else None


def _unknown(path: tuple[str, ...], position: int, within: Struct) -> UnknownColumn:
    where = f" in {'.'.join(path[:position])}" if position else ""
    return UnknownColumn(
        f"no column {path[position]!r}{where}.",
        next_step=f"Known: {', '.join(within.names)}.",
        column=".".join(path),
        known=list(within.names),
    )


def _comparison(op: Comparator, left: BoundExpression, right: BoundExpression) -> BoundComparison:
    return BoundComparison(op, *sides_of_one_type(left, right))


def _in(child: BoundExpression, options: list[BoundExpression]) -> BoundExpression:
    """Group the constants that meet the child in the same type; each group is one set."""
    if not options:
        return BoundLiteral(False, BOOLEAN)
    sets: dict[BoundExpression, list[Value]] = {}
    others: list[BoundExpression] = []
    or_null = False
    for option in options:
        if is_null(option):
            or_null = True
            continue
        left, right = sides_of_one_type(child, option)
        if isinstance(right, BoundLiteral):
            sets.setdefault(left, []).append(right.value)
        else:
            others.append(BoundComparison(Comparator.EQ, left, right))
    if or_null and not sets:
        sets[child] = []
    parts: list[BoundExpression] = [
        BoundIn(tested, _distinct(values), or_null) for tested, values in sets.items()
    ]
    return joined(parts + others, BoundOr)


def _distinct(values: list[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


def _like(child: BoundExpression, pattern: str, escape: str) -> BoundExpression:
    """Write the usual patterns (abc, abc%, %abc, %abc%) as the simpler tests they are."""
    _check_pattern(pattern, escape)

    def test(kind: TextTest, text: str) -> BoundExpression:
        return BoundTextMatch(kind, child, BoundLiteral(text, STRING))

    match tokens(pattern, escape):
        case ():
            return BoundComparison(Comparator.EQ, child, BoundLiteral("", STRING))
        case (str() as text,):
            return BoundComparison(Comparator.EQ, child, BoundLiteral(text, STRING))
        case (str() as text, Wildcard.ANY):
            return test(TextTest.PREFIX, text)
        case (Wildcard.ANY, str() as text):
            return test(TextTest.SUFFIX, text)
        case (Wildcard.ANY, str() as text, Wildcard.ANY):
            return test(TextTest.INFIX, text)
        case _:
            return BoundLike(child, pattern, escape)


def _check_pattern(pattern: str, escape: str) -> None:
    """Refuse what Spark refuses: an escape that ends the pattern or escapes a plain character."""
    at = 0
    while (at := pattern.find(escape, at)) >= 0:
        if pattern[at + 1 : at + 2] not in ("%", "_", escape):
            raise InvalidExpression(
                f"the pattern {pattern!r} escapes something other than %, _ or {escape}.",
                next_step=f"Write {escape}{escape} for the character {escape} itself.",
                pattern=pattern,
            )
        at += 2


def _case(
    branches: tuple[tuple[Expression, Expression], ...], otherwise: Expression, schema: Struct
) -> BoundExpression:
    tests = [_condition(test, schema, "CASE WHEN") for test, _ in branches]
    results = [*(value for _, value in branches), otherwise]
    values = unified([_bind(value, schema) for value in results], "CASE")
    if all(is_null(value) for value in values):
        return BoundLiteral(None, BOOLEAN)
    return BoundCase(tuple(zip(tests, values, strict=False)), values[-1], values[-1].type)
