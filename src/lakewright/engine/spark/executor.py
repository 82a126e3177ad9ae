"""The executor of Spark: the tasks of a write on a session's workers, or on the driver if small."""

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from lakewright.actions.executor import (
    Item,
    ItemFunction,
    Made,
    Shared,
    Spread,
    StreamFunction,
)
from lakewright.actions.tasks.write_settings import DRIVER_WORK
from lakewright.actions.tasks.write_spec import WriteSpec
from lakewright.actions.threads import run_in_threads, threads_for
from lakewright.engine.spark.answers import answers
from lakewright.engine.spark.carrying import pack_items, pack_job
from lakewright.engine.spark.collect import few_rows
from lakewright.engine.spark.estimate import Estimate, estimate
from lakewright.engine.spark.murmur import slots
from lakewright.engine.spark.routing import ODD_KEY, Telling, divided
from lakewright.engine.spark.schema import from_spark_schema
from lakewright.engine.spark.session import ensure_workers, parallelism, setting
from lakewright.engine.spark.tagging import NewKeys, Sizing, Slots, plan_slots, tagged
from lakewright.engine.spark.tasks import LARGEST_TASK, bundle_count, pack_tasks
from lakewright.engine.spark.watching import TaskWatcher, watched
from lakewright.engine.spark.workers import in_worker
from lakewright.engine.spark.write_worker import ItemsJob, StreamJob
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.partition_paths import SLASHED_DATES
from lakewright.model.schema import Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

#: Bundles up to this size together travel with the function; every worker gets all of them.
_CARRIED = 4 << 20
#: Bytes, as the optimizer estimates them, below which a task is not worth its worker, and above
#: which a task should be two: about a million rows.
_SMALLEST_TASK = 8 << 20
_LARGEST_TASK = 128 << 20
#: What listing a partition counts as, in bytes of other work.
_LISTING = 1 << 20


