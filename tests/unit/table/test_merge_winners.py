"""The vectorised merge says what merging record after record says."""

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakewright.table.merge.ordering import comparable, exceeds, ranks
from lakewright.table.merge.winners import BaseContest, BlockEntries, resolve


@dataclass(frozen=True)
class Record:
    key: str
    ordering: int
    deletes: bool
    hard: bool
    tombstone: bool
    place: tuple[int, int]


def newest(older: Record | None, newer: Record) -> Record:
    """Event-time merging of two records, as Hudi's reader does it one at a time."""
    if older is None:
        return newer
    if newer.tombstone and older.hard:
        return older
    if newer.hard or older.hard:
        return newer
    return newer if newer.ordering >= older.ordering else older


blocks = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(
            st.tuples(st.sampled_from("abcd"), st.integers(-2, 3), st.booleans(), st.booleans()),
            max_size=6,
        ),
    ),
    max_size=6,
)


def records_of(drawn: list[tuple[bool, list[tuple[str, int, bool, bool]]]]) -> list[list[Record]]:
    return [
        [
            Record(
                key,
                ordering,
                deletes or tombstone,
                hard and (deletes or tombstone),
                tombstone,
                (number, row),
            )
            for row, (key, ordering, deletes, hard) in enumerate(rows)
        ]
        for number, (tombstone, rows) in enumerate(drawn)
    ]


def entries_of(block: list[Record]) -> BlockEntries:
    return BlockEntries(
        keys=pa.array([r.key for r in block], pa.string()),
        ordering=(pa.array([r.ordering for r in block], pa.int64()),),
        deletes=np.array([r.deletes for r in block], dtype=bool),
        hard=np.array([r.hard for r in block], dtype=bool),
        tombstones=bool(block) and block[0].tombstone,
    )


@given(blocks)
def test_event_time_winners_are_those_of_merging_one_by_one(drawn) -> None:
    logs = records_of(drawn)
    expected: dict[str, Record] = {}
    for record in (r for block in logs for r in block):
        expected[record.key] = newest(expected.get(record.key), record)
    found = resolve([entries_of(b) for b in logs], event_time=True)
    places = dict(
        zip(found.keys.to_pylist(), zip(found.block, found.row, strict=True), strict=True)
    )
    # Of two hard deletes either may be named: they say the same.
    alive = {key: r.place for key, r in expected.items() if not r.hard}
    assert {key: place for key, place in places.items() if not expected[key].hard} == alive
    assert dict(zip(found.keys.to_pylist(), found.hard, strict=True)) == {
        key: r.hard for key, r in expected.items()
    }
    assert dict(zip(found.keys.to_pylist(), found.deleted, strict=True)) == {
        key: r.deletes for key, r in expected.items()
    }


@given(blocks)
def test_commit_time_winners_are_the_last_records(drawn) -> None:
    logs = records_of(drawn)
    expected = {r.key: r.place for block in logs for r in block}
    found = resolve([entries_of(b) for b in logs], event_time=False)
    places = zip(found.block, found.row, strict=True)
    assert dict(zip(found.keys.to_pylist(), places, strict=True)) == expected


@given(blocks, st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(-2, 3)), max_size=8))
def test_the_base_file_keeps_what_no_log_record_beats(drawn, base) -> None:
    logs = records_of(drawn)
    winners: dict[str, Record] = {}
    for record in (r for block in logs for r in block):
        winners[record.key] = newest(winners.get(record.key), record)
    kept, lost, met = [], set(), set()
    for key, value in base:
        winner = winners.get(key)
        if winner is None or key in met:
            kept.append(True)
            continue
        met.add(key)
        beats = value > winner.ordering and not winner.hard
        kept.append(beats)
        if beats:
            lost.add(key)
    contest = BaseContest.begin(resolve([entries_of(b) for b in logs], event_time=True))
    half = len(base) // 2
    answers = [
        contest.kept_by_key(
            pa.array([k for k, _ in part], pa.string()),
            (pa.array([v for _, v in part], pa.int64()),),
        )
        for part in (base[:half], base[half:])
    ]
    assert list(np.concatenate(answers)) == kept
    names = contest.winners.keys.to_pylist()
    survivors = {n for n, alive in zip(names, contest.survivors(), strict=True) if alive}
    assert survivors == {k for k, r in winners.items() if not r.deletes and k not in lost}


def test_positions_stand_for_keys() -> None:
    blocks = [
        BlockEntries(pa.array([1, 4, 6]), (pa.array([5, 5, 5]),)),
        BlockEntries(
            pa.array([4, 9]),
            (pa.array([0, 0]),),
            np.array([True, True]),
            np.array([True, False]),
            True,
        ),
    ]
    contest = BaseContest.begin(resolve(blocks, event_time=True))
    first = contest.kept_by_position(0, 5, (pa.array([9, 9, 9, 9, 9]),))
    second = contest.kept_by_position(5, 5, (pa.array([1, 1, 1, 1, 1]),))
    assert first.tolist() == [True, True, True, True, False]  # the base wins at row 1
    assert second.tolist() == [True, False, True, True, True]  # ordering 0 does not beat 1 at 9
    assert contest.survivors().tolist() == [False, False, True, False]


@given(st.lists(st.one_of(st.none(), st.floats()), min_size=1))
def test_floats_compare_as_in_java(values) -> None:
    def java(v: float | None) -> tuple[int, float, int]:
        v = 0.0 if v is None else v
        if v != v:
            return (1, 0.0, 0)
        return (0, v, 0 if v != 0 else int(np.copysign(1, v)))

    found = ranks((comparable(pa.array(values, pa.float64())),)).tolist()
    order = sorted(range(len(values)), key=lambda i: java(values[i]))
    assert [found[i] for i in order] == sorted(found)
    for i, j in itertools.pairwise(order):
        assert (found[i] == found[j]) == (java(values[i]) == java(values[j]))


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 2)), min_size=1))
def test_several_ordering_fields_compare_in_turn(rows) -> None:
    columns = (
        comparable(pa.array([r[0] for r in rows])),
        comparable(pa.array([r[1] for r in rows])),
    )
    found = ranks(columns)
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            assert (found[i] < found[j]) == (a < b)
    flipped = tuple(c.take(pa.array(range(len(rows) - 1, -1, -1))) for c in columns)
    assert exceeds(columns, flipped).tolist() == [
        a > b for a, b in zip(rows, rows[::-1], strict=True)
    ]
