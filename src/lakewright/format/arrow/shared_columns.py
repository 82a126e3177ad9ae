"""Batches in which several columns share their memory: it is gone through once.

The record key of a row is most often one of its columns, so that rows on their way into a file
hold the same long texts twice. What is taken, filtered or joined here shares as before.
"""

from collections.abc import Callable, Hashable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Bytes of text that one array holds at most.
_MOST_BYTES = (1 << 31) - 1


def taken(rows: pa.RecordBatch, places: pa.Array) -> pa.RecordBatch:
    """Return the rows at some places, none of which lies outside."""
    return _changed(rows, lambda column: _taken(column, places))


def filtered(rows: pa.RecordBatch, flags: pa.Array) -> pa.RecordBatch:
    """Return the rows whose flag is set."""
    return _changed(rows, lambda column: column.filter(flags))


def joined_batches(rows: pa.Table) -> list[pa.RecordBatch]:
    """Return all rows as one batch, or as few as their texts fit into."""
    # All of the memory that the rows lie in is counted at once, their own part takes longer.
    if rows.get_total_buffer_size() > _MOST_BYTES and rows.nbytes > _MOST_BYTES:
        return list(rows.combine_chunks().to_batches())
    made: dict[Hashable, list[tuple[pa.ChunkedArray, pa.Array]]] = {}
    columns = []
    for column in rows.columns:
        # Columns that share their memory do so from the first chunk on.
        first = _identity(column.chunk(0)) if column.num_chunks else object()
        alike = made.setdefault(first, [])
        joined = next((array for other, array in alike if _same(column, other)), None)
        if joined is None:
            joined = column.combine_chunks()
            alike.append((column, joined))
        columns.append(joined)
    return [pa.RecordBatch.from_arrays(columns, schema=rows.schema)]


def shared_column(batches: Iterable[pa.RecordBatch], name: str) -> str | None:
    """Return another column that lies in the same memory as a column of text in all batches."""
    found: str | None = None
    for batch in batches:
        mark = _identity(batch.column(name))
        if found is None:
            columns = zip(batch.schema.names, batch.columns, strict=True)
            others = (other for other, c in columns if other != name and _identity(c) == mark)
            found = next(others, None)
        if found is None or _identity(batch.column(found)) != mark:
            return None
    return found


def _changed(rows: pa.RecordBatch, change: Callable[[pa.Array], pa.Array]) -> pa.RecordBatch:
    made: dict[Hashable, pa.Array] = {}
    columns = []
    for column in rows.columns:
        mark = _identity(column)
        if mark not in made:
            made[mark] = change(column)
        columns.append(made[mark])
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _taken(column: pa.Array, places: pa.Array) -> pa.Array:
    size = _one_size(column)
    if size is None or size * len(places) > _MOST_BYTES:
        return pc.take(column, places, boundscheck=False)
    # Values of one size are copied without a look at where each begins and ends.
    _, offsets, data = column.buffers()
    first = np.frombuffer(offsets, np.int32, 1, 4 * column.offset)[0]
    values = pa.Array.from_buffers(pa.binary(size), len(column), [None, data.slice(int(first))])
    found = pc.take(values, places, boundscheck=False).buffers()[1]
    ends = np.arange(0, (len(places) + 1) * size, size, dtype=np.int32)
    return pa.StringArray.from_buffers(len(places), pa.py_buffer(ends), found)


def _one_size(column: pa.Array) -> int | None:
    """Return the bytes of each text of a column; None where they differ, or it is no such."""
    if not pa.types.is_string(column.type) or column.null_count or not len(column):
        return None
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    ends = offsets[column.offset : column.offset + len(column) + 1]
    size = int(ends[1] - ends[0])
    whole = size > 0 and int(ends[-1] - ends[0]) == size * len(column)
    return size if whole and bool(np.all(ends[1:] - ends[:-1] == size)) else None


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    """Tell whether columns lie in the same memory, chunk by chunk."""
    pairs = zip(one.chunks, other.chunks, strict=False)
    return one.num_chunks == other.num_chunks and all(
        _identity(mine) == _identity(its) for mine, its in pairs
    )


def _identity(column: pa.Array) -> Hashable:
    """Return what is equal for columns of text that lie in the same memory, and for no others."""
    if not pa.types.is_string(column.type):
        return object()
    places = (None if buffer is None else buffer.address for buffer in column.buffers())
    return (column.offset, len(column), *places)
