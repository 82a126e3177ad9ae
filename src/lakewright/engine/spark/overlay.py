"""Slices with logs as native scans: Spark reads the base files, workers read only the logs.

Workers tell, per base file, which rows the logs take away and which log records count: one bit
each. The bits are joined to the scan by the file's name and tested at the row's number in the file.
The log records that count are a second, small set of rows, read by workers that are told the bits.
Since rows are taken away by their place and not by their values, Spark may prune columns and push
filters into the scan as it does for plain parquet.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING
from zlib import crc32

from pyspark.sql import functions as F

from lakewright.actions.tasks.read import ReadSpec, ReadTask, Task
from lakewright.engine.spark.layout import NativeFiles
from lakewright.engine.spark.native import conditioned, scan_frame, typed
from lakewright.engine.spark.schema import to_spark_schema
from lakewright.engine.spark.session import parallelism
from lakewright.engine.spark.tasks import (
    bundle_count,
    dealt,
    python_frame,
    rows_frame,
    worker_schema,
)
from lakewright.engine.spark.worker import FILE_BITS, Shared, pack
from lakewright.engine.spark.workers import in_worker
from lakewright.model.files import ReadingMode
from lakewright.model.options import declare
from lakewright.model.schema import Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _choice(text: str) -> str:
    if text not in ("auto", "workers", "overlay"):
        raise ValueError(text)
    return text


MERGING = declare(
    "lakewright.spark.merging",
    _choice,
    "auto",
    doc="Who merges slices with logs: `workers` read base files and logs in Python workers, "
    "`overlay` lets Spark scan the base files and workers read the logs. `auto` takes workers "
    "where the columns are named or the table is small, and the overlay elsewhere.",
    since="0.1",
    allowed="auto, workers, overlay",
)
#: Bytes of base files per core from which on two small jobs over the logs cost less than
#: carrying every column of every row through Python.
_WORTHWHILE = 128 << 20
#: Bytes of base files up to which their bits fit into a broadcast: a row takes some bytes.
_LARGEST = 64 << 30
_METADATA = "_metadata"
_ROW = "_lakewright_row"


def wants_overlay(
    spec: ReadSpec, tasks: tuple[Task, ...], spark: "SparkSession", *, columns_known: bool
) -> bool:
    """Decide whether slices with logs are scanned natively."""
    names = (name.lower() for name in spec.table_schema.names)
    if spec.mode is not ReadingMode.SNAPSHOT or _METADATA in names:
        return False
    choice = MERGING.read(spec.options)
    if choice != "auto":
        return choice == "overlay"
    if columns_known:
        return False
    bases = [t.slice.base for t in tasks if isinstance(t, ReadTask) and t.slice.logs]
    size = sum(base.size for base in bases if base is not None and base.size > 0)
    return size > _WORTHWHILE and _WORTHWHILE * parallelism(spark) <= size <= _LARGEST


def without_twins(files: NativeFiles) -> tuple[NativeFiles, tuple[ReadTask, ...]]:
    """Split off the slices whose base file cannot be told from another by its checksum."""
    counts = Counter(file_number(task) for task in files.tasks)
    if len(counts) == len(files.tasks):
        return files, ()
    alone = tuple(t for t in files.tasks if counts[file_number(t)] == 1)
    twins = tuple(t for t in files.tasks if counts[file_number(t)] > 1)
    return replace(files, tasks=alone), twins


def file_number(task: ReadTask) -> int:
    """Return the number by which the scan and the workers know the base file of a slice."""
    return crc32(task.slice.base.name.encode()) if task.slice.base else -1


def overlaid_frame(
    spark: "SparkSession", spec: ReadSpec, files: NativeFiles, columns: Struct
) -> "DataFrame":
    """Return the merged rows of slices with logs."""
    number, bits = (field.name for field in FILE_BITS)
    scan = scan_frame(spark, spec, files).selectExpr(
        *typed(files, columns),
        f"crc32({_METADATA}.file_name) as {number}",
        f"{_METADATA}.row_index as {_ROW}",
    )
    told = Shared(spec, FILE_BITS), files.tasks, "read_verdicts", _size_of_logs
    verdicts = F.broadcast(python_frame(spark, *told, schema=to_spark_schema(FILE_BITS)))
    word = f"{bits}[cast(shiftright({_ROW}, 6) + 1 as int)]"
    stays = F.expr(f"getbit({word}, cast({_ROW} & 63 as int)) = 0")
    kept = conditioned(scan.join(verdicts, number).where(stays), spec)
    rows = rows_frame(
        spark, spec, files.tasks, lambda s: _chosen_frame(spark, s, files.tasks, verdicts)
    )
    return kept.unionAll(rows)


def _chosen_frame(
    spark: "SparkSession", shared: Shared, tasks: Sequence[ReadTask], verdicts: "DataFrame"
) -> "DataFrame":
    """Return the log records that count.

    The verdicts are joined as they are joined to the scan, so that Spark asks for them once.
    """
    number, bits = (field.name for field in FILE_BITS)
    sizes = [_size_of_logs(task) for task in tasks]
    bundles = dealt(
        tasks, bundle_count(sizes, parallelism(spark), shared.spec.options), _size_of_logs
    )
    numbers = ",".join(str(file_number(task)) for bundle in bundles for task in bundle)
    slices = spark.range(0, len(tasks), 1, len(bundles)).selectExpr(
        "id", f"cast(split('{numbers}', ',') as array<bigint>)[cast(id as int)] as {number}"
    )
    told = slices.join(verdicts, number).selectExpr(
        "id", f"slice({bits}, cast({bits}[0] as int) + 2, size({bits})) as {bits}"
    )
    starts = tuple(accumulate((len(bundle) for bundle in bundles[:-1]), initial=0))
    packed = tuple(pack(bundle) for bundle in bundles)
    reader = in_worker("worker", "read_chosen", pack(shared), packed, starts)
    return told.mapInArrow(reader, worker_schema(shared))


def _size_of_logs(task: Task) -> int:
    """Return about how much of a slice workers read: its logs, and a column of the base file."""
    if not isinstance(task, ReadTask):
        return task.size
    base = task.slice.base.size if task.slice.base else 0
    return sum(max(log.size, 0) for log in task.slice.logs) + max(base, 0) // 8
