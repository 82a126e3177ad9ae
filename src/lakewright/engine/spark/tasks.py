"""Slices that Python workers merge, as a Spark DataFrame."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    return rows_frame(spark, spec, tasks, "read_packed", lambda task: task.size)


def rows_frame(
    spark: "SparkSession",
    spec: ReadSpec,
    tasks: Sequence[Task],
    function: str,
    size: Callable[[Task], int],
) -> "DataFrame":
    """Return rows of the scan's columns that a function of the worker module makes."""
    constants = Constants.of(spec, tasks)
    if constants is None:
        shape = worker_form(spec.schema)
        return python_frame(spark, spec, tasks, WorkerJob(function, shape, None, size))
    travelling = constants.travelling(spec)
    shape = Struct((*worker_form(travelling.schema).fields, NUMBER))
    job = WorkerJob(function, shape, constants.numbers, size)
    return constants.restore(python_frame(spark, travelling, tasks, job), spec.schema)


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """A function of the worker module, the columns of its batches, and what it reads of a task.

    ``numbers`` are those of partitions, where batches carry them.
    """

    function: str
    shape: Struct
    numbers: Mapping[str, int] | None
    size: Callable[[Task], int]


def python_frame(
    spark: "SparkSession", spec: ReadSpec, tasks: Sequence[Task], job: WorkerJob
) -> "DataFrame":
    """Run a job over packed tasks; its batches are the rows.

    Every partition is one bundle of tasks. The bundles travel with the function: a DataFrame of
    bundles would have to be shuffled to be spread evenly.
    """
    ensure_workers(spark)
    wanted = bundle_count([job.size(task) for task in tasks], parallelism(spark), spec.options)
    bundles = [pack(bundle) for bundle in pack_tasks(tasks, wanted, job.size)]
    shared = pack(Shared(spec, job.shape, job.numbers))
    reader = in_worker("worker", "run_bundles", job.function, shared, tuple(bundles))
    count = len(bundles)
    schema = to_spark_schema(nullable(job.shape))
    return spark.range(0, count, 1, count).mapInArrow(reader, schema)


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
    bundles: list[list[T]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for task in sorted(tasks, key=size, reverse=True):
        load, number = heapq.heappop(loads)
        bundles[number].append(task)
        heapq.heappush(loads, (load + max(size(task), 1), number))
    return [bundle for bundle in bundles if bundle]
