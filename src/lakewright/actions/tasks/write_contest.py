"""Whole rows against whole rows of a base file: each key has one winner."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_changes import ChangeLog
from lakewright.actions.tasks.write_old import OldBase
from lakewright.actions.tasks.write_spec import GroupWork
from lakewright.format.arrow.shared_columns import filtered
from lakewright.format.hudi.base_write import key_bounds
from lakewright.model.schema import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from lakewright.table.merge import ordering as order
from lakewright.table.merge.combine import incoming_deletes, ordering_columns
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Flags, Places

#: Stored rows that are told of at a time, each with a copy of what took its place.
_TOLD_ROWS = 64 << 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the incoming rows and deletes, and the range of the keys that are new."""

    inserted: int
    updated: int
    deleted: int
    key_range: tuple[str, str] | None


class Contest:
    """Whole rows against whole rows: each key has one winner."""

    def __init__(
        self, work: GroupWork, policy: MergePolicy, changes: ChangeLog | None = None
    ) -> None:
        self._changes = changes
        self._beaten: list[tuple[pa.Table, Places]] = []
        self._ordering = () if work.insert_only or not policy.event_time else policy.ordering
        self._insert_only = work.insert_only
        self._rows = work.rows
        deletes = 0 if work.deletes is None else len(work.deletes)
        count = 0 if work.rows is None else work.rows.num_rows
        flags = (np.zeros(0, bool), np.zeros(0, bool))
        keys: list[pa.Array] = []
        self._values: order.Columns = ()
        if work.rows is not None:
            keys += work.rows.column(RECORD_KEY).chunks
            flags = incoming_deletes(work.rows, policy)
            self._values = ordering_columns(work.rows, self._ordering)
        if work.deletes is not None:
            keys.append(work.deletes)
        every = np.ones(deletes, bool)
        self._keys = _joined(keys)
        self._count = count
        self._deletes = np.concatenate([flags[0], every])
        self._hard = np.concatenate([flags[1], every])
        self._met = np.zeros(count + deletes, bool)
        self._lost = np.zeros(count + deletes, bool)
        self._changed = False

    def run(self, old: OldBase) -> Iterator[pa.RecordBatch]:
        """Stream the stored rows that stay, then the incoming rows that win."""
        for batch in old.batches():
            if self._insert_only:
                yield batch
                continue
            stays = self._stays(old.keys(batch), batch)
            if stays is None:
                yield batch
            else:
                yield filtered(batch, pa.array(stays))
        wins = ~self._lost[: self._count] & ~self._deletes[: self._count]
        if self._rows is not None and wins.any():
            self._changed = True
            chosen = self._rows if wins.all() else self._rows.filter(pa.array(wins))
            yield from chosen.to_batches()
        if self._changes is not None:
            self._tell(self._changes)

    def _stays(self, keys: pa.Array, batch: pa.RecordBatch) -> Flags | None:
        """Mark the stored rows that stay; None where all do."""
        found = pc.index_in(keys, value_set=self._keys)
        if found.null_count == len(found):
            return None
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        which = found.drop_null().to_numpy().astype(np.int64)
        self._met[which] = True
        beaten = np.ones(len(rows), bool)
        if self._values:
            beaten = ~self._beats(batch, rows, which)
            self._lost[which[~beaten]] = True
        if not beaten.any():
            return None
        self._changed = True
        if self._changes is not None:
            self._keep(self._changes, batch, rows[beaten], which[beaten])
        stays = np.ones(len(keys), bool)
        stays[rows[beaten]] = False
        return stays

    def _keep(self, changes: ChangeLog, batch: pa.RecordBatch, rows: Places, which: Places) -> None:
        """Tell of deletes at once; hold the others till it is known what takes their place.

        So no more stored rows are held than rows came in, but for keys that are stored twice.
        """
        kept = [n for n in batch.schema.names if n not in (COMMIT_TIME, COMMIT_SEQNO)]
        old = pa.Table.from_batches([batch.select(kept).take(pa.array(rows))])
        by_row = which < self._count
        if not by_row.all():
            changes.deleted(old.filter(pa.array(~by_row)))
        if by_row.any():
            self._beaten.append((old.filter(pa.array(by_row)), which[by_row]))

    def _tell(self, changes: ChangeLog) -> None:
        """Tell what became of the stored rows that gave way, and which rows are new."""
        if self._rows is None:
            return
        settled = self._lost | self._deletes
        while self._beaten:
            rows, places = self._beaten.pop(0)
            for start in range(0, len(places), _TOLD_ROWS):
                old, which = rows.slice(start, _TOLD_ROWS), places[start : start + _TOLD_ROWS]
                first = np.zeros(len(which), bool)
                first[np.unique(which, return_index=True)[1]] = True
                # Of a key that was stored twice one row is replaced, and the other is gone.
                replaced = first & ~settled[which]
                settled[which] = True
                changes.deleted(old.filter(pa.array(~replaced)))
                after = self._rows.take(pa.array(which[replaced]))
                changes.updated(old.filter(pa.array(replaced)), after)
        new = ~self._met[: self._count] & ~self._deletes[: self._count]
        changes.inserted(self._rows.filter(pa.array(new)))

    def _beats(self, batch: pa.RecordBatch, rows: Places, which: Places) -> Flags:
        """Say which stored rows beat the incoming ones of their key."""
        hard = self._hard[which]
        met = np.where(hard, 0, which)
        if not self._count:
            return np.zeros(len(rows), bool)
        taken = pa.array(rows)
        stored = tuple(c.take(taken) for c in ordering_columns(batch, self._ordering))
        incoming = tuple(column.take(pa.array(met)) for column in self._values)
        beats: Flags = order.exceeds(stored, incoming) & ~hard
        return beats

    def changed(self) -> bool:
        """Say whether the rows streamed so far differ from the stored ones."""
        return self._changed

    def outcome(self) -> Outcome:
        """Return the counts, once all has been streamed."""
        wins = ~self._lost
        count = self._count
        new = ~self._met[:count] & ~self._deletes[:count]
        return Outcome(
            inserted=int(new.sum()),
            updated=int((self._met & wins & ~self._deletes).sum()),
            deleted=int((self._met & wins & self._deletes).sum()),
            key_range=key_bounds(self._keys.filter(pa.array(_padded(new, len(self._met))))),
        )


def _joined(parts: list[pa.Array]) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.chunked_array(parts, pa.string()).combine_chunks()


def _padded(flags: Flags, size: int) -> Flags:
    return np.concatenate([flags, np.zeros(size - len(flags), bool)])
