"""Changes of random histories: put onto the rows at their start they make those at their end."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations, count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakewright as lw
from lakewright.format.hudi.change_records import ChangeMode
from lakewright.model.table import TableType

ENABLED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
NUMBERS = count()
COLUMNS = ("id", "p", "n", "ts")

Row = dict[str, Any]
Content = Counter[tuple[Any, ...]]

rows = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abcdefg"),
        "p": st.sampled_from("xy"),
        "n": st.one_of(st.none(), st.integers(0, 3)),
        "ts": st.integers(0, 3),
    }
)
batches = st.lists(rows, min_size=1, max_size=5)
steps = st.one_of(
    st.tuples(st.sampled_from(("upsert", "upsert", "delete", "overwrite", "fresh")), batches),
    st.tuples(st.sampled_from(("update", "drop")), st.sampled_from("xy")),
    st.tuples(st.sampled_from(("compact", "plan")), st.none()),
)
kinds = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("COPY_ON_WRITE", "MERGE_ON_READ")),
        "version": st.sampled_from((9, 6)),
        "order_by": st.sampled_from((None, "ts")),
        "index": st.sampled_from(("SIMPLE", "GLOBAL_SIMPLE", "BUCKET")),
    }
)


def values(row: Row | None) -> tuple[Any, ...]:
    assert row is not None
    return tuple(row[name] for name in COLUMNS)


def content(table: lw.Table) -> Content:
    return Counter(map(values, table.scan().to_arrow().to_pylist()))


@dataclass
class Played:
    """A table with the rows that it held after each of its instants."""

    table: lw.Table
    seen: list[tuple[str, Content]] = field(default_factory=list)

    @staticmethod
    def of(kind: dict[str, Any], mode: ChangeMode) -> "Played":
        details = {k: v for k, v in kind.items() if k != "index"}
        properties = {ENABLED: "true", MODE: mode.value, "hoodie.index.type": kind["index"]}
        if kind["index"] == "BUCKET":
            details["buckets"] = 2
        table = lw.create_table(
            f"memory://change-data/t{next(NUMBERS)}",
            schema="id string, p string, n long, ts long",
            key="id",
            partition_by=["p"],
            properties=properties,
            **details,
        )
        return Played(table, [("000", Counter())])

    def play(self, verb: str, what: Any) -> None:
        if verb in ("compact", "plan"):
            self._keep(verb)
            return
        try:
            self._write(verb, what)
        except lw.Conflict as refusal:
            # Groups of an unfinished compaction are not replaced.
            assert "compact" in str(refusal), refusal

    def _keep(self, verb: str) -> None:
        """Do what changes no row; plans are left for the next to carry out."""
        if self.table.definition.table_type is TableType.COPY_ON_WRITE or len(self.seen) == 1:
            return
        if verb == "plan":
            self.table.schedule_compaction()
        else:
            self.table.compact()

    def _write(self, verb: str, what: Any) -> None:
        table = self.table
        match verb:
            case "upsert":
                result = table.upsert(what)
            case "fresh":
                result = table.insert(what, dedupe=True)
            case "delete":
                result = table.delete(what)
            case "overwrite":
                one = {(row["p"], row["id"]): row for row in what}
                result = table.insert_overwrite(list(one.values()))
            case "update":
                result = table.update({"n": "n + 10"}, where=f"p = '{what}'")
            case _:
                result = table.delete_partitions([f"p={what}"])
        if result.instant is not None:
            end = result.instant.completed or result.instant.requested
            self.seen.append((end, content(table)))

    def check(self) -> int:
        """Apply the changes of every window to the rows at its start; return their number."""
        told = 0
        for (start, before), (end, after) in combinations(self.seen, 2):
            held = Counter(before)
            for change in self.table.changes(start, end).to_arrow().to_pylist():
                told += 1
                if change["op"] != "i":
                    assert held[values(change["before"])] > 0, change
                    held[values(change["before"])] -= 1
                if change["op"] != "d":
                    held[values(change["after"])] += 1
            assert +held == after
        return told


def run(kind: dict[str, Any], mode: ChangeMode, history: list[tuple[str, Any]]) -> None:
    played = Played.of(kind, mode)
    for verb, what in history:
        played.play(verb, what)
    played.check()


@settings(max_examples=12)
@given(kinds, st.sampled_from(ChangeMode), st.lists(steps, min_size=2, max_size=5))
def test_changes_lead_from_one_state_to_another(
    kind: dict[str, Any], mode: ChangeMode, history: list[tuple[str, Any]]
) -> None:
    run(kind, mode, history)


@pytest.mark.slow
@settings(max_examples=400)
@given(kinds, st.sampled_from(ChangeMode), st.lists(steps, min_size=2, max_size=8))
def test_changes_lead_from_one_state_to_another_at_length(
    kind: dict[str, Any], mode: ChangeMode, history: list[tuple[str, Any]]
) -> None:
    run(kind, mode, history)


def test_every_mode_tells_the_same_keys_and_operations() -> None:
    kind = {"type": "COPY_ON_WRITE", "version": 9, "order_by": "ts", "index": "SIMPLE"}
    first = [{"id": name, "p": "x", "n": 1, "ts": 1} for name in "abcd"]
    history: list[tuple[str, Any]] = [
        ("upsert", first),
        ("upsert", [{**first[0], "n": 2}, {**first[1], "ts": 0}, {**first[2], "id": "e"}]),
        ("delete", [first[3]]),
        ("overwrite", [{**first[0], "n": 7}]),
    ]
    told = []
    for mode in ChangeMode:
        played = Played.of(kind, mode)
        for verb, what in history:
            played.play(verb, what)
        assert played.check() > len(first)
        changes = played.table.changes().to_arrow().to_pylist()
        told.append(sorted((c["op"], str(c["before"]), str(c["after"])) for c in changes))
    assert told[0] == told[1] == told[2]
    assert Counter(op for op, _, _ in told[0]) == Counter(i=6, u=1, d=5)
