"""Slices that Python workers merge, as a Spark DataFrame."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from lakewright.actions.tasks.read import ReadSpec, Task
from lakewright.engine.spark.constants import NUMBER, Constants
from lakewright.engine.spark.schema import nullable, to_spark_schema, worker_form
from lakewright.engine.spark.session import ensure_workers, parallelism
from lakewright.engine.spark.worker import Shared, pack
from lakewright.engine.spark.workers import in_worker
from lakewright.model.options import declare, parse_positive
from lakewright.model.schema import Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")


LARGEST_TASK = declare(
    "lakewright.spark.task-bytes",
    parse_positive,
    512 << 20,
    doc="Bytes on storage that one Spark task merges at most, a single larger slice excepted. "
    "Slices are streamed, so that this bounds the time of a task and not its memory.",
    since="0.1",
    allowed="a whole number of bytes, 1 or more",
)
#: Bytes below which a task is not worth the start of a Python worker.
_SMALLEST_TASK = 4 << 20


def merged_frame(spark: "SparkSession", spec: ReadSpec, tasks: Sequence[Task]) -> "DataFrame":
    """Return the rows of tasks, merged by Python workers, a few tasks per core."""

    def run(shared: Shared) -> "DataFrame":
        return python_frame(spark, shared, tasks, "read_packed", lambda task: task.size)

    return rows_frame(spec, tasks, run)


def rows_frame(
    spec: ReadSpec, tasks: Sequence[Task], run: Callable[[Shared], "DataFrame"]
) -> "DataFrame":
    """Return rows of the scan's columns; ``run`` makes those that workers hand over."""
    constants = Constants.of(spec, tasks)
    if constants is None:
        return run(Shared(spec, worker_form(spec.schema)))
    travelling = constants.travelling(spec)
    shape = Struct((*worker_form(travelling.schema).fields, NUMBER))
    return constants.restore(run(Shared(travelling, shape, constants.numbers)), spec.schema)


def python_frame(
    spark: "SparkSession",
    shared: Shared,
    tasks: Sequence[Task],
    function: str,
    size: Callable[[Task], int],
    *,
    schema: "StructType | None" = None,
) -> "DataFrame":
    """Run a function of the worker module over packed tasks; its batches are the rows.

    Every partition is one bundle of tasks, whose ``size`` is what the function reads of them. The
    bundles travel with the function: a DataFrame of bundles would have to be shuffled to be spread
    evenly.
    """
    ensure_workers(spark)
    sizes = [size(task) for task in tasks]
    wanted = bundle_count(sizes, parallelism(spark), shared.spec.options)
    bundles = [pack(bundle) for bundle in pack_tasks(tasks, wanted, size)]
    reader = in_worker("worker", "run_bundles", function, pack(shared), tuple(bundles))
    count = len(bundles)
    return spark.range(0, count, 1, count).mapInArrow(reader, schema or worker_schema(shared))


def worker_schema(shared: Shared) -> "StructType":
    """Return what Spark is told of the rows of workers; anything in them may be null."""
    return to_spark_schema(nullable(shared.shape))


def bundle_count(sizes: Sequence[int], width: int, options: Mapping[str, str]) -> int:
    """Return into how many Spark tasks pieces of work of these sizes go.

    As many as run at once, fewer where there is little to do, more where memory asks for it.
    """
    size = sum(sizes)
    worthwhile = -(-size // _SMALLEST_TASK) if size else width
    bounded = -(-size // LARGEST_TASK.read(options))
    return max(1, min(len(sizes), max(min(worthwhile, width), bounded)))


def pack_tasks(tasks: Iterable[T], count: int, size: Callable[[T], int]) -> list[list[T]]:
    """Spread tasks over bundles of about equal size, the largest first."""
    tasks = list(tasks)
    bundles = _packed(tasks, [len(tasks)] * count, size)
    return [bundle for bundle in bundles if bundle]


def dealt(tasks: Sequence[T], count: int, size: Callable[[T], int]) -> list[list[T]]:
    """Spread tasks over as many bundles as ``spark.range`` makes partitions, and as it does.

    The bundles hold equally many tasks, as far as that goes; their sizes are as even as it allows.
    """
    bounds = [number * len(tasks) // count for number in range(count + 1)]
    return _packed(tasks, [end - start for start, end in pairwise(bounds)], size)


def _packed(tasks: Sequence[T], room: list[int], size: Callable[[T], int]) -> list[list[T]]:
    bundles: list[list[T]] = [[] for _ in room]
    loads = [(0, number) for number, most in enumerate(room) if most]
    for task in sorted(tasks, key=size, reverse=True):
        load, number = heapq.heappop(loads)
        bundles[number].append(task)
        if len(bundles[number]) < room[number]:
            heapq.heappush(loads, (load + max(size(task), 1), number))
    return bundles
