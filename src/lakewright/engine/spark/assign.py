"""Values for columns on Spark: converted, and never lost in silence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions

from lakewright.actions.rowlevel.assign import Assigned
from lakewright.engine.spark.expression import spark_sql
from lakewright.model.errors import Invalid, InvalidExpression
from lakewright.model.expression.bind_functions import bind_cast
from lakewright.model.expression.bound import BoundExpression, BoundReference
from lakewright.model.expression.types import is_nested
from lakewright.model.schema import DataType, Field

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Begins the message of an error that a row raises, so that it can be told from Spark's own.
LOST = "lakewright: "


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the errors that rows raised on Spark, because they cannot be stored, into ours."""
    try:
        yield
    except PySparkException as error:
        told = str(error).partition(LOST)[2]
        if not told:
            raise
        raise Invalid(
            f"{told.partition(' SQLSTATE')[0].partition(chr(10))[0].strip()}.",
            next_step="Nothing was written. Convert the values, or leave those rows out.",
        ) from error


def assigned_sql(assigned: Assigned) -> str:
    """Return an assignment as SQL; a row whose value cannot be stored raises an error."""
    made = spark_sql(assigned.value)
    column = assigned.column
    if assigned.before is not None:
        made = _checked(made, spark_sql(assigned.before), column)
    if not column.nullable and not isinstance(assigned.value, BoundReference):
        made = (
            f"coalesce({made}, raise_error({_text(f'{LOST}column {column.name} may not be null')}))"
        )
    return made


def converted_column(value: "str | BoundExpression", kind: DataType, column: Field) -> "Column":
    """Return a value of some type as a value of a column; ``value`` is SQL or an expression."""
    if isinstance(value, str):
        name = value.strip("`")
        bound: BoundExpression = BoundReference((name,), kind, True)
    else:
        bound = value
    if bound.type == column.type or (is_nested(bound.type) and is_nested(column.type)):
        return functions.expr(spark_sql(bound))
    try:
        made = bind_cast(bound, column.type)
    except InvalidExpression as error:
        raise InvalidExpression(
            f"column {column.name} of type {column.type} cannot take a {bound.type}.",
            next_step="Convert it with CAST.",
            column=column.name,
        ) from error
    return functions.expr(_checked(spark_sql(made), spark_sql(bound), column))


def _checked(made: str, before: str, column: Field) -> str:
    message = f"{LOST}column {column.name} of type {column.type} cannot hold "
    return (
        f"CASE WHEN {made} IS NULL AND {before} IS NOT NULL "
        f"THEN raise_error(concat({_text(message)}, CAST({before} AS STRING))) ELSE {made} END"
    )


def _text(value: str) -> str:
    return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"
