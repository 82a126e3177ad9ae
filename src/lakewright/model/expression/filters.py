"""Conditions that all must hold, in whatever form they are given."""

from collections.abc import Iterable
from typing import TypeAlias

from lakewright.model.errors import Invalid
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import BoundExpression, BoundNode
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.parse import parse_expression
from lakewright.model.schema import Struct

#: Conditions that all must hold, each as it was written, as SQL text, or bound already.
Filters: TypeAlias = Iterable[Expression | BoundExpression | str]


def bind_filters(filters: Filters, schema: Struct) -> tuple[BoundExpression, ...]:
    """Resolve the names of filters against a schema; ``Invalid`` where one is no condition."""
    if isinstance(filters, str | Expression | BoundNode):
        raise Invalid(
            f"filters={filters!r} is one condition.",
            next_step="Give a list of those that all must hold: filters=[…].",
            argument="filters",
        )
    return tuple(_bound(one, schema) for one in filters)


def _bound(one: Expression | BoundExpression | str, schema: Struct) -> BoundExpression:
    written = parse_expression(one) if isinstance(one, str) else one
    if isinstance(written, Expression):
        return bind(written, schema)
    if isinstance(written, BoundNode):
        return written
    raise Invalid(
        f"{one!r} is no condition.",
        next_step="Make one with lakewright.col() and lit(), or write SQL text.",
        argument="filters",
    )
