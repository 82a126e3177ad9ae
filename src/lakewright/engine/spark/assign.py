"""Values for columns on Spark: converted, and never lost in silence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions

from lakewright.actions.rowlevel.assign import COMPUTE, CONVERT, Assigned, fit
from lakewright.engine.spark.expression import spark_sql
from lakewright.engine.spark.gateway import Py4JJavaError
from lakewright.model.errors import Invalid
from lakewright.model.expression.bound import BoundExpression, BoundReference
from lakewright.model.schema import Field

if TYPE_CHECKING:
    from pyspark.sql import Column

#: Begins the message of an error that a row raises, so that it can be told from Spark's own.
LOST = "lakewright: "
UNDEFINED = "lakewright, undefined: "


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the errors that rows raised on Spark, because they cannot be stored, into ours."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # the latter on Spark 3, from its tasks
        for mark, next_step in ((UNDEFINED, COMPUTE), (LOST, CONVERT)):
            told = str(error).partition(mark)[2]
            if told:
                shown = told.partition(" SQLSTATE")[0].partition("\n")[0].strip()
                raise Invalid(f"{shown}.", next_step=next_step) from error
        raise


def assigned_sql(assigned: Assigned) -> str:
    """Return an assignment as SQL; a row whose value cannot be stored raises an error."""
    made = spark_sql(assigned.value)
    column = assigned.column
    checks = ""
    if assigned.undefined is not None:
        told = _text(f"{UNDEFINED}{assigned.text} has no value, for column {column.name}")
        checks += f"WHEN {spark_sql(assigned.undefined)} THEN raise_error({told}) "
    if assigned.before is not None and assigned.lost is not None:
        told = _text(f"{LOST}column {column.name} of type {column.type} cannot hold ")
        held = f"CAST({spark_sql(assigned.before)} AS STRING)"
        whole = f"concat({told}, {held}, {_text(' without loss')})"
        checks += f"WHEN {spark_sql(assigned.lost)} THEN raise_error({whole}) "
    if checks:
        made = f"CASE {checks}ELSE {made} END"
    if not column.nullable and not isinstance(assigned.value, BoundReference):
        made = (
            f"coalesce({made}, raise_error({_text(f'{LOST}column {column.name} may not be null')}))"
        )
    return made


def converted_column(bound: BoundExpression, column: Field) -> "Column":
    """Return a value of some type as a value of a column."""
    return functions.expr(assigned_sql(fit(column, bound)))


def _text(value: str) -> str:
    return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"
