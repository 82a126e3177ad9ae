"""Running a job whose tasks answer with values."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lakewright.engine.spark.carrying import ANSWER, answers_of, error_in
from lakewright.engine.spark.watching import TaskWatcher, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def answers(
    source: "DataFrame",
    run: Callable[[Iterable[Any]], Iterator[Any]],
    told: TaskWatcher | None = None,
) -> Iterator[Any]:
    """Run a worker's function over the partitions of a DataFrame, and return what it made.

    An error of ours in a task is raised as what it was, Spark's own behind it. ``told`` hears
    of the tasks while they run.
    """
    with own_errors(), watched(source.sparkSession, told):
        rows = source.mapInArrow(run, f"{ANSWER} binary").collect()
    for row in rows:
        yield from answers_of(bytes(row[0]))


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise errors of ours that come out of Spark's tasks as what they were."""
    try:
        yield
    except PySparkException as failure:
        error = error_in(str(failure))
        if error is None:
            raise
        raise error from failure
