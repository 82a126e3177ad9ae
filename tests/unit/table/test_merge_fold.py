"""Partial updates and custom mergers, against merging one record at a time."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.model.errors import AlreadyExists, Unsupported
from lakewright.model.table import MergeMode
from lakewright.table.merge.fold import FoldedBase, Folding, Versions
from lakewright.table.merge.merger import (
    Merged,
    merger_for,
    register_merger,
    unregister_merger,
)
from lakewright.table.merge.policy import Gap, MergePolicy

SCHEMA = pa.schema([("key", pa.string()), ("a", pa.string()), ("b", pa.int64())])
ABSENT = object()


def policy(event_time: bool, gap: Gap = Gap.NONE) -> MergePolicy:
    return MergePolicy(
        mode=MergeMode.EVENT_TIME_ORDERING if event_time else MergeMode.COMMIT_TIME_ORDERING,
        ordering=("ts",) if event_time else (),
        gap=gap,
        marker="?",
        delete_field=None,
        delete_marker=None,
        strategy_id=None,
        payload_class=None,
    )


@dataclass(frozen=True)
class Record:
    key: str
    ts: int
    values: dict[str, Any]
    deletes: bool = False
    hard: bool = False


def merge_one(older: Record | None, newer: Record, rules: MergePolicy, tombstone: bool) -> Record:
    """Merge two records as Hudi's reader does, one pair at a time."""
    if older is None:
        return newer
    wins = not rules.event_time or newer.hard or older.hard or newer.ts >= older.ts
    if tombstone and older.hard:
        wins = False
    high, low = (newer, older) if wins else (older, newer)
    if older.deletes or newer.deletes:
        return high
    values = {
        name: low.values[name] if gap(high.values[name], rules) else high.values[name]
        for name in high.values
    }
    return replace(high, values=values)


def gap(value: Any, rules: MergePolicy) -> bool:
    if value is ABSENT:
        return True
    return {
        Gap.NONE: False,
        Gap.NULLS: value is None,
        Gap.MARKER: value == rules.marker,
    }[rules.gap]


def versions(records: list[Record], rules: MergePolicy) -> Versions:
    columns: dict[str, list[Any]] = {"key": [r.key for r in records]}
    absent = {}
    for name in ("a", "b"):
        held = [r.values[name] for r in records]
        columns[name] = [None if v is ABSENT else v for v in held]
        flags = np.array([v is ABSENT for v in held], dtype=bool)
        if flags.any():
            absent[name] = flags
    return Versions(
        keys=pa.array(columns["key"], pa.string()),
        rows=pa.table(columns, schema=SCHEMA),
        absent=absent,
        deleted=np.array([r.deletes for r in records], dtype=bool),
        hard=np.array([r.hard for r in records], dtype=bool),
        ordering=(pa.array([r.ts for r in records], pa.int64()),) if rules.event_time else (),
    )


texts = st.sampled_from([None, "?", "x", "y"])
numbers = st.sampled_from([None, 1, 2])


@st.composite
def blocks(draw) -> list[tuple[bool, list[Record]]]:
    made = []
    for _ in range(draw(st.integers(0, 4))):
        tombstones = draw(st.booleans())
        lacking = draw(st.sampled_from([(), ("a",), ("b",)])) if not tombstones else ()
        records = []
        for _ in range(draw(st.integers(1, 4))):
            values = {"a": draw(texts), "b": draw(numbers)}
            values |= dict.fromkeys(lacking, ABSENT)
            deletes = tombstones or draw(st.integers(0, 5)) == 0
            records.append(
                Record(
                    draw(st.sampled_from("pqr")),
                    draw(st.integers(0, 3)),
                    {"a": None, "b": None} if tombstones else values,
                    deletes,
                    deletes and draw(st.booleans()),
                )
            )
        made.append((tombstones, records))
    return made


