"""Bucket rules through what happens to a table: rollback, restore, dead writers, archiving,
another version of the table, and creation in every way."""

import json
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.format.hudi.hashing_config import (
    ARCHIVE_FOLDER,
    CONFIGS_FOLDER,
    FIRST_INSTANT,
)
from lakewright.format.hudi.simple_hash_meta import SIMPLE_FOLDER, bucket_files_of
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import layout_of
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.model.errors import Invalid
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.publication import ATTEMPTS
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.rescaling import (
    check_law,
    content,
    made_table,
    memory,
    rescaled,
    rows,
    rules,
    table_of,
)

FIRST = rules(("p=x", 3), default=2)
EXPRESSIONS = "hoodie.bucket.index.partition.expressions"
NUMBER = "hoodie.bucket.index.num.buckets"


def ruled(storage: Storage, **shape: Any) -> Table:
    table = made_table(storage, buckets=json.loads(rules_json(FIRST)), **shape)
    table.upsert(table_of(rows(range(30), 1, "xy")))
    return table


def files(storage: Storage) -> list[str]:
    """Return the instants of the index's files, by kind."""
    found = [*storage.list(CONFIGS_FOLDER), *storage.list(SIMPLE_FOLDER)]
    return sorted(file.path.rpartition("/")[2] for file in found)


def latest(table: Table) -> str:
    newest = table.timeline.latest_data()
    assert newest is not None
    return newest.requested


@pytest.mark.parametrize("version", [9, 6])
def test_a_rollback_takes_rules_and_numbers_back(version: int) -> None:
    storage = memory()
    table = ruled(storage, version=version)
    start = files(storage)
    table.upsert(table_of(rows(range(9), 2, "w")))
    assert len(files(storage)) == len(start) + 1, "a new partition was fixed"
    table.rollback(latest(table))
    assert files(storage) == start
    before = content(storage)
    rescaled(storage, rules(("p=x", 5), default=2))
    assert check_law(storage) == {"p=x": 5, "p=y": 2}
    table.rollback(latest(table))
    assert files(storage) == start
    assert check_law(storage) == {"p=x": 3, "p=y": 2}
    assert content(storage) == before


@pytest.mark.parametrize("version", [9, 6])
def test_a_rescale_stops_counting_before_anything_of_it_is_deleted(version: int) -> None:
    """With its completed file data and rules go back together; until its pending files are gone,
    nobody believes what is left."""
    storage = memory()
    ruled(storage, version=version)
    rescaled(storage, rules(("p=x", 5), default=2))
    target = latest(Table(storage))
    place = FaultyStorage(storage)
    Table(place).rollback(target)
    gone = [call.path for call in place.calls if call.verb == "delete" and target in call.path]
    kinds = [kind for path in gone if (kind := _kind(path)) is not None]
    assert kinds == ["completed", "hashing config", "hash config", "data", "pending"]


def _kind(path: str) -> str | None:
    folder, _, name = path.rpartition("/")
    match folder:
        case _ if folder == CONFIGS_FOLDER:
            return "hashing config"
        case _ if folder == SIMPLE_FOLDER:
            return "hash config"
        case ".hoodie" | ".hoodie/timeline":
            return "pending" if name.endswith(("inflight", "requested")) else "completed"
        case _:
            return "data" if path.startswith("p=") else None


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("stop", [None, 0, 1, 2])
def test_a_restore_goes_back_to_the_rules_of_then(version: int, stop: int | None) -> None:
    """Even where it is stopped while it deletes, and finished by the next writer."""
    storage = memory()
    table = ruled(storage, version=version)
    table.savepoint()
    then = latest(table)
    before, start = content(storage), files(storage)
    table.buckets.set(json.loads(rules_json(rules(("p=w", 7), default=2))))
    table.upsert(table_of(rows(range(20), 2, "wxy")))
    rescaled(storage, rules(("p=w", 4), default=6))
    table.upsert(table_of(rows(range(40), 3, "wxyz")))
    assert check_law(storage) == {"p=w": 4, "p=x": 6, "p=y": 6, "p=z": 6}
    if stop is None:
        table.restore(then)
    else:
        place = FaultyStorage(
            storage, [Fault("delete", at=stop, after=True, path="hashing_config", error=Crash)]
        )
        with pytest.raises(Crash):
            Table(place).restore(then)
        table.upsert(table_of(rows(range(1), 1, "x")))
        assert check_law(storage) == {"p=x": 3, "p=y": 2}
        return
    assert check_law(storage) == {"p=x": 3, "p=y": 2}
    assert (content(storage), files(storage)) == (before, start)


