"""Spark's side of the Python data source protocol, without Spark.

Writers are made in one process, used in others and ended in a third: everything that Spark sends
between processes goes through pickle here, too.
"""

import itertools
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from lakewright.actions.executor import Attempt
from lakewright.api.schemas import read_schema
from lakewright.engine.spark.schema import to_spark_schema
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.interfaces.spark_source import direct, sink, staged
from lakewright.interfaces.spark_source.source import LakewrightSource

T = TypeVar("T")
Task = Sequence[dict[str, Any]]


class TaskFailed(Exception):
    """A task that was told to fail."""


def sent(value: T) -> T:
    """Return what another process gets."""
    copy: T = pickle.loads(pickle.dumps(value))
    return copy


class Protocol:
    """Runs writes as Spark does: tasks of rows, then commit, or abort where one failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, schema: str) -> None:
        self._schema = read_schema(schema)
        self.spark_schema = to_spark_schema(self._schema)
        self._arrow = to_arrow_schema(self._schema)
        self._runs = itertools.count(1)
        self._monkeypatch = monkeypatch
        self.patch()

    def patch(self) -> "Protocol":
        """Let the tasks of this process be told apart, as Spark's are."""
        for module in (direct, staged, sink):
            patched = self._monkeypatch.setattr
            patched(module, "attempt", lambda: Attempt(0, 1, next(self._runs)))
        return self

    def batches(self, rows: Task) -> Iterable[pa.RecordBatch]:
        return pa.Table.from_pylist(list(rows), self._arrow).to_batches()

    def save(
        self,
        path: str,
        tasks: Sequence[Task],
        *,
        overwrite: bool = False,
        fails: Callable[[int, int], bool] = lambda task, attempt: False,
        between: Callable[[], None] = lambda: None,
        lose: bool = False,
        **options: str,
    ) -> None:
        """Write; ``fails`` says of a task and its attempt (0 to 3) whether it fails at its end.

        ``between`` happens after the tasks; ``lose`` drops the first message, as Spark's own
        row-level plans do.
        """
        source = LakewrightSource({"path": path, **options})
        writer = source.writer(self.spark_schema, overwrite)
        messages: list[Any] = [None] * len(tasks)
        try:
            for number, rows in enumerate(tasks):
                messages[number] = self._task(writer, number, rows, fails)
            between()
            if lose:
                messages[0] = None
            sent(writer).commit(sent(messages))
        except Exception:
            sent(writer).abort(sent(messages))
            raise

    def _task(self, writer: Any, number: int, rows: Task, fails: Callable[[int, int], bool]) -> Any:
        for attempt in range(4):
            message = sent(sent(writer).write(iter(self.batches(rows))))
            if not fails(number, attempt):
                return message
        raise TaskFailed(f"task {number}")

    def batch(
        self, path: str, query: str, number: int, tasks: Sequence[Task], **options: str
    ) -> None:
        """Write one micro-batch of a stream."""
        overwrite = False
        source = LakewrightSource({"path": path, **options})
        whose = sink.StreamBatch(query, number)
        self._monkeypatch.setattr(sink, "_whose", lambda: whose)
        writer = source.streamWriter(self.spark_schema, overwrite)
        messages: list[Any] = [None] * len(tasks)
        try:
            for place, rows in enumerate(tasks):
                messages[place] = self._task(writer, place, rows, lambda task, attempt: False)
            source.streamWriter(self.spark_schema, overwrite).commit(sent(messages), number)
        except Exception:
            source.streamWriter(self.spark_schema, overwrite).abort(sent(messages), number)
            raise
