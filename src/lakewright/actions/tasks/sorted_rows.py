"""Sorting rows in bounded memory: sorted runs on the task's own disk, merged as they are read."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Rows that come out together.
_BATCH = 64 << 10
#: Rows of a run that lie in memory while runs are merged.
_HEAD = 16 << 10


def sorted_rows(
    batches: Iterable[pa.RecordBatch], by: Sequence[str], limit: int
) -> Iterator[pa.RecordBatch]:
    """Stream rows in the order of some columns, nulls last.

    Up to about ``limit`` bytes are held; what is more lies in files that go when the stream ends.
    """
    with ExitStack() as stack:
        runs: list[Path] = []
        folder: Path | None = None
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size >= limit:
                if folder is None:
                    made = tempfile.TemporaryDirectory(prefix="lakewright-sort-")
                    folder = Path(stack.enter_context(made))
                runs.append(_stored(_sorted(held, by), folder / f"{len(runs)}.arrow"))
                held, size = [], 0
        if not runs:
            if held:
                yield from _sorted(held, by).to_batches(max_chunksize=_BATCH)
            return
        if held:
            assert folder is not None
            runs.append(_stored(_sorted(held, by), folder / f"{len(runs)}.arrow"))
            held = []
        opened = [stack.enter_context(pa.memory_map(str(path))) for path in runs]
        yield from _merged([_Run(file) for file in opened], by)


def _sorted(batches: Sequence[pa.RecordBatch], by: Sequence[str]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table.take(_order(table, by)).combine_chunks()


def _order(table: pa.Table, by: Sequence[str]) -> pa.Array:
    return pc.sort_indices(table.select(list(dict.fromkeys(by))), [(n, "ascending") for n in by])


def _stored(table: pa.Table, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_HEAD)
    return path


class _Run:
    """A sorted file, and the first of its rows that have not come out yet."""

    def __init__(self, file: pa.MemoryMappedFile) -> None:
        self._reader = pa.ipc.open_file(file)
        self._next = 0
        self.head: pa.Table | None = None
        self.drop(0)

    @property
    def has_more(self) -> bool:
        """Whether rows follow the head."""
        return bool(self._next < self._reader.num_record_batches)

    def drop(self, count: int) -> None:
        """Take rows off the head; a head that is used up is followed by the next."""
        head = None if self.head is None else self.head.slice(count)
        while (head is None or not head.num_rows) and self.has_more:
            head = pa.Table.from_batches([self._reader.get_batch(self._next)])
            self._next += 1
        self.head = head if head is not None and head.num_rows else None


def _merged(runs: Sequence[_Run], by: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Stream the rows of runs in order.

    All rows up to the least of the last rows of heads can come out: none that is still on disk
    comes before it. Heads that begin after it take no part, so that runs which do not overlap
    cost no more than reading them.
    """
    while living := [run for run in runs if run.head is not None]:
        last = _least_last(living, by)
        taking = living if last is None else _beginning_before(living, last, by)
        heads = [run.head for run in taking if run.head is not None]
        table = pa.concat_tables(heads)
        order = _order(table, by).to_numpy()
        if last is not None:
            ends = np.cumsum([head.num_rows for head in heads])
            bound = int(ends[taking.index(last)]) - 1
            order = order[: int(np.flatnonzero(order == bound)[0]) + 1]
        yield from table.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=_BATCH)
        starts = np.cumsum([0, *(head.num_rows for head in heads)])
        # Sorting is stable, so that what came out of a head are its first rows.
        counts = np.histogram(order, bins=starts)[0]
        for run, count in zip(taking, counts, strict=True):
            run.drop(int(count))


def _least_last(runs: Sequence[_Run], by: Sequence[str]) -> _Run | None:
    """Return the run whose head ends first, among those of which more rows follow."""
    going = [run for run in runs if run.has_more]
    lasts = [run.head.slice(run.head.num_rows - 1) for run in going if run.head is not None]
    if not lasts:
        return None
    first: int = _order(pa.concat_tables(lasts), by)[0].as_py()
    return going[first]


def _beginning_before(runs: Sequence[_Run], last: _Run, by: Sequence[str]) -> list[_Run]:
    """Return the runs whose head begins before another one's ends, that one included."""
    assert last.head is not None
    firsts = [run.head.slice(0, 1) for run in runs if run.head is not None]
    bound = last.head.slice(last.head.num_rows - 1)
    order = _order(pa.concat_tables([*firsts, bound]), by).to_numpy()
    before = {int(n) for n in order[: int(np.flatnonzero(order == len(firsts))[0])]}
    return [run for number, run in enumerate(runs) if number in before or run is last]