@pytest.mark.parametrize("version", [9, 6])
def test_what_a_dead_writer_fixed_goes_with_it(version: int) -> None:
    storage = memory()
    table = ruled(storage, version=version)
    start = files(storage)
    place = FaultyStorage(storage, [Fault("write", path="hashing_meta", after=True, error=Crash)])
    with pytest.raises(Crash):
        Table(place).upsert(table_of(rows(range(9), 2, "w")))
    assert len(files(storage)) == len(start) + 1
    assert check_law(storage) == {"p=x": 3, "p=y": 2}
    table.upsert(table_of(rows(range(9), 2, "x")))
    assert files(storage) == start
    assert check_law(storage) == {"p=x": 3, "p=y": 2}


def test_a_failed_write_takes_back_what_it_fixed() -> None:
    storage = memory()
    ruled(storage)
    start = files(storage)
    # The completed file, each time that it is tried.
    faults = [Fault("create", at=2 + n, path="timeline/2") for n in range(ATTEMPTS)]
    with pytest.raises(lw.LakewrightError):
        Table(FaultyStorage(storage, faults)).upsert(table_of(rows(range(9), 2, "w")))
    assert files(storage) == start


@pytest.mark.parametrize("version", [9, 6])
def test_old_versions_are_archived_with_the_instants_that_needed_them(version: int) -> None:
    storage = memory()
    table = ruled(storage, version=version)
    for number in range(4, 9):
        table.buckets.set(json.loads(rules_json(rules(("p=w", number), default=2))))
        table.upsert(table_of(rows(range(6), number, "xy")))
    view = open_state(storage).timeline
    store = HashingStore(storage)
    before, kept = store.load(view), store.history(view)
    numbers = {i.requested: _number(store, storage, i.completed or "") for i in view.data()}
    options = {
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.clean.commits.retained": "2",
    }
    table.clean(options=options)
    table.archive(options=options)
    assert list(storage.list(ARCHIVE_FOLDER))
    view = open_state(storage).timeline
    assert store.load(view) == before
    assert [(v.instant, v.rules) for v in store.history(view)] == [
        (v.instant, v.rules) for v in kept
    ]
    assert len(list(storage.list(CONFIGS_FOLDER))) < len(kept)
    for instant in view.with_history().data():
        found = _number(store, storage, instant.completed or "")
        assert found == numbers[instant.requested]
    table.upsert(table_of(rows(range(20), 30, "wxy")))
    assert check_law(storage) == {"p=w": 8, "p=x": 3, "p=y": 2}
    assert table.fsck().ok


def _number(store: HashingStore, storage: Storage, moment: str) -> int | None:
    found = store.load_at(open_state(storage).timeline, moment)
    return None if found is None else found.number_of("p=w")


@pytest.mark.parametrize(("version", "other"), [(6, 9), (9, 6)])
@pytest.mark.parametrize("mor", [False, True])
def test_another_version_of_the_table_keeps_its_rules(version: int, other: int, mor: bool) -> None:
    storage = memory()
    table = ruled(storage, version=version, mor=mor)
    table.buckets.set(json.loads(rules_json(rules(("p=w", 7), default=5))))
    table.upsert(table_of(rows(range(20), 2, "wxy")))
    store = HashingStore(storage)
    before, kept = content(storage, meta=False), store.history(open_state(storage).timeline)
    table.upgrade(other)
    table = Table(storage)
    assert table.definition.version == other
    assert store.history(open_state(storage).timeline) == kept
    assert content(storage, meta=False) == before
    table.upsert(table_of(rows(range(40), 3, "wxyz")))
    assert check_law(storage) == {"p=w": 7, "p=x": 3, "p=y": 2, "p=z": 5}
    assert table.fsck().ok


