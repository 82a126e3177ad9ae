"""SQL text on Spark, over DataFrames that stand where tables are named."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    ParseException,
    SparkRuntimeException,
)
from pyspark.sql import functions, types

from lakewright.engine.spark.assign import converted_column
from lakewright.engine.spark.gateway import Py4JJavaError
from lakewright.engine.spark.quoting import quoted
from lakewright.engine.spark.schema import (
    as_nullable,
    from_spark_schema,
    nullable,
    to_spark_schema,
    to_spark_type,
)
from lakewright.engine.spark.session import is_connect
from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.model.errors import Invalid
from lakewright.model.expression.bound import BoundExpression, BoundLiteral, BoundReference
from lakewright.model.expression.coerce import converted
from lakewright.model.expression.types import Value, type_of
from lakewright.model.schema import STRING, DataType, Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: What Spark raises where a value cannot be computed.
_COMPUTING = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    SparkRuntimeException,
)
#: The same where Spark 3 tells of it within the failure of a task.
_IN_TASK = re.compile(
    r"org\.apache\.spark\.Spark(?:Arithmetic|ArrayIndexOutOfBounds|DateTime|NumberFormat|Runtime)"
    r"Exception: (.*)"
)
#: Characters of a statement that an error shows.
_SHOWN = 200
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
    return Invalid(
        f"Spark cannot run the statement: {_told(error)}",
        next_step="Mend the statement: what is wrong with it is Spark's own answer.",
        sql=text,
    )


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

    A value that its column cannot hold fails when the rows are computed, and says so. What the
    query leaves without a type (NULL, an empty array) has the column's.
    """
    # By number: a query may give several columns the same name.
    renamed = frame.toDF(*(f"_{number}" for number in range(len(frame.columns))))
    kinds = {f"_{place}": column.type for column, place, _ in columns if place is not None}
    typed = with_types(renamed, kinds)
    given = from_spark_schema(typed.schema)
    chosen = []
    for column, place, constant in columns:
        value: BoundExpression
        if place is not None:
            value = BoundReference((f"_{place}",), given.fields[place].type)
        else:
            value = converted(BoundLiteral(constant, type_of(constant) or STRING), column.type)
        chosen.append(converted_column(value, column).alias(column.name))
    return typed.select(*chosen) if chosen else typed.select(functions.lit(None))


def with_types(frame: "DataFrame", kinds: Mapping[str, DataType]) -> "DataFrame":
    """Return rows in which columns that Spark gave no type have one: by name, else text."""
    folded = {name.lower(): kind for name, kind in kinds.items()}
    columns, changed = [], False
    for field in frame.schema:
        value = functions.col(quoted(field.name))
        kind = folded.get(field.name.lower(), STRING)
        if _has_void(field.dataType) and (kind != STRING or _is_void(field.dataType)):
            value = value.cast(to_spark_type(as_nullable(kind))).alias(field.name)
            changed = True
        columns.append(value)
    return frame.select(*columns) if changed else frame


def _is_void(kind: types.DataType) -> bool:
    return isinstance(kind, types.NullType)


def _has_void(kind: types.DataType) -> bool:
    if isinstance(kind, types.ArrayType):
        return _has_void(kind.elementType)
    if isinstance(kind, types.MapType):
        return _has_void(kind.keyType) or _has_void(kind.valueType)
    if isinstance(kind, types.StructType):
        return any(_has_void(field.dataType) for field in kind)
    return _is_void(kind)


@contextmanager
def computing(text: str) -> Iterator[None]:
    """Raise what Spark says of values that a statement could not compute as an error of ours."""
    try:
        yield
    except _COMPUTING as error:
        raise _cannot_compute(text, _told(error)) from error
    except Py4JJavaError as error:
        found = _IN_TASK.search(str(error))
        if found is None:
            raise
        raise _cannot_compute(text, found[1].strip()) from error


def _cannot_compute(text: str, told: str) -> Invalid:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return Invalid(
        f"Spark cannot compute the rows of {shown!r}: {told}",
        next_step="Nothing was written. Use CASE WHEN, or TRY_CAST for null.",
        sql=text,
    )
