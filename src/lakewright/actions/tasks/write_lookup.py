"""Tables without buckets: keys are looked up, changes go where they lie, the rest finds room."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakewright.actions.tasks.write_sizing import allot, new_file_id
from lakewright.actions.tasks.write_spec import GroupWork, WriteSpec, looks_up
from lakewright.index.key_lookup import SEVERAL
from lakewright.index.record_index import RecordIndex, Tagged
from lakewright.model.files import FileGroupId, FileSlice
from lakewright.model.schema import RECORD_KEY
from lakewright.model.table import TableType
from lakewright.table.merge.winners import Places
from lakewright.table.pinned import PartitionFiles

_NOWHERE = pa.array([], pa.string())


def plan_lookup(
    spec: WriteSpec, files: PartitionFiles, rows: pa.Table | None, deletes: pa.Array | None
) -> Iterator[GroupWork]:
    """Return what happens to the groups of one partition, given all that comes for it."""
    if looks_up(spec) or deletes is not None:
        keys = _keys(rows, deletes)
        where = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(len(keys), np.int32)), pa.array([files.partition], pa.string())
        )
        index = RecordIndex(spec.pinned, spec.layout)
        tagged = index.tag(keys, where, {files.partition: files}).settled()
    else:
        none = np.empty(0, np.int64)
        tagged = Tagged((), none, none, none, np.empty(0, bool))
    count = 0 if rows is None else rows.num_rows
    changes = Changes.of(spec, tagged, count)
    yield from group_works(spec, files, rows, _NOWHERE if deletes is None else deletes, changes)


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """By file id: the slice, the rows that change in it, their places, and the deletes.

    ``new`` are the rows that no group holds, ``repeated`` the groups whose base files hold
    several rows of a key that changes.
    """

    held: Mapping[str, tuple[FileSlice, Places, Places, Places]]
    new: Places
    repeated: frozenset[str] = frozenset()

    @staticmethod
    def of(spec: WriteSpec, tagged: Tagged, count: int) -> "Changes":
        """Divide what was found by slice; the first ``count`` keys are rows, others deletes."""
        held = {}
        known = np.zeros(count, bool)
        for number, piece in enumerate(tagged.slices):
            here = tagged.slice == number
            row, position = tagged.row[here], tagged.position[here]
            is_row = row < count
            rows, places = row[is_row], position[is_row]
            if spec.drop_existing:
                # What a log deleted is not there, and the row is added as any new one.
                known[rows[tagged.alive[here][is_row]]] = True
                rows, places = rows[:0], places[:0]
            known[rows] = True
            if len(rows) or not bool(is_row.all()):
                held[piece.group.file_id] = (piece, rows, places, row[~is_row] - count)
        return Changes(held, np.flatnonzero(~known), repeated_in(tagged))


def group_works(
    spec: WriteSpec,
    files: PartitionFiles,
    rows: pa.Table | None,
    deletes: pa.Array,
    changes: Changes,
) -> Iterator[GroupWork]:
    """Return the works of a partition: changed groups, with the new rows that find room there."""
    rewrites = spec.config.table_type is TableType.COPY_ON_WRITE
    # A base file cannot be written anew by a commit that adds a log to it.
    busy = frozenset() if rewrites else frozenset(changes.held)
    grown: dict[str, tuple[FileSlice, pa.Table]] = {}
    if rows is not None and len(changes.new):
        fresh = rows if len(changes.new) == rows.num_rows else rows.take(pa.array(changes.new))
        for piece, some in allot(spec, files, fresh, busy):
            if piece is None:
                group = FileGroupId(files.partition, new_file_id())
                yield GroupWork(group, None, some, partition_known=files.has_metadata)
            elif piece.group.file_id in changes.held:
                grown[piece.group.file_id] = (piece, some)
            else:
                yield GroupWork(piece.group, piece, some, insert_only=True, partition_known=True)
    for file_id, (piece, changed, positions, gone) in changes.held.items():
        parts = [] if rows is None or not len(changed) else [rows.take(pa.array(changed))]
        if file_id in grown:
            parts.append(grown[file_id][1])
            positions = np.concatenate([positions, np.full(grown[file_id][1].num_rows, -1)])
        yield GroupWork(
            piece.group,
            piece,
            pa.concat_tables(parts) if parts else None,
            deletes.take(pa.array(gone)) if len(gone) else None,
            positions=pa.array(positions) if parts and bool((positions >= 0).any()) else None,
            partition_known=True,
            repeated=file_id in changes.repeated,
        )


def repeated_in(tagged: Tagged) -> frozenset[str]:
    """Return the ids of the groups whose base files hold several rows of a key."""
    numbers = np.unique(tagged.slice[tagged.position == SEVERAL])
    return frozenset(tagged.slices[number].group.file_id for number in numbers.tolist())


def _keys(rows: pa.Table | None, deletes: pa.Array | None) -> pa.Array:
    parts = [] if rows is None else list(rows.column(RECORD_KEY).chunks)
    if deletes is not None:
        parts.append(deletes)
    return pa.chunked_array(parts, pa.string()).combine_chunks()
