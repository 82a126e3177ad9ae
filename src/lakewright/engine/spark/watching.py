"""How far Spark has come with the jobs of a write, told while they run."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from uuid import uuid4

from lakewright.engine.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

#: Is told how many tasks are done, of how many that are known by now.
TaskWatcher: TypeAlias = Callable[[int, int], None]

#: Seconds between two looks.
_PAUSE = 0.5
_GROUP = "spark.jobGroup.id"
_OWN = "lakewright-"


class Stage(Protocol):
    """What Spark Connect says of a stage."""

    num_tasks: int
    num_completed_tasks: int


@contextmanager
def watched(spark: "SparkSession", told: TaskWatcher | None) -> Iterator[None]:
    """Tell of the tasks of the jobs that the block runs, in this thread, on the session.

    A classic session is asked twice a second, by a thread that ends with the block. The jobs are
    known by their group: the caller's own where there is one, else one that is set for the block
    alone. A Connect server reports by itself, of all that the session runs, from Spark 4.0 on.
    Nothing that goes wrong here reaches the caller.
    """
    if told is None:
        yield
    elif not is_connect(spark):
        with _asked(spark.sparkContext, told):
            yield
    elif hasattr(spark, "registerProgressHandler"):
        with _reported(spark, told):
            yield
    else:
        yield


@contextmanager
def _asked(context: "SparkContext", told: TaskWatcher) -> Iterator[None]:
    given = context.getLocalProperty(_GROUP)
    if given and given.startswith(_OWN):
        yield  # a block around this one tells of its jobs
        return
    group = given or f"{_OWN}{uuid4()}"
    earlier = frozenset(context.statusTracker().getJobIdsForGroup(group)) if given else frozenset()
    over = Event()
    asking = Thread(
        target=_ask,
        args=(context, group, earlier, told, over),
        name="lakewright-tasks",
        daemon=True,
    )
    if not given:
        context.setLocalProperty(_GROUP, group)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()
        if not given:
            context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]


def _ask(
    context: "SparkContext", group: str, earlier: frozenset[int], told: TaskWatcher, over: Event
) -> None:
    before = (0, 0)
    while not over.wait(_PAUSE):
        try:
            counts = _counted(context.statusTracker(), group, earlier)
            if counts != before:
                told(*counts)
            before = counts
        except Exception:
            # The session may just end, which is not this thread's affair.
            log.debug("Spark does not tell of its tasks", exc_info=True)
            return


def _counted(tracker: Any, group: str, earlier: frozenset[int]) -> tuple[int, int]:  # noqa: ANN401
    """Return the tasks that are done, and all; a stage that a finished job skipped has none."""
    done = known = 0
    for number in tracker.getJobIdsForGroup(group):
        job = None if number in earlier else tracker.getJobInfo(number)
        if job is None:
            continue
        for stage in job.stageIds:
            info = tracker.getStageInfo(stage)
            if info is None:
                continue
            done += info.numCompletedTasks
            known += info.numTasks if job.status == "RUNNING" else info.numCompletedTasks
    return done, known


@contextmanager
def _reported(spark: "SparkSession", told: TaskWatcher) -> Iterator[None]:
    seen: dict[str | None, tuple[int, int]] = {}

    def report(
        stages: Iterable[Stage] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        some = list(stages or ())
        if some:
            finished = sum(stage.num_completed_tasks for stage in some)
            seen[operation_id] = (finished, sum(stage.num_tasks for stage in some))
            told(*(sum(numbers) for numbers in zip(*seen.values(), strict=True)))

    session: Any = spark
    session.registerProgressHandler(report)
    try:
        yield
    finally:
        session.removeProgressHandler(report)
