"""Whole rows against whole rows of a base file: each key has one winner."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.tasks.write_old import OldBase
from lakewright.actions.tasks.write_spec import GroupWork, WriteSpec
from lakewright.format.hudi.base_write import (
    key_bounds,
)
from lakewright.model.schema import RECORD_KEY
from lakewright.table.merge import ordering as order
from lakewright.table.merge.combine import incoming_deletes, ordering_columns
from lakewright.table.merge.policy import MergePolicy
from lakewright.table.merge.winners import Flags, Places


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the incoming rows and deletes, and the range of the keys that are new."""

    inserted: int
    updated: int
    deleted: int
    key_range: tuple[str, str] | None


class Contest:
    """Whole rows against whole rows: each key has one winner."""

    def __init__(self, spec: WriteSpec, work: GroupWork, policy: MergePolicy) -> None:
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
                yield batch.filter(pa.array(stays))
        wins = ~self._lost[: self._count] & ~self._deletes[: self._count]
        if self._rows is not None and wins.any():
            self._changed = True
            chosen = self._rows if wins.all() else self._rows.filter(pa.array(wins))
            yield from chosen.to_batches()

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
        stays = np.ones(len(keys), bool)
        stays[rows[beaten]] = False
        return stays

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
