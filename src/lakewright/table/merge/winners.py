"""Who wins among the log records of one file slice, and against its base file.

Only keys, ordering values and places (block, row) are held; the rows themselves are fetched
afterwards. The rules are those of Hudi's own merging, record after record:

* commit time: the later record wins, deletes included;
* event time: the record with the greater ordering value wins, on a tie the later one. A delete
  without an ordering value (a *hard* delete) wins over whatever the logs held before, and
  anything after it wins over it. The winner of the logs then meets the row of the base file
  under the same rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.table.merge import ordering as order

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BlockEntries:
    """What one log block says about which records, in the order of its records.

    ``keys`` are record keys, or row positions in the base file; ``ordering`` holds comparable
    columns and is empty under commit-time merging. ``deletes`` marks records that delete,
    ``hard`` those of them without an ordering value; None means none. ``tombstones`` says that
    this is a delete block, which yields to an earlier hard delete.
    """

    keys: pa.Array
    ordering: order.Columns = ()
    deletes: Flags | None = None
    hard: Flags | None = None
    tombstones: bool = False

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True, eq=False)
class LogWinners:
    """The last word of the logs for every key they mention.

    ``block`` and ``row`` say where the winning record lies; ``deleted`` whether it deletes,
    ``hard`` whether it does so whatever the base file holds. ``ordering`` is empty where the
    base file has no say.
    """

    keys: pa.Array
    block: Places
    row: Places
    deleted: Flags
    hard: Flags
    ordering: order.Columns = ()

    def __len__(self) -> int:
        return len(self.keys)


def resolve(blocks: Sequence[BlockEntries], *, event_time: bool) -> LogWinners:
    """Find the winning log record of every key."""
    keys, codes = _encode([block.keys for block in blocks])
    lengths = np.array([len(block) for block in blocks], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    deletes = _flags([b.deletes for b in blocks], lengths)
    hard = _flags([b.hard for b in blocks], lengths)
    columns: order.Columns = ()
    if event_time and blocks and blocks[0].ordering:
        width = len(blocks[0].ordering)
        columns = tuple(
            pa.chunked_array([b.ordering[i] for b in blocks]).combine_chunks() for i in range(width)
        )
    if columns:
        tombstones = np.repeat(np.array([b.tombstones for b in blocks], dtype=bool), lengths)
        winner = _by_event_time(codes, len(keys), order.ranks(columns), hard, tombstones)
    else:
        winner = _last(codes, len(keys))
    block = np.searchsorted(starts, winner, side="right") - 1
    picked = pa.array(winner)
    return LogWinners(
        keys=keys,
        block=block,
        row=winner - starts[block],
        deleted=deletes[winner],
        hard=hard[winner],
        ordering=tuple(column.take(picked) for column in columns),
    )


def _encode(keys: Sequence[pa.Array]) -> tuple[pa.Array, Places]:
    keys = [part for part in keys if len(part)]
    if not keys:
        return pa.array([], pa.string()), np.empty(0, dtype=np.int64)
    if pa.types.is_integer(keys[0].type):
        numbers = np.concatenate([k.to_numpy(zero_copy_only=False) for k in keys])
        distinct, codes = np.unique(numbers, return_inverse=True)
        return pa.array(distinct), codes.astype(np.int64)
    encoded = pa.chunked_array(keys).dictionary_encode()
    indices = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    codes = np.concatenate(indices).astype(np.int64)
    return encoded.chunk(encoded.num_chunks - 1).dictionary, codes


def _flags(parts: Sequence[Flags | None], lengths: Places) -> Flags:
    filled = [
        np.zeros(n, dtype=bool) if p is None else p for p, n in zip(parts, lengths, strict=True)
    ]
    return np.concatenate(filled) if filled else np.zeros(0, dtype=bool)


def _last(codes: Places, count: int) -> Places:
    last = np.full(count, -1, dtype=np.int64)
    last[codes] = np.arange(len(codes))  # of several assignments to one place the last stays
    return last


def _by_event_time(
    codes: Places, count: int, ranks: Places, hard: Flags, tombstones: Flags
) -> Places:
    winner = _last(codes, count)
    if not hard.any() and bool((ranks <= ranks[winner[codes]]).all()):
        return winner  # the common case: later records are not older
    candidate = np.ones(len(codes), dtype=bool)
    if hard.any():
        candidate = _after_hard_deletes(codes, count, hard, tombstones)
    places = np.flatnonzero(candidate)
    places = places[np.argsort(ranks[places], kind="stable")]
    best = np.full(count, -1, dtype=np.int64)
    best[codes[places]] = places
    return best


def _after_hard_deletes(codes: Places, count: int, hard: Flags, tombstones: Flags) -> Flags:
    """Mark the records that still count: per key, those that follow its last hard delete.

    A hard delete is replaced by the first data record after it; delete blocks in between leave
    it standing. It counts itself only where no data record follows.
    """
    place = np.arange(len(codes))
    barrier = np.full(count, -1, dtype=np.int64)
    barrier[codes[hard]] = place[hard]
    beyond = place > barrier[codes]
    revived = np.full(count, len(codes), dtype=np.int64)
    data = np.flatnonzero(beyond & ~tombstones)[::-1]
    revived[codes[data]] = data
    start = np.where(barrier < 0, 0, revived)
    standing = hard & (place == barrier[codes]) & (revived[codes] == len(codes))
    counts: Flags = standing | (beyond & (place >= start[codes]))
    return counts


@dataclass(slots=True, eq=False)
class BaseContest:
    """The meeting of the logs' winners with the rows of the base file, in the file's order.

    ``lost`` marks winners that an equal key of the base file beats, ``met`` those whose key the
    base file has. A winner meets one base row at most: the first that carries its key, as in
    Hudi; further rows of that key stay.
    """

    winners: LogWinners
    lost: Flags
    met: Flags

    @classmethod
    def begin(cls, winners: LogWinners) -> "BaseContest":
        """Start before the first row of the base file."""
        return cls(winners, np.zeros(len(winners), bool), np.zeros(len(winners), bool))

    def kept_by_key(self, keys: pa.Array, ordering: order.Columns) -> Flags:
        """Say which of the next base rows stay, given their keys and ordering values."""
        found = pc.index_in(keys, value_set=self.winners.keys)
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        kept = np.ones(len(keys), dtype=bool)
        if len(rows) == 0:
            return kept
        which = found.drop_null().to_numpy().astype(np.int64)
        rows, which = self._first_meetings(rows, which)
        kept[rows] = self._base_beats(rows, which, ordering)
        return kept

    def kept_by_position(
        self, start: int, count: int, ordering: order.Columns, among: Flags | None = None
    ) -> Flags:
        """Say which of the base rows ``start`` to ``start + count`` stay; keys are positions.

        Rows that are not ``among`` those that take part stay, and beat nothing.
        """
        positions = self.winners.keys.to_numpy(zero_copy_only=False)
        low, high = np.searchsorted(positions, [start, start + count])
        kept = np.ones(count, dtype=bool)
        rows, which = positions[low:high] - start, np.arange(low, high)
        if among is not None:
            rows, which = rows[among[rows]], which[among[rows]]
        self.met[which] = True
        kept[rows] = self._base_beats(rows, which, ordering)
        return kept

    def _first_meetings(self, rows: Places, which: Places) -> tuple[Places, Places]:
        fresh = ~self.met[which]
        rows, which = rows[fresh], which[fresh]
        self.met[which] = True
        first = np.unique(which, return_index=True)[1]
        if len(first) == len(which):
            return rows, which
        return rows[first], which[first]

    def _base_beats(self, rows: Places, which: Places, ordering: order.Columns) -> Flags:
        if not self.winners.ordering or not ordering:
            return np.zeros(len(rows), dtype=bool)
        taken, met = pa.array(rows), pa.array(which)
        base = tuple(column.take(taken) for column in ordering)
        logs = tuple(column.take(met) for column in self.winners.ordering)
        beats = order.exceeds(base, logs) & ~self.winners.hard[which]
        self.lost[which[beats]] = True
        return beats

    def survivors(self) -> Flags:
        """Say which winners are rows of the result, once the whole base file has been met."""
        return ~self.winners.deleted & ~self.lost
