"""Slices that Python workers merge, as a Spark DataFrame."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from lakewright.actions.tasks.read import ReadSpec, Task
from lakewright.engine.spark.constants import Constants
from lakewright.engine.spark.layout import names_taken
from lakewright.engine.spark.lists import can_travel, list_form, one_by_one, values_in_lists
from lakewright.engine.spark.quoting import quoted
from lakewright.engine.spark.schema import nullable, to_spark_schema, worker_form
from lakewright.engine.spark.session import ensure_workers, parallelism, setting
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
#: Columns beyond which Spark generates no code, where the session does not say.
_CODEGEN_FIELDS = 100
#: A type whose values Spark expects to take many bytes, though each of them is null.
_HEAVY = f"struct<{','.join(f'_{number}:binary' for number in range(10))}>"
#: Bytes that Spark expects of a number with a value of that type beside it.
_EXPECTED = 508


def merged_frame(spark: "SparkSession", spec: ReadSpec, tasks: Sequence[Task]) -> "DataFrame":
    """Return the rows of tasks, merged by Python workers, a few tasks per core."""
    part = (len(spec.schema) + 1) / (len(spec.table_schema) + 1)
    weight = int(part * sum(max(task.size, 0) for task in tasks))

    def run(shared: Shared) -> "DataFrame":
        function = "read_packed"
        return python_frame(spark, shared, tasks, function, lambda t: t.size, weight=weight)

    return rows_frame(spark, spec, tasks, run)


def rows_frame(
    spark: "SparkSession",
    spec: ReadSpec,
    tasks: Sequence[Task],
    run: Callable[[Shared], "DataFrame"],
) -> "DataFrame":
    """Return rows of the scan's columns; ``run`` makes those that workers hand over."""
    constants = Constants.of(spec, tasks)
    travelling = spec if constants is None else constants.travelling(spec)
    shape = worker_form(travelling.schema)
    numbers = None if constants is None else constants.numbers
    lists = can_travel(shape) and not names_taken(spec) and _generates_code(spark, shape)
    shared = Shared(travelling, shape, numbers, lists)
    rows = run(shared)
    if lists:
        rows = one_by_one(rows)
    elif constants is None:
        return rows
    # One selection for all: each costs the JVM some milliseconds.
    held = values_in_lists(shape) if lists else {name: quoted(name) for name in shape.names}
    if constants is not None:
        held |= constants.columns(spec.schema)
    return rows.selectExpr(*(f"{held[name]} as {quoted(name)}" for name in spec.schema.names))


def _generates_code(spark: "SparkSession", shape: Struct) -> bool:
    """Whether Spark generates code for taking rows of ``shape`` out of lists."""
    told = setting(spark, "spark.sql.codegen.maxFields") or ""
    most = int(told) if told.isdigit() else _CODEGEN_FIELDS
    # Beside the lists stand the place of a row in them and the number of its partition.
    wanted = len(list_form(shape)) + 2
    return setting(spark, "spark.sql.codegen.wholeStage") != "false" and wanted <= most


def python_frame(
    spark: "SparkSession",
    shared: Shared,
    tasks: Sequence[Task],
    function: str,
    size: Callable[[Task], int],
    *,
    schema: "StructType | None" = None,
    weight: int = 0,
) -> "DataFrame":
    """Run a function of the worker module over packed tasks; its batches are the rows.

    Every partition is one bundle of tasks, whose ``size`` is what the function reads of them. The
    bundles travel with the function: a DataFrame of bundles would have to be shuffled to be spread
    evenly. ``weight`` is how many bytes Spark is to expect.
    """
    ensure_workers(spark)
    sizes = [size(task) for task in tasks]
    wanted = bundle_count(sizes, parallelism(spark), shared.spec.options)
    bundles = [pack(bundle) for bundle in pack_tasks(tasks, wanted, size)]
    reader = in_worker("worker", "run_bundles", function, pack(shared), tuple(bundles))
    numbers = weighty_numbers(spark, len(bundles), weight)
    return numbers.mapInArrow(reader, schema or worker_schema(shared))


def weighty_numbers(spark: "SparkSession", count: int, weight: int) -> "DataFrame":
    """Return the numbers below ``count``, one per partition, that Spark takes for so many bytes.

    Spark judges what workers will hand over by what they are given. A few numbers it would take for
    a table that every executor can have a copy of, and a join would collect all rows in the driver.
    """
    step = -(-weight // (_EXPECTED * count))
    if step <= 1:
        return spark.range(0, count, 1, count)
    # Each partition makes ``step`` numbers, in next to no time, and keeps the first of them.
    return spark.sql(
        f"SELECT id DIV {step} AS id, CAST(NULL AS {_HEAVY}) AS weight "
        f"FROM range(0, {count * step}, 1, {count}) WHERE id % {step} = 0"
    )


def worker_schema(shared: Shared) -> "StructType":
    """Return what Spark is told of the batches of workers; anything in rows may be null."""
    shape = shared.handed_over
    return to_spark_schema(shape if shared.lists else nullable(shape))


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