class SparkExecutor:
    """Runs tasks on the workers of a session, classic or Connect; rows are DataFrames.

    ``options`` are those of the write; ``told`` hears how far the tasks are.
    """

    def __init__(
        self,
        spark: "SparkSession",
        options: Mapping[str, str] = MappingProxyType({}),
        told: TaskWatcher | None = None,
    ) -> None:
        self._spark = spark
        self._told = told
        self._options = options
        self._driver_work = DRIVER_WORK.read(options)
        LARGEST_TASK.read(options)  # a wrong one is told before anything is written
        self._width = parallelism(spark)
        self._local = (setting(spark, "spark.master") or "").startswith("local")
        self._stages = itertools.count()
        self._estimates: tuple[DataFrame, Estimate] | None = None

    def schema(self, rows: "DataFrame") -> Struct:
        """Return the columns of the rows."""
        return from_spark_schema(rows.schema)

    def few(self, rows: "DataFrame", limit: int) -> pa.Table | None:
        """Return the rows if Spark expects few and few come."""
        return few_rows(rows, self._estimate(rows), limit)

    def map(
        self,
        function: ItemFunction[Shared, Item, Made],
        shared: Shared,
        items: Sequence[Item],
        *,
        size: Callable[[Item], int],
    ) -> Iterator[Made]:
        """Run a function over items: little work of a local master in threads, else in tasks."""
        if not items:
            return iter(())
        sizes = [size(item) for item in items]
        if self._local and sum(sizes) <= self._driver_work:
            stage = next(self._stages)
            return run_in_threads(
                function, shared, items, threads=threads_for(self._width), stage=stage
            )
        return self._in_tasks(ItemsJob(function, shared), items, sizes)

    def _in_tasks(
        self, job: ItemsJob, items: Sequence[Item], sizes: Sequence[int]
    ) -> Iterator[Made]:
        ensure_workers(self._spark)
        wanted = bundle_count(sizes, self._width, self._options)
        numbers = pack_tasks(range(len(items)), wanted, lambda number: sizes[number])
        bundles = [pack_items([(n, items[n]) for n in bundle]) for bundle in numbers]
        packed, count = pack_job(job), len(bundles)
        if sum(len(bundle) for bundle in bundles) <= _CARRIED:
            source = self._spark.range(0, count, 1, count)
            run = in_worker("write_worker", "run_carried", packed, tuple(bundles))
        else:
            rows = list(zip(slots(count), bundles, strict=True))
            frame = self._spark.createDataFrame(rows, "slot int, bundle binary")
            source = frame.repartition(count, "slot").select("bundle")
            run = in_worker("write_worker", "run_items", packed)
        return answers(source, run, self._told)

    def stream(
        self,
        function: StreamFunction[Shared, Made],
        shared: Shared,
        rows: "DataFrame",
        spread: Spread,
    ) -> Iterator[Made]:
        """Run a function over the rows in Spark tasks; only its answers reach the driver."""
        ensure_workers(self._spark)
        schema = to_arrow_schema(from_spark_schema(rows.schema))
        run = in_worker("write_worker", "run_stream", pack_job(StreamJob(function, shared, schema)))
        tasks = self._tasks(rows)
        if spread.buckets is not None or spread.lookup:
            # Few rows may touch many files: what is rewritten is not in the estimate.
            tasks = max(tasks, 2 * self._width)
        if spread.lookup and isinstance(shared, WriteSpec) and _stays_in_place(shared):
            yield from self._looked_up(cast("Any", function), shared, rows, tasks)
            return
        telling = Telling()
        if isinstance(shared, WriteSpec):
            telling = _telling(shared, spread)
        try:
            yield from answers(divided(rows, spread, tasks, telling), run, self._told)
        except Exception as error:
            if ODD_KEY not in str(error) or spread.route is None:
                raise
            log.info("a key holds its own field's name: buckets are computed by workers")
        else:
            return
        by_workers = divided(rows, spread, tasks, replace(telling, by_hash=False))
        yield from answers(by_workers, run, self._told)

    def _looked_up(
        self,
        function: StreamFunction[WriteSpec, Made],
        spec: WriteSpec,
        rows: "DataFrame",
        tasks: int,
    ) -> Iterator[Made]:
        """Find the group of every row by a join first."""

        def places(sizing: Sizing, items: Sequence[NewKeys]) -> Iterator[Slots]:
            return self.map(plan_slots, sizing, items, size=lambda _: _LISTING)

        with ExitStack() as kept:
            with watched(self._spark, self._told):
                routed = kept.enter_context(tagged(rows, spec, places, tasks))
            schema = to_arrow_schema(from_spark_schema(routed.schema))
            run = in_worker(
                "write_worker", "run_stream", pack_job(StreamJob(function, spec, schema))
            )
            yield from answers(routed, run, self._told)

    def _tasks(self, rows: "DataFrame") -> int:
        """Return how many tasks rows are worth."""
        expected = self._estimate(rows)
        if not expected.known:
            told = setting(self._spark, "spark.sql.shuffle.partitions") or ""
            wide = int(told) if told.isdigit() and not self._local else 0
            return max(2 * self._width, wide)
        worthwhile = min(2 * self._width, -(-expected.size // _SMALLEST_TASK))
        return max(1, worthwhile, -(-expected.size // _LARGEST_TASK))

    def _estimate(self, rows: "DataFrame") -> Estimate:
        if self._estimates is None or self._estimates[0] is not rows:
            self._estimates = (rows, estimate(rows))
        return self._estimates[1]


def _telling(spec: WriteSpec, spread: Spread) -> Telling:
    config = spec.config
    slashed = config.properties.get(SLASHED_DATES, "").lower() == "true"
    named = len(spread.columns) == len(config.partition_fields)
    return Telling(
        hive=config.hive_style,
        schema=spec.schema,
        plain_paths=named and not (slashed or config.url_encode),
    )


def _stays_in_place(spec: WriteSpec) -> bool:
    """Whether no key can lie in another partition than the one that its row names."""
    return not (spec.layout.kind.is_global and spec.config.partition_fields)
