"""SQL text on Spark, over DataFrames that stand where tables are named."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions

from lakewright.engine.spark.assign import converted_column
from lakewright.engine.spark.schema import from_spark_schema, nullable, to_spark_schema
from lakewright.engine.spark.session import is_connect
from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.model.errors import Invalid
from lakewright.model.expression.bound import BoundLiteral
from lakewright.model.expression.coerce import converted
from lakewright.model.expression.types import Value, type_of
from lakewright.model.schema import STRING, Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: The names that Spark gives to DataFrames within a statement.
_VIEW = re.compile(r"`?_pyspark_\w+`?(?: AS )?")


def run_text(
    spark: "SparkSession", pieces: Sequence[str | int], frames: Sequence["DataFrame"]
) -> "DataFrame":
    """Run a statement given in pieces: text as it stands, and numbers of DataFrames.

    Spark gives each DataFrame a name of its own for the statement; nothing of it remains.
    """
    text = "".join(
        f"{{{_name(part)}}}" if isinstance(part, int) else _escaped(part, bool(frames))
        for part in pieces
    )
    named: dict[str, Any] = {_name(number): frame for number, frame in enumerate(frames)}
    try:
        return spark.sql(text, **named) if named else spark.sql(text)
    except (AnalysisException, ParseException) as error:
        raise _cannot_run(error, "".join(map(str, pieces))) from error


def check_form(spark: "SparkSession", text: str) -> None:
    """Refuse a statement that Spark's parser cannot read; nothing of it is run or looked up."""
    try:
        if is_connect(spark):
            # A client has no parser. What EXPLAIN cannot resolve it tells in its answer.
            spark.sql(f"EXPLAIN {text}")
        else:
            session: Any = spark
            session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except ParseException as error:
        raise _cannot_run(error, text) from error


def _cannot_run(error: Exception, text: str) -> Invalid:
    return Invalid(f"Spark cannot run the statement: {_told(error)}", sql=text)


def _name(number: int) -> str:
    return f"lakewright_{number}"


def _escaped(text: str, formatted: bool) -> str:
    return text.replace("{", "{{").replace("}", "}}") if formatted else text


def _told(error: Exception) -> str:
    """Return Spark's message without the plan that follows it."""
    told = str(error).partition("\n;\n")[0].partition("\n'")[0]
    return _VIEW.sub("", told).strip()


def knows_table(spark: "SparkSession", parts: Sequence[str]) -> bool:
    """Whether Spark itself has a table or view of a name."""
    name = ".".join(f"`{part.replace('`', '``')}`" for part in parts)
    try:
        return bool(spark.catalog.tableExists(name))
    except AnalysisException:  # a catalog or a database that is not there
        return False


def small_frame(spark: "SparkSession", table: pa.Table) -> "DataFrame":
    """Return a few rows as a DataFrame."""
    schema = to_spark_schema(nullable(from_arrow_schema(table.schema)))
    rows = [tuple(row[name] for name in table.column_names) for row in table.to_pylist()]
    return spark.createDataFrame(rows, schema)


def placed(frame: "DataFrame", columns: Sequence[tuple[Field, int | None, Value]]) -> "DataFrame":
    """Return rows as columns of a table: each from a place in the rows, or a constant.

    A value that its column cannot hold fails when the rows are computed, and says so.
    """
    # By number: a query may give several columns the same name.
    renamed = frame.toDF(*(f"_{number}" for number in range(len(frame.columns))))
    given = from_spark_schema(renamed.schema)
    chosen = []
    for column, place, constant in columns:
        if place is not None:
            kind = given.fields[place].type
            value = converted_column(f"`_{place}`", kind, column)
        else:
            literal = BoundLiteral(constant, type_of(constant) or STRING)
            value = converted_column(converted(literal, column.type), literal.type, column)
        chosen.append(value.alias(column.name))
    return renamed.select(*chosen) if chosen else renamed.select(functions.lit(None))
