"""The tasks of a write: rows in, files out, nothing visible until the commit."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.actions.tasks.write_global import plan_global
from lakewright.actions.tasks.write_group import write_group
from lakewright.actions.tasks.write_plan import Planner, apart
from lakewright.actions.tasks.write_prepare import EVERYWHERE, Preparer
from lakewright.actions.tasks.write_shelf import Shelf
from lakewright.actions.tasks.write_spec import (
    FileWritten,
    GroupWork,
    KeysToDelete,
    WriteSpec,
    looks_up,
)
from lakewright.model.schema import RECORD_KEY
from lakewright.storage.streams import map_bounded

__all__ = ["plan_groups", "stream_groups", "write_group", "write_stream"]

#: Rows that are split at a time: large enough that few pieces are left of many groups, small
#: enough that copying them stays in the cache.
_SPLIT_ROWS = 256 << 10
#: A batch of so many rows is split by itself; smaller ones are put together first.
_WORTH_SPLITTING = 64 << 10


def plan_groups(
    spec: WriteSpec, rows: pa.Table | None, deletes: KeysToDelete | None = None
) -> Iterator[GroupWork]:
    """Say what happens to each file group, given all rows and deletes of a write."""
    batches: list[pa.RecordBatch] = []
    if rows is not None:
        batches += _gathered(rows.to_batches())
    preparer = Preparer(spec, 0)
    with Shelf(_ENDLESS) as shelf:
        for pieces in map_bounded(preparer.pieces, batches, threads=pa.cpu_count()):
            for piece in pieces:
                shelf.put(piece)
        gone = Shelf(_ENDLESS)
        if deletes is not None and len(deletes):
            for piece in preparer.deletes(deletes):
                gone.put(piece)
        yield from _works(spec, shelf, gone)


def stream_groups(
    spec: WriteSpec, batches: Iterable[pa.RecordBatch], attempt: Attempt
) -> Iterator[GroupWork]:
    """Say what happens to each file group, given the rows of one task.

    All rows are taken in before the first group is named. The rows of a group are loaded when
    it is; whoever holds several groups at once holds their rows.
    """
    preparer = Preparer(spec, attempt.task)
    with Shelf(spec.settings.spill_bytes) as shelf:
        large = _gathered(batches)
        for pieces in map_bounded(preparer.pieces, large, threads=pa.cpu_count()):
            for piece in pieces:
                shelf.put(piece)
        yield from _works(spec, shelf, Shelf(_ENDLESS))


def write_stream(
    spec: WriteSpec, batches: Iterable[pa.RecordBatch], attempt: Attempt
) -> Iterator[FileWritten]:
    """Write the rows of one task, group after group."""
    for work in stream_groups(spec, batches, attempt):
        yield from write_group(spec, work, attempt)


_ENDLESS = 1 << 62
#: Partitions that are listed at the same time.
_LISTINGS = 8


def _works(spec: WriteSpec, shelf: Shelf, gone: Shelf) -> Iterator[GroupWork]:
    places = sorted({*shelf.places(), *gone.places()})
    if spec.layout.kind.is_global and looks_up(spec) and EVERYWHERE in places:
        rows, deletes = shelf.take(EVERYWHERE), _keys(gone.take(EVERYWHERE))
        yield from plan_global(spec, *apart(spec, rows, deletes))
        return
    planner = Planner(spec)
    inner: dict[str, list[str]] = {}
    for partition, name in places:
        inner.setdefault(partition, []).append(name)
    # Listings of far stores are slow one by one: some are fetched ahead.
    for files in map_bounded(spec.pinned.files, inner, threads=min(_LISTINGS, len(inner) or 1)):
        for name in inner[files.partition]:
            place = (files.partition, name)
            yield from planner.works(files, name, shelf.take(place), _keys(gone.take(place)))


def _keys(rows: pa.Table | None) -> pa.Array | None:
    return None if rows is None else rows.column(RECORD_KEY).combine_chunks()


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put small batches together, and cut large ones, to what is split at a time."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        for part in _cut(batch):
            if part.num_rows >= _WORTH_SPLITTING:
                yield part
                continue
            waiting.append(part)
            rows += part.num_rows
            if rows >= _SPLIT_ROWS:
                yield _one(waiting)
                waiting, rows = [], 0
    if waiting:
        yield _one(waiting)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, _SPLIT_ROWS):
        yield batch.slice(start, _SPLIT_ROWS)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
