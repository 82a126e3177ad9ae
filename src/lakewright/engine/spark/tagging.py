"""Large batches for tables whose keys are looked up: Spark joins them with the stored keys.

The rows get their keys from Python workers and are kept while the write lasts, so that their
source is computed once. Workers list the partitions that the rows touch and read the key columns
of the files there; a join tells which file group, and which row of it, holds a key. How many keys
are new in each partition decides which small files and new groups take them. After that every row
knows its group, and groups are spread evenly however uneven the partitions are.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_sizing import new_file_id, room_for
from lakewright.actions.tasks.write_spec import (
    ROUTE_COLUMNS,
    ROUTE_DELETE,
    ROUTE_GROUP,
    ROUTE_PARTITION,
    ROUTE_POSITION,
    WriteSpec,
)
from lakewright.engine.spark.answers import own_errors
from lakewright.engine.spark.carrying import pack_job
from lakewright.engine.spark.estimate import estimate
from lakewright.engine.spark.quoting import quoted
from lakewright.engine.spark.schema import from_spark_schema
from lakewright.engine.spark.tag_worker import KEY, PATH, KeysJob
from lakewright.engine.spark.workers import in_worker
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.model.schema import RECORD_KEY
from lakewright.model.table import TableType
from lakewright.model.writing import Operation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_STORED = (
    "stored_key string, stored_path string, stored_id string, stored_position bigint, "
    "stored_deleted string"
)
#: Bytes of a row where nothing tells: files of any size will do then.
_ROW_BYTES = 100.0


@dataclass(frozen=True, slots=True)
class NewKeys:
    """How many new keys a partition gets, and which groups cannot take them."""

    partition: str
    count: int
    busy: frozenset[str]


#: For one partition: file ids, and up to which of its new keys each takes them.
Slots = tuple[str, tuple[str, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Sizing:
    """What decides how many rows a file takes; ``row_bytes`` are a row's in memory."""

    spec: WriteSpec
    row_bytes: float


#: Runs ``plan_slots`` over partitions, wherever it is best done.
Mapper = Callable[[Sizing, Sequence[NewKeys]], Iterator[Slots]]


def plan_slots(shared: Sizing, new: NewKeys, attempt: Attempt) -> Slots:
    """Say which groups of a partition take its new keys: small files, then new groups."""
    spec = shared.spec
    files = spec.pinned.files(new.partition)
    ids, ends, taken = [], [], 0
    for piece, count in room_for(spec, files, new.count, shared.row_bytes, new.busy):
        ids.append(new_file_id() if piece is None else piece.group.file_id)
        taken += count
        ends.append(taken)
    return new.partition, tuple(ids), tuple(ends)


@contextmanager
def tagged(
    frame: "DataFrame", spec: WriteSpec, mapper: Mapper, tasks: int
) -> "Iterator[DataFrame]":
    """Give rows with the columns of their route, those of one group together in a partition.

    What is kept for that is let go at the end.
    """
    keyed = _keyed(frame, spec).persist()
    stored = _stored(keyed, spec, tasks).persist()
    try:
        joined = _joined(keyed, stored, spec)
        rows = joined.where(_wanted(frame, spec))
        group: Column = F.col("stored_id")
        if spec.operation is not Operation.DELETE:
            slots = _slots(rows, keyed, spec, mapper)
            rows = rows.join(F.broadcast(slots), F.col(PATH) == F.col("slot_path"), "left")
            turn = F.pmod(F.xxhash64(KEY), F.element_at("slot_ends", -1))
            passed = F.size(F.filter("slot_ends", lambda end: end <= turn))
            group = F.coalesce(group, F.col("slot_ids")[passed])
        own = [quoted(n) for n in frame.columns if n not in (*ROUTE_COLUMNS[1:], RECORD_KEY)]
        routed = rows.select(
            *own,
            F.col(KEY).alias(RECORD_KEY),
            F.col(PATH).alias(ROUTE_PARTITION),
            group.alias(ROUTE_GROUP),
            F.coalesce(F.col("stored_position"), F.lit(-1)).cast("bigint").alias(ROUTE_POSITION),
        )
        yield routed.repartition(tasks, ROUTE_PARTITION, ROUTE_GROUP)
    finally:
        stored.unpersist()
        keyed.unpersist()


