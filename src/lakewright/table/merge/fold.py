"""Merging column by column: partial updates and custom mergers.

Where a newer record may leave columns to the older one, a winner cannot be named by its place;
the merged log records themselves are held, one row per key, and then meet the base file batch
by batch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.nested import Column
from lakewright.model.schema import META_COLUMNS
from lakewright.table.merge import ordering as order
from lakewright.table.merge.merger import RecordMerger
from lakewright.table.merge.policy import Gap, MergePolicy
from lakewright.table.merge.winners import Flags, Places


@dataclass(frozen=True, slots=True, eq=False)
class Versions:
    """Versions of records, one per row.

    ``absent`` marks, by column, the rows that do not speak about that column at all. ``deleted``
    and ``hard`` are those of log entries; the row of a delete means nothing.
    """

    keys: pa.Array
    rows: pa.Table
    absent: Mapping[str, Flags]
    deleted: Flags
    hard: Flags
    ordering: order.Columns

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, places: Places) -> "Versions":
        """Return the versions at these places."""
        picked = pa.array(places)
        return Versions(
            keys=self.keys.take(picked),
            rows=self.rows.take(picked),
            absent={name: flags[places] for name, flags in self.absent.items()},
            deleted=self.deleted[places],
            hard=self.hard[places],
            ordering=tuple(column.take(picked) for column in self.ordering),
        )


def stack(parts: list[Versions]) -> Versions:
    """Put versions of equal schema below each other."""
    names = {name for part in parts for name in part.absent}
    width = len(parts[0].ordering)

    def absent(part: Versions, name: str) -> Flags:
        return part.absent.get(name, np.zeros(len(part), dtype=bool))

    return Versions(
        keys=pa.chunked_array([p.keys for p in parts]).combine_chunks(),
        rows=pa.concat_tables([p.rows for p in parts]),
        absent={name: np.concatenate([absent(p, name) for p in parts]) for name in names},
        deleted=np.concatenate([p.deleted for p in parts]),
        hard=np.concatenate([p.hard for p in parts]),
        ordering=tuple(
            pa.chunked_array([p.ordering[i] for p in parts]).combine_chunks() for i in range(width)
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Folding:
    """The rule that makes one version of two: the policy, or a custom merger under it."""

    policy: MergePolicy
    merger: RecordMerger | None = None

    def add(self, state: Versions | None, block: Versions, *, tombstones: bool) -> Versions:
        """Fold the records of the next block into the state, in the order of its records."""
        for places in _rounds(block.keys):
            part = block.take(places)
            state = part if state is None else self._add_distinct(state, part, tombstones)
        return block if state is None else state

    def _add_distinct(self, state: Versions, part: Versions, tombstones: bool) -> Versions:
        found = pc.index_in(part.keys, value_set=state.keys)
        known = np.asarray(found.is_valid())
        old = found.drop_null().to_numpy().astype(np.int64)
        untouched = np.ones(len(state), dtype=bool)
        untouched[old] = False
        merged = self.merge(
            state.take(old), part.take(np.flatnonzero(known)), tombstones=tombstones
        )
        return stack(
            [state.take(np.flatnonzero(untouched)), merged, part.take(np.flatnonzero(~known))]
        )

    def merge(
        self,
        older: Versions,
        newer: Versions,
        *,
        tombstones: bool = False,
    ) -> Versions:
        """Merge two versions of the same records, row by row."""
        newer_wins = np.ones(len(newer), dtype=bool)
        if self.policy.event_time and newer.ordering and older.ordering:
            settled = newer.hard | older.hard
            newer_wins = settled | ~order.exceeds(older.ordering, newer.ordering)
        if tombstones:
            newer_wins &= ~older.hard
        place = np.arange(len(newer))
        both = stack([older, newer])
        chosen = both.take(np.where(newer_wins, place + len(older), place))
        pairs = np.flatnonzero(~older.deleted & ~newer.deleted)
        if self.merger is not None:
            return self._by_merger(self.merger, older, newer, chosen, pairs)
        return self._filled(both, chosen, newer_wins, pairs)

    def _filled(
        self,
        both: Versions,
        high: Versions,
        newer_wins: Flags,
        pairs: Places,
    ) -> Versions:
        count = len(high)
        place = np.arange(count)
        of_high = np.where(newer_wins, place + count, place)
        of_low = np.where(newer_wins, place, place + count)
        mergeable = np.zeros(count, dtype=bool)
        mergeable[pairs] = True
        columns, absent = [], {}
        for name in both.rows.schema.names:
            column = high.rows.column(name)
            gap = self._gaps(column)
            missing = both.absent.get(name)
            if missing is not None:
                gap = gap | missing[of_high]
                absent[name] = missing[of_high] & (missing[of_low] | ~mergeable)
            if self.policy.meta_of_later and name in META_COLUMNS:
                gap = ~newer_wins
            gap = gap & mergeable
            if gap.any():
                source = pa.array(np.where(gap, of_low, of_high))
                column = both.rows.column(name).take(source)
            columns.append(column)
        rows = pa.Table.from_arrays(columns, schema=both.rows.schema)
        return Versions(high.keys, rows, absent, high.deleted, high.hard, high.ordering)

    def _gaps(self, column: Column) -> Flags:
        match self.policy.gap:
            case Gap.NULLS:
                return np.asarray(column.is_null(), dtype=bool)
            case Gap.MARKER if self.policy.marker is not None:
                if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
                    marker = pa.scalar(self.policy.marker).cast(column.type)
                    return np.asarray(pc.fill_null(pc.equal(column, marker), False), dtype=bool)
        return np.zeros(len(column), dtype=bool)

    @staticmethod
    def _by_merger(
        merger: RecordMerger, older: Versions, newer: Versions, chosen: Versions, pairs: Places
    ) -> Versions:
        result = merger.merge(older.take(pairs).rows, newer.take(pairs).rows)
        gone = (
            np.zeros(len(pairs), dtype=bool)
            if result.kept is None
            else ~np.asarray(result.kept, dtype=bool)
        )
        rest = np.setdiff1d(np.arange(len(chosen)), pairs)
        merged = newer.take(pairs)
        merged = Versions(
            merged.keys,
            pa.table(result.rows).cast(merged.rows.schema),
            merged.absent,
            gone,
            np.zeros(len(pairs), dtype=bool),
            merged.ordering,
        )
        # The newer record speaks even where it is a delete: a custom merger sees records only.
        stacked = stack([newer.take(rest), merged])
        back = np.empty(len(chosen), dtype=np.int64)
        back[np.concatenate([rest, pairs])] = np.arange(len(chosen))
        return stacked.take(back)


def _rounds(keys: pa.Array) -> Iterator[Places]:
    """Split a block into runs without repeated keys: first all first records, then the second."""
    if len(keys) == 0:
        return
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    by_key = np.argsort(codes, kind="stable")
    fresh = np.concatenate([[True], np.diff(codes[by_key]) != 0])
    starts = np.maximum.accumulate(np.where(fresh, np.arange(len(codes)), 0))
    turn = np.empty(len(codes), dtype=np.int64)
    turn[by_key] = np.arange(len(codes)) - starts
    for number in range(int(turn.max()) + 1):
        yield np.flatnonzero(turn == number)


@dataclass(frozen=True, slots=True, eq=False)
class Meeting:
    """What came of base rows: all rows after it, and those that met log records, pair by pair."""

    rows: pa.Table
    before: pa.Table
    after: Versions


class FoldedBase:
    """The meeting of folded log records with the base file, batch after batch."""

    def __init__(self, folding: Folding, state: Versions) -> None:
        self._folding = folding
        self._state = state
        self._met = np.zeros(len(state), dtype=bool)
        self.deleted = 0

    @property
    def met(self) -> int:
        """How many log records have met a base row so far; ``deleted`` of those rows are gone."""
        return int(self._met.sum())

    def meet(
        self,
        keys: pa.Array,
        rows: pa.Table,
        ordering: order.Columns,
    ) -> pa.Table:
        """Return the rows that come out of the next base rows, as one table."""
        found = self.meeting(keys, rows, ordering)
        return rows if found is None else found.rows

    def meeting(
        self,
        keys: pa.Array,
        rows: pa.Table,
        ordering: order.Columns,
    ) -> Meeting | None:
        """Do as ``meet``, and tell the pairs too; None where the base rows stay as they are."""
        found = pc.index_in(keys, value_set=self._state.keys)
        touched = np.asarray(found.is_valid(), dtype=bool)
        places = np.flatnonzero(touched)
        which = found.drop_null().to_numpy().astype(np.int64)
        first = np.zeros(len(which), dtype=bool)
        first[np.unique(which, return_index=True)[1]] = True
        first &= ~self._met[which]
        places, which = places[first], which[first]
        if len(which) == 0:
            return None
        self._met[which] = True
        nothing = np.zeros(len(places), dtype=bool)
        picked = pa.array(places)
        older = Versions(
            keys=keys.take(picked),
            rows=rows.take(picked),
            absent={},
            deleted=nothing,
            hard=nothing,
            ordering=tuple(column.take(picked) for column in ordering),
        )
        merged = self._folding.merge(older, self._state.take(which))
        stays = np.ones(len(keys), dtype=bool)
        stays[places] = False
        alive = merged.rows.filter(pa.array(~merged.deleted))
        self.deleted += len(merged) - alive.num_rows
        made = pa.concat_tables([rows.filter(pa.array(stays)), alive])
        return Meeting(made, older.rows, merged)

    def rest(self) -> pa.Table:
        """Return the log records that met no base row and are not deletes."""
        return self._state.rows.filter(pa.array(~self._met & ~self._state.deleted))
