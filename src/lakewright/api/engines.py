"""Which engine carries out a write."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakewright.actions.executor import (
    Executor,
    Item,
    ItemFunction,
    Made,
    Shared,
    Spread,
    StreamFunction,
)
from lakewright.actions.write.admission import check_names
from lakewright.actions.write.intake import write_options
from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.rows import ArrowRows
from lakewright.api.rows import arrow_rows, is_spark_frame
from lakewright.engine.local.executor import LocalExecutor
from lakewright.model.schema import Struct
from lakewright.table.evolution import stored_schema
from lakewright.table.state import TableState

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession

TaskWatcher: TypeAlias = Callable[[int, int], None]


class SessionExecutor:
    """Rows of this process, files by a Spark session.

    Few rows are divided here and their file groups written by Spark's tasks. Many pass through
    this process in any case, so that it writes them itself, in bounded memory.
    """

    def __init__(self, rows: LocalExecutor, files: Executor[Any]) -> None:
        self._rows = rows
        self._files = files

    def schema(self, rows: ArrowRows) -> Struct:
        """Return the columns of the rows."""
        return self._rows.schema(rows)

    def few(self, rows: ArrowRows, limit: int) -> pa.Table | None:
        """Return the rows where they take at most ``limit`` bytes."""
        return self._rows.few(rows, limit)

    def map(
        self,
        function: ItemFunction[Shared, Item, Made],
        shared: Shared,
        items: Sequence[Item],
        *,
        size: Callable[[Item], int],
    ) -> Iterator[Made]:
        """Run a function over items on the session."""
        return self._files.map(function, shared, items, size=size)

    def stream(
        self,
        function: StreamFunction[Shared, Made],
        shared: Shared,
        rows: ArrowRows,
        spread: Spread,
    ) -> Iterator[Made]:
        """Run a function over the rows in this process."""
        return self._rows.stream(function, shared, rows, spread)


def choose_engine(
    state: TableState,
    rows: object,
    request: WriteRequest[Any],
    *,
    session: "SparkSession | None",
    makes: "SparkSession | None" = None,
    told: TaskWatcher | None = None,
) -> tuple[Executor[Any], Any]:
    """Return the engine of a write, and its rows in the form that this engine takes.

    A Spark DataFrame is written by its session, and so is what the session ``makes``; other rows
    are taken by this process, which leaves files to ``session`` where the table has one. ``told``
    hears of Spark's tasks, how many are done and how many there are. Rows with columns that only
    the writer itself puts beside rows are refused: they would be taken for its own.
    """
    engine, given = _chosen(state, rows, request, session, makes, told)
    if given is not None:
        check_names(engine.schema(given))
    return engine, given


def _chosen(
    state: TableState,
    rows: object,
    request: WriteRequest[Any],
    session: "SparkSession | None",
    makes: "SparkSession | None",
    told: TaskWatcher | None,
) -> tuple[Executor[Any], Any]:
    options = write_options(state, request)
    if makes is not None or (rows is not None and is_spark_frame(rows)):
        frame: Any = rows if rows is None else _told(rows, stored_schema(state))
        return _on_spark(makes or frame.sparkSession, options, told), frame
    # A change makes its rows anew for every attempt.
    once = not request.retry or request.change is not None
    local = LocalExecutor(options, once=once)
    given = None if rows is None else arrow_rows(rows, stored_schema(state))
    if session is None:
        return local, given
    return SessionExecutor(local, _on_spark(session, options, told)), given


def service_engine(
    options: Mapping[str, str],
    session: "SparkSession | None",
    told: TaskWatcher | None = None,
) -> Executor[Any]:
    """Return the engine of a table service: the session's, else this process."""
    return LocalExecutor(options) if session is None else _on_spark(session, options, told)


def _told(frame: Any, like: Struct | None) -> Any:  # noqa: ANN401 - pyspark is not imported for its name
    from lakewright.engine.spark.schema import told_voids

    return told_voids(frame, like)


def _on_spark(
    session: "SparkSession", options: Mapping[str, str], told: TaskWatcher | None
) -> Executor[Any]:
    from lakewright.engine.spark.executor import SparkExecutor

    return SparkExecutor(session, options, told)