# ------------------------------------------------------------------------ creating

SEED = {
    "expressions": [{"expression": r"\d{4}-11-11", "bucketNumber": 6, "rule": "regex"}],
    "defaultBucketNumber": 3,
}
RULES = BucketRules((BucketRule(r"\d{4}-11-11", 6),), 3)


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize(
    "details",
    [
        {"buckets": SEED},
        {"buckets": json.dumps(SEED)},
        {"buckets": r"\d{4}-11-11,6", "properties": {NUMBER: "3"}},
        {"properties": {EXPRESSIONS: json.dumps(SEED)}},
        {"properties": {EXPRESSIONS: json.dumps(SEED), NUMBER: "3"}, "buckets": 3},
        {
            "properties": {EXPRESSIONS: r"\d{4}-11-11,6", "hoodie.index.type": "BUCKET"},
            "buckets": 3,
        },
        {
            "properties": {
                EXPRESSIONS: r"\d{4}-11-11,6",
                NUMBER: "3",
                "hoodie.bucket.index.partition.rule.type": "REGEX",
            }
        },
    ],
)
def test_rules_in_every_form_come_with_the_table(
    tmp_path: Path, version: int, details: dict[str, Any]
) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id string, dt string", key="id", partition_by="dt", version=version,
        **details,
    )  # fmt: skip
    state = open_state(open_storage(tmp_path / "t"))
    counts = layout_of(state, {}).buckets
    assert counts is not None
    assert (counts.rules, counts.pins, counts.version) == (RULES, {}, FIRST_INSTANT)
    stored = table.definition.properties
    assert stored["hoodie.index.type"] == "BUCKET"
    assert [key for key in stored if "bucket" in key] == ["hoodie.bucket.index.hash.field"]


def test_the_default_of_the_seed_where_nothing_is_said(tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string", key="id", buckets="a,3")
    assert table.buckets.rules.default == 256


def test_a_number_is_a_plain_table(tmp_path: Path) -> None:
    for number, buckets in enumerate((4, "4")):
        lw.create_table(tmp_path / f"{number}", schema="id string", key="id", buckets=buckets)
        assert HashingStore(open_storage(tmp_path / f"{number}")).is_empty()


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ({"buckets": "(,3"}, r"\("),
        ({"buckets": "{"}, "JSON"),
        ({"buckets": "a,0"}, "number of buckets"),
        ({"buckets": {"expressions": 3}}, "list"),
        ({"buckets": SEED, "index": "SIMPLE"}, "no buckets"),
        ({"buckets": SEED, "properties": {NUMBER: "4"}}, "3 as default"),
        ({"buckets": 4, "properties": {EXPRESSIONS: json.dumps(SEED)}}, "3 as default"),
        ({"buckets": SEED, "properties": {EXPRESSIONS: "a,4"}}, "different rules"),
        ({"properties": {EXPRESSIONS: "a,3", "hoodie.index.type": "BLOOM"}}, "contradicts"),
        (
            {"buckets": SEED, "properties": {"hoodie.bucket.index.partition.rule.type": "moon"}},
            "moon",
        ),
        ({"buckets": SEED, "key": None}, "generated keys"),
    ],
)
def test_wrong_rules_make_no_table(tmp_path: Path, details: dict[str, Any], words: str) -> None:
    given = {"schema": "id string", "key": "id", **details}
    with pytest.raises(Invalid, match=words):
        lw.create_table(tmp_path / "t", **given)
    assert not (tmp_path / "t").exists()


def test_the_files_of_a_write_are_named_by_the_format() -> None:
    assert [path.rpartition(".")[2] for path in bucket_files_of("1")] == [
        "hashing_config",
        "hash_config",
        "hashing_meta",
    ]
