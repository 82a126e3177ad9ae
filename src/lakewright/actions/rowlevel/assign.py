"""Values for columns: bound, checked, and in the column's own type.

A value that the column cannot hold, whole and unrounded, is an error, and so is one that cannot be
computed: expressions answer NULL there, but a statement that stores rows must not lose a value in
silence. Whoever wants a value cut says so with CAST, and whoever wants NULL with TRY_CAST. What was
computed for a decimal column is rounded to its digits, as in every database.
"""

from dataclasses import dataclass

from lakewright.model.errors import Invalid, InvalidExpression
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bind_functions import bind_cast
from lakewright.model.expression.bound import (
    BoundAnd,
    BoundArithmetic,
    BoundComparison,
    BoundExpression,
    BoundFunction,
    BoundIsNull,
    BoundLiteral,
    BoundNegate,
    BoundNot,
    BoundOr,
)
from lakewright.model.expression.coerce import cast_in_zone, converted, describe, is_null
from lakewright.model.expression.failing import failing
from lakewright.model.expression.nodes import Comparator, Expression, InZone
from lakewright.model.expression.render import to_sql
from lakewright.model.expression.types import (
    is_floating,
    is_integer,
    is_nested,
    is_numeric,
    wider_decimal,
)
from lakewright.model.expression.zones import reading_in
from lakewright.model.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    DataType,
    Decimal,
    Field,
    Struct,
    Timestamp,
)

_COMPUTED = (BoundArithmetic, BoundNegate, BoundFunction)
#: What to do about values that do not fit.
CONVERT = "Nothing was written. Convert the values with CAST, or leave those rows out."
#: What to do about values that cannot be computed.
COMPUTE = (
    "Nothing was written. A division by zero, a number out of range or a text that does not read "
    "as the type of its CAST has no value: use CASE WHEN, or TRY_CAST for null."
)


@dataclass(frozen=True, slots=True)
class Assigned:
    """The value of one column.

    ``value`` has the column's type, but for nested types, which rows bring as they are. Where
    ``before`` is not None it is the value before its conversion. A row cannot be stored for which
    ``lost`` is true (the column cannot hold ``before``) or ``undefined`` (it cannot be computed);
    ``text`` tells what was to be computed.
    """

    column: Field
    value: BoundExpression
    before: BoundExpression | None = None
    lost: BoundExpression | None = None
    undefined: BoundExpression | None = None
    text: str = ""


def assign(column: Field, value: Expression, schema: Struct) -> Assigned:
    """Bind a value to a column; ``InvalidExpression`` where no conversion leads there."""
    with reading_in(value.zone if isinstance(value, InZone) else None):
        return fit(column, bind(value, schema, predicate=False), to_sql(value))


def fit(column: Field, bound: BoundExpression, text: str = "") -> Assigned:
    """Return a value as the value of a column; ``InvalidExpression`` where it can never be one.

    ``text`` is how the value was written.
    """
    if is_null(bound):
        if not column.nullable:
            raise Invalid(
                f"column {column.name} may not be null.",
                next_step="Give it a value.",
                column=column.name,
            )
        return Assigned(column, BoundLiteral(None, column.type))
    undefined = failing(bound)
    if bound.type == column.type or (is_nested(bound.type) and is_nested(column.type)):
        return Assigned(column, bound, undefined=undefined, text=text)
    try:
        fitted = converted(bound, column.type)
        # A constant keeps its value, but for a text of more digits than a decimal has.
        exact = not (bound.type == STRING and isinstance(column.type, Decimal))
        if exact and fitted.type == column.type and isinstance(fitted, BoundLiteral):
            return Assigned(column, fitted)
        made = bind_cast(bound, column.type)
    except InvalidExpression as error:
        raise InvalidExpression(
            f"column {column.name} of type {column.type} cannot take {describe(bound)}.",
            next_step="Convert it with CAST.",
            column=column.name,
            type=str(column.type),
        ) from error
    return Assigned(column, made, bound, _lost(made, bound), undefined, text)


def _lost(made: BoundExpression, before: BoundExpression) -> BoundExpression:
    """Return the condition under which a conversion loses something of the value."""
    lost: BoundExpression = BoundIsNull(made)
    if not isinstance(before, BoundLiteral):
        lost = BoundAnd(lost, BoundNot(BoundIsNull(before)))
    kind = _judge(before.type, made.type)
    if kind is None or (isinstance(made.type, Decimal) and isinstance(before, _COMPUTED)):
        return lost
    left = made if made.type == kind else cast_in_zone(made, kind)
    right = before if before.type == kind else cast_in_zone(before, kind)
    return BoundOr(lost, BoundComparison(Comparator.NE, left, right))


def _judge(source: DataType, to: DataType) -> DataType | None:
    """Return the type in which a value and what it became must be equal; None where they are.

    Floating-point numbers are the nearest there are, and that is no loss.
    """
    if isinstance(to, Decimal):
        if source == STRING:
            return DOUBLE
        if isinstance(source, Decimal):
            return None if to.scale >= source.scale else wider_decimal(source, to) or DOUBLE
        return source if is_floating(source) else None
    if is_integer(to) and not is_integer(source) and is_numeric(source):
        return source
    if to == BOOLEAN and is_numeric(source):
        return source
    return source if to == DATE and isinstance(source, Timestamp) else None


def refuse_lost(column: Field, count: int, sample: object) -> Invalid:
    """Return the error for values that their column cannot hold."""
    return Invalid(
        f"{count} value{'s' if count > 1 else ''} cannot be stored in column {column.name} of type "
        f"{column.type} without loss, such as {sample!r}.",
        next_step=CONVERT,
        column=column.name,
        count=count,
        sample=sample,
    )


def refuse_undefined(assigned: Assigned, count: int) -> Invalid:
    """Return the error for values that cannot be computed."""
    return Invalid(
        f"{assigned.text} has no value in {count} row{'s' if count > 1 else ''}, for column "
        f"{assigned.column.name}.",
        next_step=COMPUTE,
        column=assigned.column.name,
        count=count,
    )


def refuse_null(column: Field, count: int) -> Invalid:
    """Return the error for nulls in a column that has none."""
    return Invalid(
        f"column {column.name} may not be null, and would be in {count} rows.",
        next_step="Nothing was written. Use coalesce(…), or leave those rows out.",
        column=column.name,
        count=count,
    )
