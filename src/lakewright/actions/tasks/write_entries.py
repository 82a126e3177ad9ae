"""What a log file says of which keys, and where those lie in the base file below it."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_old import OldBase
from lakewright.actions.tasks.write_spec import GroupWork, WriteSpec
from lakewright.model.files import BaseFile, FileSlice
from lakewright.model.schema import (
    RECORD_KEY,
)
from lakewright.table.merge import ordering as order
from lakewright.table.merge.combine import incoming_deletes, ordering_columns
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Flags, Places


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """What is said of which keys: records that stay, then deletes of either kind.

    ``untimed`` marks the soft deletes that have no ordering value.
    """

    rows: pa.Table | None
    row_places: Places
    soft: pa.Table | None
    hard: pa.Array
    untimed: Flags

    @staticmethod
    def of(work: GroupWork, policy: MergePolicy) -> "Entries":
        """Tell apart what the rows of a group say."""
        hard = pa.array([], pa.string()) if work.deletes is None else work.deletes
        if work.rows is None or not work.rows.num_rows:
            return Entries(None, np.empty(0, np.int64), None, hard, np.empty(0, bool))
        deleted, untimed = incoming_deletes(work.rows, policy)
        if not deleted.any():
            places = np.arange(work.rows.num_rows)
            return Entries(work.rows, places, None, hard, np.empty(0, bool))
        kept = np.flatnonzero(~deleted)
        rows = work.rows.take(pa.array(kept)) if len(kept) else None
        soft = work.rows.filter(pa.array(deleted))
        return Entries(rows, kept, soft, hard, untimed[deleted])

    def __len__(self) -> int:
        return self.row_count + self.delete_count

    @property
    def row_count(self) -> int:
        """Records."""
        return 0 if self.rows is None else int(self.rows.num_rows)

    @property
    def delete_count(self) -> int:
        """Deletes of both kinds."""
        return (0 if self.soft is None else int(self.soft.num_rows)) + len(self.hard)

    @property
    def with_values(self) -> pa.Table | None:
        """Records and soft deletes: what a stored row may be compared with."""
        parts = [part for part in (self.rows, self.soft) if part is not None]
        return pa.concat_tables(parts) if parts else None

    @property
    def delete_keys(self) -> pa.Array:
        """The keys of the deletes, those with ordering values first."""
        parts = [] if self.soft is None else list(self.soft.column(RECORD_KEY).chunks)
        return pa.chunked_array([*parts, self.hard], pa.string()).combine_chunks()

    @property
    def row_keys(self) -> pa.Array:
        """The keys of the records."""
        if self.rows is None:
            return pa.array([], pa.string())
        return self.rows.column(RECORD_KEY).combine_chunks()


@dataclass(frozen=True, slots=True, eq=False)
class EntryPlaces:
    """Where entries lie in the base file (-1: nowhere), and which of them a stored row beats."""

    rows: Places
    deletes: Places
    losing_rows: Flags
    losing_deletes: Flags


def find_places(
    spec: WriteSpec, work: GroupWork, piece: FileSlice, entries: Entries, policy: MergePolicy
) -> EntryPlaces | None:
    """Look entries up in the base file; None where nobody has to know."""
    if work.insert_only or piece.base is None:
        return None
    ordering = policy.ordering if policy.event_time and not piece.logs else ()
    if work.positions is not None and not entries.delete_count:
        rows = np.asarray(pc.fill_null(work.positions, -1))[entries.row_places].astype(np.int64)
        late = _late(spec, piece.base, entries, rows, ordering)
        return EntryPlaces(rows, np.empty(0, np.int64), late, np.empty(0, bool))
    if not writes_positions(spec):
        return None
    keys = pa.chunked_array([entries.row_keys, entries.delete_keys], pa.string()).combine_chunks()
    more = tuple(dict.fromkeys(name.split(".")[0] for name in ordering))
    places = np.full(len(keys), -1, np.int64)
    compared = entries.with_values
    values = ordering_columns(compared, ordering) if compared is not None else ()
    losing = np.zeros(entries.row_count + len(entries.untimed), bool)
    start = 0
    with OldBase.open(spec, piece.base) as old:
        for batch in old.key_batches(more):
            found = pc.index_in(old.keys(batch), value_set=keys)
            rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
            which = found.drop_null().to_numpy().astype(np.int64)
            # A key that the file holds twice keeps its first place, as readers have it.
            rows, which = rows[::-1], which[::-1]
            fresh = places[which] < 0
            places[which[fresh]] = rows[fresh] + start
            start += batch.num_rows
            if values:
                stored = old.ordering_values(_met(batch, rows, more), ordering)
                losing |= _losing(stored, which, values, len(losing))
    count = entries.row_count
    resisted = losing[count:] & ~entries.untimed
    return EntryPlaces(places[:count], places[count:], losing[:count], resisted)


def writes_positions(spec: WriteSpec) -> bool:
    """Whether the log blocks of a write say which rows of the base file they replace."""
    return spec.settings.positions and spec.config.version >= 8


def _late(
    spec: WriteSpec, base: BaseFile, entries: Entries, places: Places, ordering: tuple[str, ...]
) -> Flags:
    """Mark the rows that the stored row at their place beats by its ordering value."""
    late = np.zeros(len(places), bool)
    if entries.rows is None or not ordering:
        return late
    values = ordering_columns(entries.rows, ordering)
    start = 0
    with OldBase.open(spec, base) as old:
        more = tuple(name.split(".")[0] for name in ordering)
        for batch in old.column_batches(more):
            here = np.flatnonzero((places >= start) & (places < start + batch.num_rows))
            stored = old.ordering_values(_met(batch, places[here] - start, more), ordering)
            late |= _losing(stored, here, values, len(places))
            start += batch.num_rows
    return late


def _met(batch: pa.RecordBatch, rows: Places, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Return some columns of some stored rows: few are met, and the others need no look."""
    names = [name for name in batch.schema.names if name in columns]
    return batch.select(names).take(pa.array(rows))


def _losing(stored: order.Columns, which: Places, values: order.Columns, count: int) -> Flags:
    """Mark the values, by their places ``which``, that the stored ones beat."""
    flags = np.zeros(count, bool)
    if len(stored) != len(values):
        return flags
    data = np.flatnonzero(which < count)
    which = which[data]
    beats = order.exceeds(
        tuple(c.take(pa.array(data)) for c in stored),
        tuple(c.take(pa.array(which)) for c in values),
    )
    flags[which[beats]] = True
    return flags
