"""Running tasks in threads of this process."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from lakewright.actions.executor import (
    Attempt,
    Item,
    ItemFunction,
    Made,
    Shared,
    Spread,
    Staged,
    StreamFunction,
)
from lakewright.actions.threads import run_in_threads, threads_for
from lakewright.actions.write.rows import ArrowRows
from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.model.options import declare, parse_count
from lakewright.model.schema import Struct

THREADS = declare(
    "lakewright.write.threads",
    parse_count,
    0,
    doc="Files that are written at the same time without Spark; 0 stands for twice the number of "
    "processors: a file that waits for its disk leaves one to another.",
    since="0.1",
    allowed="a whole number, 0 or more",
)


class LocalExecutor:
    """The executor of this process, for rows in Arrow.

    Threads are enough: decoding, encoding and hashing leave Python's lock alone. A stream is one
    task, whatever its spread; where it divides rows into items, those are worked on in threads.
    With ``once`` rows are streamed at most once, so that a reader need not be kept for later.
    """

    def __init__(self, options: Mapping[str, str] | None = None, *, once: bool = False) -> None:
        self._threads = THREADS.read(options or {}) or threads_for(os.cpu_count() or 1)
        self._once = once

    def schema(self, rows: ArrowRows) -> Struct:
        """Return the columns of the rows."""
        return from_arrow_schema(rows.schema)

    def few(self, rows: ArrowRows, limit: int) -> pa.Table | None:
        """Return the rows where they take at most ``limit`` bytes."""
        return rows.few(limit)

    def map(
        self,
        function: ItemFunction[Shared, Item, Made],
        shared: Shared,
        items: Sequence[Item],
        *,
        size: Callable[[Item], int],
    ) -> Iterator[Made]:
        """Run a function over items in threads, the largest first."""
        ordered = sorted(items, key=size, reverse=True)
        return run_in_threads(function, shared, ordered, threads=self._threads)

    def stream(
        self,
        function: StreamFunction[Shared, Made],
        shared: Shared,
        rows: ArrowRows,
        spread: Spread,
    ) -> Iterator[Made]:
        """Run a function over the rows, in memory bounded by what it keeps and a few items."""
        attempt = Attempt(0, 0, secrets.randbelow(1 << 31))
        batches = rows.batches(last=self._once)
        if not isinstance(function, Staged):
            yield from function(shared, batches, attempt)
            return
        items = function.divide(shared, batches, attempt)
        for made in run_in_threads(function.work, shared, items, threads=self._threads, stage=1):
            yield from made
