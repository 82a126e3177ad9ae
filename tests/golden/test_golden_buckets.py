"""Buckets of tables that real Hudi wrote: each row lies where we would put it, then and now.

Upserts of ours go into the groups that are there, and rescales of ours and Hudi's can be told
apart by nothing but the groups' names.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from fixture_tables import fixtures_root, table_params
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.model.schema import META_COLUMNS
from lakewright.storage.open import open_storage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import TableState, open_state
from support.rescaling import check_law
from support.write_machine import by_hudi

Table = Callable[[str], Path]
#: The numbers that rules of the golden tables gave, by instant in the order of configs.
RULES = r"\d{4}-12-25,4;2024-.*,2", r"2024-.*,3;special,5"
NUMBERS: tuple[Mapping[str, int], ...] = (
    {"2024-01-02": 2, "2024-12-25": 4, "2025-12-25": 4, "special": 1},
    {"2024-01-02": 3, "2024-12-25": 3, "2025-12-25": 1, "special": 5},
)


@cache
def recorded() -> dict[str, Any]:
    root = fixtures_root()
    return {} if root is None else json.loads((root / "golden-expected.json").read_text())


def is_bucketed(name: str) -> bool:
    return recorded()[name]["options"].get("hoodie.index.type") == "BUCKET"


def has_rules(name: str) -> bool:
    return recorded()[name]["recipe"] == "bucket_partition"


def named(which: Callable[[str], bool]) -> list[Any]:
    """The golden tables for which this holds, as parameters; those of a skip where none are."""
    found = table_params("golden")
    return [name for name in found if not isinstance(name, str) or which(name)]


BUCKETED = named(is_bucketed)
RULED = named(lambda name: is_bucketed(name) and has_rules(name))


def given(name: str) -> dict[str, str]:
    """What whoever writes the table has to say, because the table does not."""
    options = recorded()[name]["options"]
    wanted = ("hoodie.index.type", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash")
    return {k: v for k, v in options.items() if k.startswith(wanted)}


def plain(name: str) -> BucketCounts:
    return BucketCounts.plain(int(given(name)["hoodie.bucket.index.num.buckets"]))


def hash_fields(name: str, state: TableState) -> list[str]:
    named = given(name).get("hoodie.bucket.index.hash.field")
    return named.split(",") if named else list(state.config.record_key)


def astray(
    rows: Iterable[Mapping[str, Any]], counts: BucketCounts, fields: list[str]
) -> list[tuple[str, str, int]]:
    """The rows that lie in another bucket than their key's, with the one that they lie in."""
    found = []
    for row in rows:
        partition, key = row["_hoodie_partition_path"], row["_hoodie_record_key"]
        number = int(bucket_of(pa.array([key]), fields, counts.number_of(partition))[0])
        lies = bucket_number(row["_hoodie_file_name"])
        if lies != number:
            found.append((partition, key, lies))
    return found


def known(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in rows)


@pytest.mark.parametrize("name", BUCKETED)
def test_rows_lie_in_the_buckets_of_their_keys(name: str, golden_table: Table) -> None:
    state = open_state(open_storage(golden_table(name)))
    counts = HashingStore(state.storage).load(state.timeline)
    assert (counts is not None) == has_rules(name)
    fields = hash_fields(name, state)
    rows = lw.open_table(state.storage.uri).scan(meta=True).to_arrow().to_pylist()
    assert known(rows) == known(recorded()[name]["snapshot"])
    assert astray(rows, counts or plain(name), fields) == []
    # With one bucket more they would not: the comparison can fail.
    assert astray(rows, BucketCounts.plain(plain(name).rules.default + 1), fields)


@pytest.mark.parametrize("name", BUCKETED)
def test_rows_lay_in_the_buckets_of_their_time(name: str, golden_table: Table) -> None:
    state = open_state(open_storage(golden_table(name)))
    store, fields, tried = HashingStore(state.storage), hash_fields(name, state), 0
    for entry in recorded()[name]["history"]:
        # Hudi itself cannot read what was before the first rules; here there is no such gap.
        rows = lw.open_table(state.storage.uri).scan(meta=True, as_of=entry["requested"])
        moment = state.timeline.completion_of(entry["requested"]) or entry["requested"]
        counts = store.load_at(state.timeline, moment) or plain(name)
        assert astray(rows.to_arrow().to_pylist(), counts, fields) == []
        for part in FileIndex(state).list_files_at(entry["requested"]):
            numbers = [bucket_number(piece.group.file_id) for piece in part.file_slices]
            assert len(set(numbers)) == len(numbers)
            assert all(
                n is not None and n < counts.number_of(part.descriptor.path) for n in numbers
            )
        tried += 1
    assert tried > 2


@pytest.mark.parametrize("name", RULED)
def test_rules_are_those_that_hudi_was_told(name: str, golden_table: Table) -> None:
    state = open_state(open_storage(golden_table(name)))
    versions = HashingStore(state.storage).history(state.timeline)
    assert [v.config.expressions for v in versions] == list(RULES[: len(versions)])
    for version, numbers in zip(versions, NUMBERS, strict=False):
        paths = [f"region={value}" for value in numbers]
        assert version.counts().numbers_of(paths) == list(numbers.values())
        assert version.counts().number_of("region=other") == 1
    last = NUMBERS[len(versions) - 1]
    there = HashingStore(state.storage).load(state.timeline)
    assert there is not None
    assert there.numbers_of([f"region={v}" for v in last]) == list(last.values())


def groups(path: Path) -> dict[str, set[str]]:
    parts = FileIndex(open_state(open_storage(path))).list_files_at()
    return {p.descriptor.path: {piece.group.file_id for piece in p.file_slices} for p in parts}


def content(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    kept = [{k: v for k, v in row.items() if k not in META_COLUMNS} for row in rows]
    return Counter(repr(sorted(row.items())) for row in kept)


@pytest.fixture
def copy(golden_table: Table, tmp_path: Path) -> Callable[[str], lw.Table]:
    """A function from a table's name to a copy that may be written."""

    def made(name: str) -> lw.Table:
        shutil.copytree(golden_table(name), tmp_path / name)
        return lw.open_table(tmp_path / name)

    return made


@pytest.mark.parametrize("name", BUCKETED)
def test_upserts_go_into_the_groups_that_are_there(
    name: str, copy: Callable[[str], lw.Table]
) -> None:
    table = copy(name)
    before, rows = groups(Path(table.path)), table.scan().to_arrow()
    table.upsert(rows, options=given(name))
    assert groups(Path(table.path)) == before
    found = table.scan().to_arrow().to_pylist()
    assert content(found) == content(rows.to_pylist())
    assert len(by_hudi(table.path)) == len(found)


@pytest.mark.parametrize("name", BUCKETED)
def test_tables_of_hudi_are_rescaled_and_back(name: str, copy: Callable[[str], lw.Table]) -> None:
    table = copy(name)
    storage = open_storage(table.path)
    before, rows = groups(Path(table.path)), content(table.scan().to_arrow().to_pylist())
    wanted = {"expressions": [], "defaultBucketNumber": 6}
    done = table.buckets.plan_rescale(rules=wanted, options=given(name)).apply()
    assert done.instant is not None
    assert set(check_law(storage).values()) == {6}
    assert content(table.scan().to_arrow().to_pylist()) == rows
    assert len(by_hudi(table.path)) == sum(rows.values())
    assert not any(
        ids & before[path] for path, ids in groups(Path(table.path)).items() if path in before
    )
    table.buckets.undo()
    assert groups(Path(table.path)) == before
    assert content(table.scan().to_arrow().to_pylist()) == rows
    assert table.fsck().ok
