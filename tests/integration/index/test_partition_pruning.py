"""Buckets of partitions that differ in their number: left out only where no row can match."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewright.actions.buckets.setting import set_rules
from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan
from lakewright.api.table import Table
from lakewright.engine.local.scan import scan_batches
from lakewright.format.hudi.hashing_config import (
    CONFIGS_FOLDER,
    FIRST_INSTANT,
    HashingConfig,
    encode_hashing_config,
)
from lakewright.format.hudi.properties import update_properties
from lakewright.format.hudi.simple_hash_meta import SIMPLE_FOLDER
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.files import ReadingMode
from lakewright.storage.port import Storage
from lakewright.table.pruning import Reason
from lakewright.table.state import open_state
from support.rescaling import filled_table, made_table, memory, rescaled, rows, rules, table_of

#: Any may follow any other.
WANTED = (
    rules(("p=x", 8), ("p=[yz]", 3)),
    rules(("p=x|p=y", 5), default=16),
    rules(("z", 1), ("w", 100), default=2),
)
KEYS = [f"k{number}" for number in range(80)]


def plan(storage: Storage, where: str, **asked: Any) -> ScanPlan:
    return plan_scan(open_state(storage), ScanRequest(where=where, **asked))


def named(made: ScanPlan) -> int:
    """Return how many slices the buckets left to be read, or to be judged by their footers."""
    return made.report.slices - made.report.left_out.get(Reason.INDEX, 0)


def ids(storage: Storage, where: str, **asked: Any) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows that a scan finds, and the slices that it looks at."""
    made = plan(storage, where, columns=("id", "p", "n"), **asked)
    found = [tuple(r.values()) for batch in scan_batches(made) for r in batch.to_pylist()]
    return sorted(found), named(made)


def expected(storage: Storage, keys: list[str], **asked: Any) -> list[tuple[Any, ...]]:
    request = ScanRequest(columns=("id", "p", "n"), **asked)
    made = plan_scan(open_state(storage), request)
    found = (tuple(r.values()) for batch in scan_batches(made) for r in batch.to_pylist())
    return sorted(row for row in found if row[0] in keys)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(WANTED)),
        st.tuples(st.just("rescale"), st.sampled_from(WANTED)),
        st.tuples(st.just("write"), st.sampled_from(["xyz", "w", "wx"])),
    ),
    min_size=2,
    max_size=5,
)


@pytest.mark.parametrize("examples", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_no_matching_row_is_lost_at_any_time(examples: int) -> None:
    chosen = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    tables = {"mor": st.booleans(), "version": st.sampled_from([9, 6])}
    keys = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True)
    chosen(given(**tables, steps=STEPS, keys=keys)(_no_matching_row_is_lost))()


def _no_matching_row_is_lost(
    mor: bool, version: int, steps: list[tuple[str, Any]], keys: list[str]
) -> None:
    storage = memory()
    filled_table(storage, mor=mor, version=version)
    for number, (verb, what) in enumerate(steps):
        if verb == "set":
            set_rules(open_state(storage), what, {})
        elif verb == "rescale":
            rescaled(storage, what)
        else:
            Table(storage).upsert(table_of(rows(range(40, 80), 10 + number, what)))
    where = f"id IN ({', '.join(repr(key) for key in keys)})"
    done = open_state(storage).timeline.data()
    for instant in [None, *(i.requested for i in done)]:
        found, slices = ids(storage, where, as_of=instant)
        assert found == expected(storage, keys, as_of=instant), instant
        assert slices <= 4 * len(keys)  # a key has one bucket in each partition
    ends = [None, *(i.completed for i in done)]
    for start, end in [*pairwise(ends), *((None, end) for end in ends)]:
        window = {"mode": ReadingMode.INCREMENTAL, "start": start, "end": end}
        found, _ = ids(storage, where, **window)
        assert found == expected(storage, keys, **window), (start, end)


def test_explain_tells_files_before_and_after() -> None:
    storage = memory()
    filled_table(storage)
    rescaled(storage, WANTED[0])
    before = sum(1 for part in Table(storage).get_latest_snapshot() for _ in part.file_slices)
    made = plan(storage, "id = 'k7'")
    assert f"buckets: 3 of {before} files may hold the keys" in made.explain()
    assert (made.report.files_asked, made.report.files_named) == (before, 3)
    one = plan(storage, "id = 'k7' AND p = 'y'")
    assert (len(one), one.report.files_named) == (1, 1)
    assert "buckets:" not in plan(storage, "n = 7").explain()


def many(storage: Storage, given: BucketRules, **shape: Any) -> Storage:
    made_table(storage, **shape)
    HashingStore(storage).write_config(FIRST_INSTANT, given, {})
    Table(storage).upsert(table_of(rows(range(80), 1)))
    return storage


def test_what_cannot_be_known_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    storage = many(memory(), WANTED[0])
    found, slices = ids(storage, "id = 'k7'")
    assert (len(found), slices) == (1, 3)
    everything = named(plan(storage, "n >= 0"))
    path = f"{CONFIGS_FOLDER}/{FIRST_INSTANT}.hashing_config"
    odd = encode_hashing_config(HashingConfig(r"(p=)\1,8", 3, FIRST_INSTANT))
    for data in (b"{}", odd):
        caplog.clear()
        storage.write(path, data)
        assert ids(storage, "id = 'k7'") == (found, everything)
        assert "buckets are not pruned" in caplog.text


def test_a_partition_with_a_bucket_beyond_its_number_is_kept_whole() -> None:
    storage = many(memory(), WANTED[0])
    HashingStore(storage).write_config(FIRST_INSTANT, rules(("p=x", 4), ("p=[yz]", 3)), {})
    storage.delete([file.path for file in storage.list(SIMPLE_FOLDER)])
    groups = {p.descriptor.path: p.file_slices for p in Table(storage).get_latest_snapshot()}
    assert any(int(piece.group.file_id[:8]) >= 4 for piece in groups["p=x"])
    assert named(plan(storage, "id = 'k7' AND p = 'x'")) == len(groups["p=x"])
    assert named(plan(storage, "id = 'k7'")) == len(groups["p=x"]) + 2


@pytest.mark.parametrize(
    ("key", "told", "pruned"),
    [(["id"], False, True), (["id", "sub"], False, False), (["id", "sub"], True, True)],
)
def test_a_table_of_another_writer_that_names_no_index(
    key: list[str], told: bool, pruned: bool
) -> None:
    """Its rules are known; of a key with parts nobody knows which are hashed, unless told."""
    storage = many(memory(), WANTED[0], key=key)
    gone = ["hoodie.index.type", "hoodie.bucket.index.num.buckets"]
    gone += [] if told else ["hoodie.bucket.index.hash.field"]
    update_properties(storage, dict.fromkeys(gone))
    where = "id = 'k7' AND sub = 0"
    found, slices = ids(storage, where)
    assert [row[0] for row in found] == ["k7"]
    assert (slices == 3) is pruned


def test_before_there_were_rules_the_first_number_counts() -> None:
    storage = memory()
    filled_table(storage)
    first = open_state(storage).timeline.data()[-1].requested
    rescaled(storage, WANTED[1])
    for instant in (first, None):
        found, slices = ids(storage, "id = 'k7'", as_of=instant)
        assert found == expected(storage, ["k7"], as_of=instant)
        assert slices == 3
