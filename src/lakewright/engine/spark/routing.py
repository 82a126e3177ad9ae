"""Rows divided among tasks: which Spark partition a row goes to.

Rows of one file group must meet in one task. Where Spark can tell the group by itself (the
partition columns, and the bucket by Java's own hash of the key), it does; else Python workers
number the rows first. A repartition into a given number of partitions is left as it is by Spark's
adaptive execution, which neither joins nor splits its partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakewright.actions.executor import Route, Spread
from lakewright.engine.spark.carrying import pack_job
from lakewright.engine.spark.expression import literal
from lakewright.engine.spark.murmur import slots
from lakewright.engine.spark.partition_counts import count_column, path_column
from lakewright.engine.spark.quoting import quoted
from lakewright.engine.spark.schema import from_spark_schema
from lakewright.engine.spark.workers import in_worker
from lakewright.engine.spark.write_worker import ROUTE_NUMBER, RouteJob
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.model.schema import INT, LONG, STRING, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BUCKET = "_lakewright_bucket"
#: In the error by which Spark says that a key cannot be hashed natively.
ODD_KEY = "lakewright: this key is hashed by parts"
#: Types whose text as a record key is what Spark's cast gives.
_PLAIN_KEYS = (st.StringType, st.ByteType, st.ShortType, st.IntegerType, st.LongType)
#: More tasks than this are not dealt out one by one: the list would weigh the plan down.
_DEALT = 512


@dataclass(frozen=True, slots=True)
class Telling:
    """What of the table decides whether Spark can tell groups apart by itself.

    ``by_hash=False`` forbids to hash keys natively; ``hive`` says that folders are ``a=1``;
    ``schema`` holds the columns as they are stored, whose texts are hashed. ``plain_paths`` says
    that the texts of partition columns are parts of paths as they are, and that the path of a
    table without them is empty.
    """

    by_hash: bool = True
    hive: bool = True
    schema: Struct | None = None
    plain_paths: bool = False


def divided(frame: "DataFrame", spread: Spread, tasks: int, telling: Telling) -> "DataFrame":
    """Return the rows, divided among about so many Spark partitions as the spread says.

    The columns are those of the frame, maybe with more behind them.
    """
    if spread.together:
        made = frame.repartition(1)  # a coalesce would compute the rows in one task, too
    elif spread.sort_all and spread.sort_by:
        made = frame.repartitionByRange(tasks, *_columns(frame, spread.sort_by))
    elif spread.buckets is None and not spread.columns and spread.route is None:
        made = frame.coalesce(tasks)
    elif _tells(frame, spread, telling) and (counts := _counts(frame, spread, telling)) is not None:
        made = _by_group(frame, spread, tasks, telling, counts)
    elif spread.route is not None:
        made = _by_number(frame, spread.route, tasks)
    else:
        made = frame.repartition(tasks, *_partition_columns(frame, spread, hive=telling.hive))
    if spread.sort_by:
        made = made.sortWithinPartitions(*_columns(frame, spread.sort_by))
    return made


def _tells(frame: "DataFrame", spread: Spread, telling: Telling) -> bool:
    """Whether Spark itself can tell which rows belong together."""
    if spread.buckets is None:
        return bool(spread.columns)
    if not telling.by_hash:
        return False
    if len(spread.key_fields) != 1 or spread.key_fields != spread.hash_fields:
        return False
    key = spread.key_fields[0]
    if key not in frame.columns or not isinstance(frame.schema[key].dataType, _PLAIN_KEYS):
        return False
    stored = telling.schema.find(key) if telling.schema is not None else None
    if _is_text(frame, key):
        return stored in (None, STRING)
    return stored in (None, STRING, INT, LONG)


def _counts(frame: "DataFrame", spread: Spread, telling: Telling) -> "Column | None":
    """Return how many buckets the partition of each row has; None where Spark cannot tell."""
    if spread.buckets is None:
        return F.lit(0)
    uniform = spread.buckets.uniform
    if uniform is not None:
        return F.lit(uniform)
    if not telling.plain_paths:
        return None
    path = path_column(frame, spread.columns, telling.schema, hive=telling.hive)
    return None if path is None else count_column(path, spread.buckets)


def _by_group(
    frame: "DataFrame", spread: Spread, tasks: int, telling: Telling, counts: "Column"
) -> "DataFrame":
    places = _partition_columns(frame, spread, hive=telling.hive)
    if spread.buckets is None:
        return frame.repartition(tasks, *places)
    own = [quoted(name) for name in frame.columns]
    bucket = bucket_column(spread.hash_fields[0], counts)
    numbered = frame.select(*own, bucket.alias(_BUCKET))
    if tasks > _DEALT:
        return numbered.repartition(tasks, *places, F.col(_BUCKET)).select(*own)
    # Buckets of a partition are dealt out in turn, so that tasks get equal shares of each: a
    # hash of both would give some task half as much again as another.
    first = F.hash(*places).cast("bigint") if places else F.lit(0)
    turn = F.pmod(first + F.col(_BUCKET), F.lit(tasks))
    slot = F.array(*(F.lit(value) for value in slots(tasks)))[turn]
    return numbered.repartition(tasks, slot).select(*own)


def bucket_column(field: str, buckets: "int | Column") -> "Column":
    """Return the bucket of rows whose record key is the bare text of one column.

    ``buckets`` is how many there are, of each row where that differs. Java's own hash, in Hudi's
    formula. A key that Hudi would take apart (it holds a comma, and the field's name with a
    colon) makes the query fail with ``ODD_KEY``.
    """
    key = f"cast({quoted(field)} as string)"
    name = literal(f"{field}:", STRING)
    odd = f"instr({key}, ',') > 0 and instr({key}, {name}) > 0"
    hashed = f"java_method('java.util.Objects', 'hashCode', {key})"
    hashed = f"cast((31 + cast({hashed} as bigint)) & 2147483647 as bigint)"
    failure = f"raise_error({literal(ODD_KEY, STRING)})"
    known = F.expr(f"cast(case when {odd} then {failure} else {hashed} end as bigint)")
    return (known % buckets).cast("int")


def _by_number(frame: "DataFrame", route: Route, tasks: int) -> "DataFrame":
    schema = to_arrow_schema(from_spark_schema(frame.schema))
    job = pack_job(RouteJob(route, schema))
    columns = [st.StructField(f.name, f.dataType, nullable=True) for f in frame.schema.fields]
    shape = st.StructType([*columns, st.StructField(ROUTE_NUMBER, st.LongType())])
    numbered = frame.mapInArrow(in_worker("write_worker", "add_route", job), shape)
    own = [quoted(name) for name in frame.columns]
    return numbered.repartition(tasks, F.col(ROUTE_NUMBER)).select(*own)


def _partition_columns(frame: "DataFrame", spread: Spread, *, hive: bool) -> "list[Column]":
    """Return columns in which rows of one partition are equal.

    No text, the empty one and Hudi's name for both are the same partition. Values with slashes
    in them may make one path in two ways: several columns are compared as the path they make.
    """
    texts = []
    for name in spread.columns:
        column = F.col(quoted(name) if name in frame.columns else name)
        if len(spread.columns) == 1 and not _is_text(frame, name):
            return [column]
        text = column.cast("string")
        known = F.coalesce(F.when(text != DEFAULT_PARTITION, text), F.lit(""))
        texts.append(F.concat(F.lit(f"{name}="), known) if hive else known)
    return [F.concat_ws("/", *texts) if len(texts) > 1 else texts[0]] if texts else []


def _is_text(frame: "DataFrame", name: str) -> bool:
    return name not in frame.columns or isinstance(frame.schema[name].dataType, st.StringType)


def _columns(frame: "DataFrame", names: Sequence[str]) -> "list[Column]":
    return [F.col(quoted(name) if name in frame.columns else name) for name in names]