base_rows = st.lists(
    st.builds(
        Record,
        st.sampled_from("pqrst"),
        st.integers(0, 3),
        st.fixed_dictionaries({"a": texts, "b": numbers}),
    ),
    max_size=5,
    unique_by=lambda r: r.key,
)


@given(blocks(), base_rows, st.booleans(), st.sampled_from(Gap))
def test_folding_equals_merging_one_by_one(drawn, base, event_time: bool, kind: Gap) -> None:
    rules = policy(event_time, kind)
    logs: dict[str, Record] = {}
    for tombstones, records in drawn:
        for record in records:
            logs[record.key] = merge_one(logs.get(record.key), record, rules, tombstones)
    expected = dict(logs)
    for row in base:
        found = logs.get(row.key)
        expected[row.key] = row if found is None else merge_one(row, found, rules, False)

    folding = Folding(rules)
    state = None
    for tombstones, records in drawn:
        state = folding.add(state, versions(records, rules), tombstones=tombstones)
    if state is None:
        return
    folded = FoldedBase(folding, state)
    half = len(base) // 2
    parts = [p for p in (base[:half], base[half:]) if p]
    held = [versions(part, rules) for part in parts]
    tables = [folded.meet(v.keys, v.rows, v.ordering) for v in held]
    found = pa.concat_tables([*tables, folded.rest()]).to_pylist()
    wanted = [
        {"key": r.key, **{n: None if v is ABSENT else v for n, v in r.values.items()}}
        for r in expected.values()
        if not r.deletes
    ]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


def test_a_late_record_fills_in_what_the_row_lacks() -> None:
    rules = policy(event_time=True, gap=Gap.NULLS)
    log = versions([Record("p", 1, {"a": "late", "b": 8})], rules)
    base = versions([Record("p", 9, {"a": None, "b": 7})], rules)
    met = FoldedBase(Folding(rules), log).meet(base.keys, base.rows, base.ordering)
    assert met.to_pylist() == [{"key": "p", "a": "late", "b": 7}]


class Adding:
    """Adds up one column, and deletes records that reach ten."""

    merging_strategy = "adding"

    def merge(self, older: pa.Table, newer: pa.Table) -> Merged:
        total = pc.add(older.column("b"), newer.column("b"))
        rows = newer.set_column(2, "b", total)
        return Merged(rows, pc.less(total, 10).combine_chunks())


def test_a_custom_merger_sees_pairs_and_may_delete() -> None:
    rules = replace(policy(event_time=False), mode=MergeMode.CUSTOM)
    folding = Folding(rules, Adding())
    state = folding.add(
        None,
        versions(
            [
                Record("p", 0, {"a": "1", "b": 1}),
                Record("p", 0, {"a": "2", "b": 2}),
                Record("q", 0, {"a": "1", "b": 6}),
                Record("r", 0, {"a": "1", "b": 6}, deletes=True),
            ],
            rules,
        ),
        tombstones=False,
    )
    folded = FoldedBase(folding, state)
    base = versions([Record(k, 0, {"a": "0", "b": 5}) for k in "pqrs"], rules)
    found = folded.meet(base.keys, base.rows, base.ordering).to_pylist()
    assert sorted(found, key=repr) == [
        {"key": "p", "a": "2", "b": 8},  # 5 + (1 + 2)
        {"key": "s", "a": "0", "b": 5},
    ]
    assert folded.rest().num_rows == 0


def test_mergers_are_known_by_strategy_or_payload_class() -> None:
    merger = Adding()
    register_merger(merger)
    try:
        assert merger_for("adding", None) is merger
        assert merger_for("other", "adding") is merger
        with pytest.raises(AlreadyExists, match="replace=True"):
            register_merger(Adding())
        register_merger(merger, replace=True)
    finally:
        unregister_merger("adding")
    with pytest.raises(Unsupported, match="CUSTOM") as refused:
        merger_for("adding", "org.example.Payload")
    assert "org.example.Payload" in str(refused.value)
    assert "register_merger" in str(refused.value)
