"""The executor port: who runs task functions, here or elsewhere.

Task functions are plain functions of modules (workers import them by name); what they share and
what they work on can be pickled. A task may run more than once, and twice at the same time: each
run has its own ``Attempt``, and everything it writes carries its token.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.schema import Struct

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Made = TypeVar("Made")
Rows_contra = TypeVar("Rows_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of one task: its number, its stage, and a number that no other run has."""

    task: int = 0
    stage: int = 0
    run: int = 0

    @property
    def token(self) -> str:
        """The write token in the names of its files."""
        return f"{self.task}-{self.stage}-{self.run}"


ItemFunction: TypeAlias = Callable[[Shared, Item, Attempt], Made]
StreamFunction: TypeAlias = Callable[[Shared, Iterable[pa.RecordBatch], Attempt], Iterable[Made]]
#: A number per row; rows of equal numbers belong together.
Route: TypeAlias = Callable[[pa.RecordBatch], npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Staged(Generic[Shared, Item, Made]):
    """A function over streams made of two: the first divides rows into items, the second works.

    An engine may call it like any other; one that has threads to spare may run the second over
    several items at a time.
    """

    divide: StreamFunction[Shared, Item]
    work: ItemFunction[Shared, Item, Iterable[Made]]

    def __call__(
        self, shared: Shared, batches: Iterable[pa.RecordBatch], attempt: Attempt
    ) -> Iterator[Made]:
        """Run both, one item after the other."""
        for item in self.divide(shared, batches, attempt):
            yield from self.work(shared, item, attempt)


@dataclass(frozen=True, slots=True)
class Spread:
    """Which rows of a stream must reach the same task.

    Rows that are equal in all ``columns`` do. With ``buckets`` they need to be equal in their
    bucket only as well: its number follows from the record key by Hudi's hash over
    ``hash_fields``, and from how many buckets the row's partition has. ``together`` sends all
    rows to one task. Without any of them, the engine divides as it likes. ``sort_by`` orders the
    rows, within tasks or, with ``sort_all``, over them.

    ``route`` says the same as a function that can be pickled. An engine may find buckets in its
    own way where ``key_fields`` names the one column whose plain text is the record key; it is
    empty where the key is made in another way, and so is ``columns`` where partitions do not
    follow one to one from their columns. ``lookup`` says that tasks must find out which keys
    are stored where; an engine that does it for them routes by what it found.
    """

    columns: tuple[str, ...] = ()
    buckets: BucketCounts | None = None
    hash_fields: tuple[str, ...] = ()
    key_fields: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    sort_all: bool = False
    together: bool = False
    lookup: bool = False
    route: Route | None = None


class Executor(Protocol[Rows_contra]):
    """Runs tasks over items and over rows; the rows are the engine's own.

    The local engine takes an ``ArrowRows`` (a table, or a reader that can be opened again); the
    Spark engine takes a DataFrame.
    """

    def schema(self, rows: Rows_contra) -> Struct:
        """Return the columns of the rows; none of them is computed for it."""
        ...

    def few(self, rows: Rows_contra, limit: int) -> pa.Table | None:
        """Return the rows, all of them, if they take at most ``limit`` bytes in Arrow's memory.

        None where they are more, or where finding out would cost more than it saves. Rows of
        a source that is not deterministic are computed once for the answer that is used.
        """
        ...

    def map(
        self,
        function: ItemFunction[Shared, Item, Made],
        shared: Shared,
        items: Sequence[Item],
        *,
        size: Callable[[Item], int],
    ) -> Iterator[Made]:
        """Run a function over items, several per task where they are small; stream the answers.

        ``size`` is about how many bytes an item reads and writes; it decides where tasks run
        and how they are packed. The order of answers is not promised. The first error is raised
        here, and no further task begins.
        """
        ...

    def stream(
        self,
        function: StreamFunction[Shared, Made],
        shared: Shared,
        rows: Rows_contra,
        spread: Spread,
    ) -> Iterator[Made]:
        """Run a function over the rows, divided among tasks; stream what the tasks make.

        No row reaches the caller. Memory is bounded per task, and what does not fit is put on
        the task's own disk by the function.
        """
        ...
