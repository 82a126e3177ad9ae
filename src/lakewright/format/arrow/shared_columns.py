"""Batches in which several columns share their memory: it is gone through once.

The record key of a row is most often one of its columns, so that rows on their way into a file
hold the same long texts twice. What is taken, filtered or joined here shares as before.
"""

from collections.abc import Callable, Hashable

import pyarrow as pa
import pyarrow.compute as pc

#: Bytes of text that one array holds at most.
_MOST_BYTES = (1 << 31) - 1


def taken(rows: pa.RecordBatch, places: pa.Array) -> pa.RecordBatch:
    """Return the rows at some places, none of which lies outside."""
    return _changed(rows, lambda column: pc.take(column, places, boundscheck=False))


def filtered(rows: pa.RecordBatch, flags: pa.Array) -> pa.RecordBatch:
    """Return the rows whose flag is set."""
    return _changed(rows, lambda column: column.filter(flags))


def joined_batches(rows: pa.Table) -> list[pa.RecordBatch]:
    """Return all rows as one batch, or as few as their texts fit into."""
    if rows.nbytes > _MOST_BYTES:
        return list(rows.combine_chunks().to_batches())
    made: dict[Hashable, pa.Array] = {}
    columns = []
    for column in rows.columns:
        mark = tuple(_identity(chunk) for chunk in column.chunks)
        if mark not in made:
            made[mark] = column.combine_chunks()
        columns.append(made[mark])
    return [pa.RecordBatch.from_arrays(columns, schema=rows.schema)]


def _changed(rows: pa.RecordBatch, change: Callable[[pa.Array], pa.Array]) -> pa.RecordBatch:
    made: dict[Hashable, pa.Array] = {}
    columns = []
    for column in rows.columns:
        mark = _identity(column)
        if mark not in made:
            made[mark] = change(column)
        columns.append(made[mark])
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _identity(column: pa.Array) -> Hashable:
    """Return what is equal for columns of text that lie in the same memory, and for no others."""
    if not pa.types.is_string(column.type):
        return object()
    places = (None if buffer is None else buffer.address for buffer in column.buffers())
    return (column.offset, len(column), *places)
