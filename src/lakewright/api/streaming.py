"""Streams in and out of a table, for every Spark, and without one."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakewright.actions.follow import EARLIEST, Follow, check_read, first_offset, next_offset
from lakewright.actions.scan import ScanRequest
from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.stream_batch import StreamBatch
from lakewright.api.arguments import column_names, text_of
from lakewright.api.scan import Scan
from lakewright.api.writing import Writable
from lakewright.model.errors import Invalid, LakewrightError, NotFound
from lakewright.model.expression.nodes import Expression
from lakewright.model.files import ReadingMode
from lakewright.model.instant import Instant, effective_time, is_instant_time
from lakewright.model.options import check_options
from lakewright.model.writing import Operation, WriteResult
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state

if TYPE_CHECKING:
    from lakewright.engine.spark.names import DataFrame

_OPERATIONS = {
    "insert": Operation.INSERT,
    "bulk_insert": Operation.BULK_INSERT,
    "upsert": Operation.UPSERT,
    "delete": Operation.DELETE,
}
#: How often a batch runs again after conflicts with other writers.
RETRY = 5


class _Target(Writable):
    """A table to write to that can be pickled: without a session of its own."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name
        self._spark = None

    def run(self, rows: object, request: WriteRequest[Any]) -> WriteResult:
        """Run a write on the engine that its rows choose."""
        return self._run(self._state(), rows, request)


class StreamWriter:
    """Writes the batches of one stream, each of them once: the function for ``foreachBatch``.

    It can be pickled: on Spark Connect it runs where the server is.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        operation: Operation,
        options: Mapping[str, str],
        *,
        stream: str | None,
        checkpoint: str | None,
        retry: int,
    ) -> None:
        self._storage = storage
        self._target = _Target(storage, name)
        self._operation = operation
        self._options = dict(options)
        self._stream = stream
        self._checkpoint = checkpoint
        self._retry = retry

    def __call__(self, rows: "DataFrame | object", batch: int) -> WriteResult | None:
        """Write a batch; None where the table holds it already, or a later one of the stream."""
        if self._stream is None:
            self._stream = query_id(self._checkpoint or "", self._storage.options)
        part = StreamBatch(self._stream, batch)
        request: WriteRequest[Any] = WriteRequest(
            self._operation,
            options=self._options,
            metadata=part.metadata,
            retry=self._retry,
            check=part.check,
            guard=part.guard,
        )
        try:
            part.begin(open_state(self._storage))
            result = self._target.run(rows, request)
        except LakewrightError:
            if part.is_in(open_state(self._storage)):
                return None
            raise
        if result.instant is not None:
            part.done(self._storage, result.instant)
        return result


@dataclass(frozen=True, slots=True)
class Window:
    """Commits that took effect after ``start`` up to ``end``, and the scan of what they changed.

    ``end`` is where to go on: keep it when the rows are safe, and start the next time from it.
    """

    start: str
    end: str
    scan: Scan


class Streaming(Writable):
    """The verbs of streams; ``Table`` has them."""

    def stream_writer(
        self,
        *,
        operation: str = "upsert",
        checkpoint: str | None = None,
        stream: str | None = None,
        options: Mapping[str, str] | None = None,
        retry: int = RETRY,
    ) -> StreamWriter:
        """Return the function for ``df.writeStream.foreachBatch(…)``.

        A batch that is run again, after a crash or by a second run of the query, is written
        once. ``checkpoint`` is the ``checkpointLocation`` of the query, from which its id is
        read; or ``stream`` names it, over all its restarts. ``operation`` is ``insert``,
        ``bulk_insert``, ``upsert`` or ``delete``. The rows stay on the executors.
        """
        if (checkpoint is None) == (stream is None):
            raise Invalid(
                "a stream writer needs the checkpoint of its query or a name for the stream, and "
                "one of them.",
                next_step='Try stream_writer(checkpoint="…"), with the query\'s own '
                "checkpointLocation.",
            )
        for name, given in (("checkpoint", checkpoint), ("stream", stream)):
            if given is not None and not text_of(name, given):
                raise Invalid(f"{name} is empty.", next_step="Give a text that names it.")
        kind = _OPERATIONS.get(text_of("operation", operation).lower())
        if kind is None:
            raise Invalid(
                f"operation={operation!r} is not known.",
                next_step=f"Allowed: {', '.join(_OPERATIONS)}.",
            )
        check_options(options or {}, self._state().config.properties if options else {})
        return StreamWriter(
            self._storage,
            self._name,
            kind,
            options or {},
            stream=stream,
            checkpoint=checkpoint,
            retry=retry,
        )

    def follow(
        self,
        start: Instant | str = EARLIEST,
        *,
        changes: bool = False,
        where: Expression | str | None = None,
        columns: Sequence[str] | None = None,
        meta: bool = False,
        max_instants: int | None = None,
    ) -> Iterator[Window]:
        """Yield what is new after ``start``, window by window, until nothing is.

        ``start`` is the end of the last window that was read, ``earliest``, ``latest``, an
        instant or a time. A window takes ``max_instants`` commits, or all; its scan gives the
        rows that they changed, or with ``changes=True`` the changes themselves. ``HistoryGone``
        where what was read up to ``start`` was taken back since, by a rollback or a restore.
        """
        _check_limit(max_instants)
        request = ScanRequest(
            where=where,
            columns=column_names(columns),
            meta=meta,
            mode=ReadingMode.CDC if changes else ReadingMode.INCREMENTAL,
        )
        return self._windows(Follow(request, max_instants), _begins(start))

    def _windows(self, follow: Follow, start: str) -> Iterator[Window]:
        state = self._state()
        offset = first_offset(state, start)
        if is_instant_time(start):
            check_read(state, follow, offset)
        while (end := next_offset(state, follow, offset)) != offset:
            asked = replace(follow.request, start=offset, end=end)
            yield Window(offset, end, Scan(state, asked, name=self._name, spark=self._spark))
            offset, state = end, self._state()
            check_read(state, follow, offset)


def _check_limit(value: object) -> None:
    if value is not None and not (isinstance(value, int) and value >= 1):
        raise Invalid(f"max_instants={value!r}.", next_step="Allowed: 1 or more, None.")


def _begins(start: object) -> str:
    """Return where to begin, of what a user gave."""
    since = effective_time(start) if isinstance(start, Instant) else start
    if isinstance(since, str):
        return since
    raise Invalid(
        f"start={start!r} says not where to begin.",
        next_step="Give 'earliest', 'latest', an instant, a time, or the end of a window.",
    )


def query_id(checkpoint: str, options: Mapping[str, str]) -> str:
    """Return the id of the streaming query whose checkpoint lies at a path.

    Spark writes it when the query first starts, and keeps it over restarts.
    """
    try:
        told = json.loads(open_storage(checkpoint, options).read("metadata"))
        return str(told["id"])
    except NotFound as cause:
        raise Invalid(
            f"there is no checkpoint of a query at {checkpoint}.",
            next_step="Give the checkpointLocation of the query that calls this writer, or name "
            "the stream: stream_writer(stream=…).",
            checkpoint=checkpoint,
        ) from cause
    except (ValueError, TypeError, KeyError) as cause:
        raise Invalid(
            f"{checkpoint}/metadata does not hold the id of a query.",
            next_step="Name the stream instead: stream_writer(stream=…).",
            checkpoint=checkpoint,
        ) from cause
