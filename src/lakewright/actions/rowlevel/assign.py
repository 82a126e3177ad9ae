"""Values for columns: bound, checked, and in the column's own type.

A value that the column cannot hold is an error, not NULL: expressions answer NULL where they
cannot compute, but a statement that stores rows must not lose a value in silence.
"""

from dataclasses import dataclass

from lakewright.model.errors import Invalid, InvalidExpression
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bind_functions import bind_cast
from lakewright.model.expression.bound import BoundExpression, BoundLiteral
from lakewright.model.expression.coerce import converted, describe, is_null
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.types import is_nested
from lakewright.model.schema import Field, Struct


@dataclass(frozen=True, slots=True)
class Assigned:
    """The value of one column.

    ``value`` has the column's type, but for nested types, which rows bring as they are. Where
    ``before`` is not None it is the value before its conversion: a row in which it is not null
    and ``value`` is null cannot be stored.
    """

    column: Field
    value: BoundExpression
    before: BoundExpression | None = None


def assign(column: Field, value: Expression, schema: Struct) -> Assigned:
    """Bind a value to a column; ``InvalidExpression`` where no conversion leads there."""
    bound = bind(value, schema, predicate=False)
    if is_null(bound):
        if not column.nullable:
            raise Invalid(
                f"column {column.name} may not be null.",
                next_step="Give it a value.",
                column=column.name,
            )
        return Assigned(column, BoundLiteral(None, column.type))
    if bound.type == column.type or (is_nested(bound.type) and is_nested(column.type)):
        return Assigned(column, bound)
    try:
        fitted = converted(bound, column.type)
        if fitted.type == column.type and isinstance(fitted, BoundLiteral):
            return Assigned(column, fitted)
        return Assigned(column, bind_cast(bound, column.type), bound)
    except InvalidExpression as error:
        raise InvalidExpression(
            f"column {column.name} of type {column.type} cannot take {describe(bound)}.",
            next_step="Convert it with CAST.",
            column=column.name,
            type=str(column.type),
        ) from error


def refuse_lost(column: Field, count: int, sample: object) -> Invalid:
    """Return the error for values that their column cannot hold."""
    return Invalid(
        f"{count} value{'s' if count > 1 else ''} cannot be stored in column {column.name} of type "
        f"{column.type}, such as {sample!r}.",
        next_step="Nothing was written. Convert the values, or leave those rows out.",
        column=column.name,
        count=count,
        sample=sample,
    )


def refuse_null(column: Field, count: int) -> Invalid:
    """Return the error for nulls in a column that has none."""
    return Invalid(
        f"column {column.name} may not be null, and would be in {count} rows.",
        next_step="Nothing was written. Use coalesce(…), or leave those rows out.",
        column=column.name,
        count=count,
    )