def _keyed(frame: "DataFrame", spec: WriteSpec) -> "DataFrame":
    schema = to_arrow_schema(from_spark_schema(frame.schema))
    job = pack_job(KeysJob(KeyMaker.of(spec.config, spec.schema), schema, spec.instant))
    columns = [st.StructField(f.name, f.dataType, nullable=True) for f in frame.schema.fields]
    more = [st.StructField(name, st.StringType()) for name in (KEY, PATH)]
    return frame.mapInArrow(in_worker("tag_worker", "add_keys", job), st.StructType(columns + more))


def _stored(keyed: "DataFrame", spec: WriteSpec, tasks: int) -> "DataFrame":
    """Return the keys that are stored in the partitions of the rows."""
    job = pack_job(spec)
    touched = keyed.select(PATH).distinct()
    slices = touched.mapInArrow(in_worker("tag_worker", "list_slices", job), "slice binary")
    spread = slices.repartition(tasks, F.xxhash64("slice"))
    return spread.mapInArrow(in_worker("tag_worker", "read_keys", job), _STORED)


def _joined(keyed: "DataFrame", stored: "DataFrame", spec: WriteSpec) -> "DataFrame":
    """Join rows with the places of their keys, as ``Tagged.settled`` has it.

    These are the places where a key is alive, else the one where it was deleted last. Rows that
    are to be new, and deletes, do not care for what is deleted already.
    """
    same = (F.col(KEY) == F.col("stored_key")) & (F.col(PATH) == F.col("stored_path"))
    alive = stored.where(F.col("stored_deleted").isNull()).drop("stored_deleted")
    joined = keyed.join(alive, same, "left")
    upserts = spec.operation is Operation.UPSERT and not spec.drop_existing
    if spec.config.table_type is not TableType.MERGE_ON_READ or not upserts:
        return joined
    last = F.max(F.struct("stored_deleted", "stored_id", "stored_position")).alias("last")
    dead = (
        stored.where(F.col("stored_deleted").isNotNull())
        .groupBy(F.col("stored_key").alias("dead_key"), F.col("stored_path").alias("dead_path"))
        .agg(last)
    )
    same = (F.col(KEY) == F.col("dead_key")) & (F.col(PATH) == F.col("dead_path"))
    both = joined.join(dead, same, "left")
    found = F.col("stored_id").isNotNull()
    for name in ("stored_id", "stored_position"):
        here = F.when(found, F.col(name)).otherwise(F.col(f"last.{name}"))
        both = both.withColumn(f"{name}_found", here)
    return both.drop("stored_id", "stored_position").withColumnsRenamed(
        {f"{name}_found": name for name in ("stored_id", "stored_position")}
    )


def _wanted(frame: "DataFrame", spec: WriteSpec) -> "Column":
    """Return which joined rows do anything: deletes need a stored key, some inserts none."""
    held = F.col("stored_id").isNotNull()
    if spec.operation is Operation.DELETE:
        return held
    if spec.drop_existing:
        return ~held
    if ROUTE_DELETE in frame.columns:
        return held | ~F.coalesce(F.col(ROUTE_DELETE), F.lit(False))
    return F.lit(True)


def _slots(rows: "DataFrame", keyed: "DataFrame", spec: WriteSpec, mapper: Mapper) -> "DataFrame":
    held = F.col("stored_id").isNotNull()
    counted = rows.groupBy(PATH).agg(
        F.count(F.lit(1)).alias("rows"),
        F.countDistinct(F.when(~held, F.col(KEY))).alias("new"),
        F.collect_set("stored_id").alias("busy"),
    )
    logs = spec.config.table_type is TableType.MERGE_ON_READ
    with own_errors():
        found = counted.select(PATH, "rows", "new", *(["busy"] if logs else [])).collect()
    total = sum(row["rows"] for row in found)
    size = estimate(keyed)
    row_bytes = size.size / total if size.known and total else _ROW_BYTES
    items = [
        NewKeys(row[PATH], row["new"], frozenset(row["busy"] if logs else ()))
        for row in found
        if row["new"]
    ]
    made = list(mapper(Sizing(spec, row_bytes), items))
    shape = "slot_path string, slot_ids array<string>, slot_ends array<bigint>"
    return rows.sparkSession.createDataFrame([(p, list(i), list(e)) for p, i, e in made], shape)
