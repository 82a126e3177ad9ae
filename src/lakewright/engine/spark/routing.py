"""Rows divided among tasks: which Spark partition a row goes to.

Rows of one file group must meet in one task. Where Spark can tell the group by itself (the
partition columns, and the bucket by Java's own hash of the key), it does; else Python workers
number the rows first. A repartition into a given number of partitions is left as it is by Spark's
adaptive execution, which neither joins nor splits its partitions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakewright.actions.executor import Route, Spread
from lakewright.engine.spark.carrying import pack_job
from lakewright.engine.spark.murmur import slots
from lakewright.engine.spark.native import quoted
from lakewright.engine.spark.schema import from_spark_schema
from lakewright.engine.spark.workers import in_worker
from lakewright.engine.spark.write_worker import ROUTE_NUMBER, RouteJob
from lakewright.format.arrow.schema import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BUCKET = "_lakewright_bucket"
#: In the error by which Spark says that a key cannot be hashed natively.
ODD_KEY = "lakewright: this key is hashed by parts"
#: Types whose text as a record key is what Spark's cast gives.
_PLAIN_KEYS = (st.StringType, st.ByteType, st.ShortType, st.IntegerType, st.LongType)
#: More tasks than this are not dealt out one by one: the list would weigh the plan down.
_DEALT = 512


def divided(frame: "DataFrame", spread: Spread, tasks: int, *, native: bool = True) -> "DataFrame":
    """Return the rows, divided among about so many Spark partitions as the spread says.

    With ``native=False`` nothing is told by Spark's own means. The columns are those of the
    frame, maybe with more behind them.
    """
    if spread.together:
        made = frame.coalesce(1)
    elif spread.sort_all and spread.sort_by:
        made = frame.repartitionByRange(tasks, *_columns(frame, spread.sort_by))
    elif spread.buckets is None and not spread.columns and spread.route is None:
        made = frame.coalesce(tasks)
    elif native and _tells(frame, spread):
        made = _by_group(frame, spread, tasks)
    elif spread.route is not None:
        made = _by_number(frame, spread.route, tasks)
    else:
        made = frame.repartition(tasks, *_partition_columns(frame, spread.columns))
    if spread.sort_by:
        made = made.sortWithinPartitions(*_columns(frame, spread.sort_by))
    return made


def _tells(frame: "DataFrame", spread: Spread) -> bool:
    """Whether Spark itself can tell which rows belong together."""
    if spread.buckets is None:
        return bool(spread.columns)
    if len(spread.key_fields) != 1 or spread.key_fields != spread.hash_fields:
        return False
    key = spread.key_fields[0]
    return key in frame.columns and isinstance(frame.schema[key].dataType, _PLAIN_KEYS)


def _by_group(frame: "DataFrame", spread: Spread, tasks: int) -> "DataFrame":
    places = _partition_columns(frame, spread.columns)
    if spread.buckets is None:
        return frame.repartition(tasks, *places)
    own = [quoted(name) for name in frame.columns]
    bucket = bucket_column(spread.hash_fields[0], spread.buckets)
    numbered = frame.select(*own, bucket.alias(_BUCKET))
    if tasks > _DEALT:
        return numbered.repartition(tasks, *places, F.col(_BUCKET)).select(*own)
    # Buckets of a partition are dealt out in turn, so that tasks get equal shares of each: a
    # hash of both would give some task half as much again as another.
    first = F.hash(*places).cast("bigint") if places else F.lit(0)
    turn = F.pmod(first + F.col(_BUCKET), F.lit(tasks))
    slot = F.array(*(F.lit(value) for value in slots(tasks)))[turn]
    return numbered.repartition(tasks, slot).select(*own)


def bucket_column(field: str, buckets: int) -> "Column":
    """Return the bucket of rows whose record key is the bare text of one column.

    Java's own hash, in Hudi's formula. A key that Hudi would take apart (it holds a comma, and
    the field's name with a colon) makes the query fail with ``ODD_KEY``.
    """
    key = f"cast({quoted(field)} as string)"
    name = _literal(f"{field}:")
    odd = f"instr({key}, ',') > 0 and instr({key}, {name}) > 0"
    hashed = f"java_method('java.util.Objects', 'hashCode', {key})"
    bucket = f"cast((31 + cast({hashed} as bigint)) & 2147483647 as bigint) % {buckets}"
    failure = f"raise_error({_literal(ODD_KEY)})"
    return F.expr(f"cast(case when {odd} then {failure} else {bucket} end as int)")


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _by_number(frame: "DataFrame", route: Route, tasks: int) -> "DataFrame":
    schema = to_arrow_schema(from_spark_schema(frame.schema))
    job = pack_job(RouteJob(route, schema))
    columns = [st.StructField(f.name, f.dataType, nullable=True) for f in frame.schema.fields]
    shape = st.StructType([*columns, st.StructField(ROUTE_NUMBER, st.LongType())])
    numbered = frame.mapInArrow(in_worker("write_worker", "add_route", job), shape)
    own = [quoted(name) for name in frame.columns]
    return numbered.repartition(tasks, F.col(ROUTE_NUMBER)).select(*own)


def _partition_columns(frame: "DataFrame", names: Sequence[str]) -> "list[Column]":
    """Return partition columns such that rows of one partition are equal in them.

    No text and the empty text are the same partition.
    """
    made = []
    for name in names:
        column = F.col(quoted(name) if name in frame.columns else name)
        text = name in frame.columns and isinstance(frame.schema[name].dataType, st.StringType)
        made.append(F.coalesce(column, F.lit("")) if text else column)
    return made


def _columns(frame: "DataFrame", names: Sequence[str]) -> "list[Column]":
    return [F.col(quoted(name) if name in frame.columns else name) for name in names]
