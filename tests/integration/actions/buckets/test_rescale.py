"""Rescaling from plan to commit: rows, groups, rules, what the hudi package reads."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.actions.buckets.rescale import STANDS_FOR, rescale
from lakewright.actions.buckets.setting import set_rules
from lakewright.actions.create import create_table
from lakewright.actions.tasks.rescale import rescale_works
from lakewright.api.creating import plan_table
from lakewright.api.table import Table
from lakewright.format.hudi.bucket_hash import bucket_number
from lakewright.format.hudi.hashing_config import CONFIGS_FOLDER
from lakewright.format.hudi.metadata.commit import RESCALED
from lakewright.index.hashing_store import HashingStore
from lakewright.model.errors import Conflict, Corrupt, Invalid
from lakewright.model.instant import Action
from lakewright.model.table import TableId
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from support.pairwise import thinned
from support.rescaling import (
    SCHEMA,
    SHAPES,
    by_hudi,
    check_law,
    content,
    filled_table,
    live_groups,
    made_table,
    memory,
    plan,
    rescaled,
    rows,
    rules,
    table_of,
    undone,
)
from support.servicing import servicing
from support.table_files import strays

BUCKET_FILES = (".hoodie/.bucket_index/", ".hoodie/.hashing_meta/")


def left(storage: Storage) -> list[str]:
    """Files that nothing names, those of the bucket index left out."""
    return [path for path in strays(storage) if not path.startswith(BUCKET_FILES)]


@pytest.fixture(params=thinned({name: (kind,) for name, kind in SHAPES.items()}))
def shape(request: pytest.FixtureRequest) -> dict[str, Any]:
    kind: dict[str, Any] = request.param
    return kind


def agrees_with_hudi(storage: Storage) -> None:
    assert by_hudi(storage.uri) == content(storage, meta=False)


def test_growing_and_shrinking_keep_every_row_and_what_hudi_says_of_it(
    shape: dict[str, Any], tmp_path: Path
) -> None:
    storage = open_storage(tmp_path / "t")
    filled_table(storage, **shape)
    before = content(storage)
    for number in (8, 2, 7, 1, 12, 4):
        result = rescaled(storage, rules(default=number))
        assert set(check_law(storage).values()) == {number}
        assert content(storage) == before
        assert result.rows == sum(before.values())
        assert result.instant is not None
        assert result.version == result.instant.requested
        agrees_with_hudi(storage)
    assert not left(storage)
    report = Table(storage).fsck(deep=True)
    assert report.ok, report.problems


def test_later_writes_follow_the_new_numbers(shape: dict[str, Any], tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage, **shape)
    rescaled(storage, rules(("x", 16), ("z$", 3), default=4))
    groups = {path: len(slices) for path, slices in live_groups(storage).items()}
    table.upsert(table_of(rows(range(30, 90), 5)))
    table.delete(table_of(rows(range(35, 40), 6)))
    check_law(storage)
    agrees_with_hudi(storage)
    if shape["partitioned"]:
        assert check_law(storage) == {"p=x": 16, "p=y": 4, "p=z": 3}
        assert groups["p=x"] > 4
        assert groups["p=z"] <= 3


@settings(max_examples=12)
@given(before=st.integers(1, 24), after=st.integers(1, 24), mor=st.booleans())
def test_any_two_numbers(before: int, after: int, mor: bool) -> None:
    storage = memory()
    filled_table(storage, buckets=before, mor=mor, partitioned=False)
    there = content(storage)
    result = rescaled(storage, rules(default=after))
    assert content(storage) == there
    assert check_law(storage) == {"": after}
    assert (result.instant is None) == (before == after)


def test_only_chosen_partitions_move_and_the_others_are_pinned(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage)
    before = {path: {p.group for p in slices} for path, slices in live_groups(storage).items()}
    result = rescaled(storage, rules(default=8), ["p=y"])
    assert list(result.partitions) == ["p=y"]
    assert check_law(storage) == {"p=x": 4, "p=y": 8, "p=z": 4}
    after = {path: {p.group for p in slices} for path, slices in live_groups(storage).items()}
    assert after["p=x"] == before["p=x"]
    assert after["p=z"] == before["p=z"]
    assert not after["p=y"] & before["p=y"]
    # A new partition follows the rules; the pinned ones do not.
    table.upsert(table_of(rows(range(200, 240), 7, "xw")))
    assert check_law(storage) == {"p=w": 8, "p=x": 4, "p=y": 8, "p=z": 4}
    agrees_with_hudi(storage)
    # Without new rules a rescale gives pinned partitions what the rules give, and drops the pins.
    rescaled(storage, partitions=["p=x"])
    assert check_law(storage) == {"p=w": 8, "p=x": 8, "p=y": 8, "p=z": 4}
    rescaled(storage)
    assert set(check_law(storage).values()) == {8}
    newest = HashingStore(storage).newest(open_state(storage).timeline)
    assert newest is not None
    assert not newest.pins


def test_rules_that_were_set_are_carried_out_by_the_next_rescale() -> None:
    storage = memory()
    filled_table(storage)
    work = servicing(storage)
    set_rules(work.state, rules(("p=x", 9), default=5), {})
    assert set(check_law(storage).values()) == {4}
    waiting = plan(storage)
    assert [(i.partition, i.before, i.after) for i in waiting.items] == [
        ("p=x", 4, 9),
        ("p=y", 4, 5),
        ("p=z", 4, 5),
    ]
    rescale(servicing(storage), waiting)
    assert check_law(storage) == {"p=x": 9, "p=y": 5, "p=z": 5}


def test_a_rescale_on_the_timeline(shape: dict[str, Any]) -> None:
    storage = memory()
    filled_table(storage, **shape)
    old = live_groups(storage)
    result = rescaled(storage, rules(default=6))
    view = open_state(storage).timeline
    newest = view.data()[-1]
    assert newest == result.instant
    assert newest.action is Action.REPLACECOMMIT
    body = view.commit_metadata(newest)
    assert body.operation == "INSERT_OVERWRITE"
    assert body.extra[RESCALED] == "00000000000000"
    assert STANDS_FOR not in body.extra
    assert {p: set(ids) for p, ids in body.replaced.items()} == {
        path: {piece.group.file_id for piece in slices} for path, slices in old.items()
    }
    for stats in body.write_stats.values():
        assert len({bucket_number(stat.file_id) for stat in stats}) == len(stats)
        assert all(stat.file_id.endswith("-0") for stat in stats)
    assert storage.stat(f"{CONFIGS_FOLDER}/{newest.requested}.hashing_config") is not None


def test_changes_tell_nothing_of_moved_rows(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    start = open_state(storage).timeline.latest_completion()
    assert start is not None
    rescaled(storage, rules(default=8))
    assert not table.changes(start).to_arrow().num_rows
    assert not table.incremental(start).to_arrow().num_rows
    table.upsert(table_of(rows(range(100, 103), 9)))
    assert table.changes(start).to_arrow().num_rows == 3
    assert table.incremental(start).to_arrow().num_rows == 3


def test_readers_of_the_past_see_it(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    last = open_state(storage).timeline.data()[-1].requested
    before = sorted(map(str, table.scan().to_arrow().to_pylist()))
    rescaled(storage, rules(default=3))
    table.upsert(table_of(rows(range(10), 9)))
    assert sorted(map(str, table.scan(as_of=last).to_arrow().to_pylist())) == before


def test_a_partition_whose_rows_are_all_gone_loses_its_groups() -> None:
    storage = memory()
    table = filled_table(storage)
    gone = [row for row in rows(range(60), 9) if row["p"] == "y"]
    table.delete(table_of(gone))
    assert live_groups(storage)["p=y"]
    rescaled(storage, rules(default=8))
    assert set(live_groups(storage)) == {"p=x", "p=z"}
    table.upsert(table_of(gone))
    assert set(check_law(storage).values()) == {8}


def test_merged_logs_keep_the_winners(tmp_path: Path) -> None:
    for version in (9, 6):
        storage = open_storage(tmp_path / f"t{version}")
        table = filled_table(storage, mor=True, version=version)
        assert any(piece.logs for slices in live_groups(storage).values() for piece in slices)
        before = content(storage)
        rescaled(storage, rules(default=5))
        assert content(storage) == before
        assert not any(p.logs for slices in live_groups(storage).values() for p in slices)
        assert table.scan(mode="read_optimized").to_arrow().num_rows == sum(before.values())
        agrees_with_hudi(storage)


def test_two_keys_and_a_hash_over_one_of_them(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    fields = {"hoodie.bucket.index.hash.field": "sub"}
    table = made_table(storage, key=["id", "sub"], properties=fields)
    table.upsert(table_of(rows(range(80), 1)))
    before = content(storage)
    for number in (6, 9, 2):
        rescaled(storage, rules(default=number))
        check_law(storage)
        assert content(storage) == before
    assert max(len(slices) for slices in live_groups(storage).values()) == 2
    agrees_with_hudi(storage)


def test_a_hundred_thousand_buckets() -> None:
    storage = memory()
    table = made_table(storage, partitioned=False, buckets=2)
    table.upsert(table_of(rows(range(300), 1)))
    before = content(storage)
    planned = plan(storage, rules(default=100_000))
    assert 295 <= planned.items[0].new_files <= 300
    result = rescale(servicing(storage), planned)
    assert content(storage) == before
    assert check_law(storage) == {"": 100_000}
    assert 290 <= result.files_written <= 300
    table.upsert(table_of(rows(range(250, 320), 2)))
    check_law(storage)
    rescaled(storage, rules(default=99_999))
    assert check_law(storage) == {"": 99_999}
    rescaled(storage, rules(default=1))
    assert check_law(storage) == {"": 1}
    assert sum(content(storage).values()) == 320


def test_rows_beyond_the_memory_of_a_task_go_by_its_disk() -> None:
    storage = memory()
    table = made_table(storage, partitioned=False, buckets=3)
    table.upsert(table_of(rows(range(5000), 1)))
    table.upsert(table_of(rows(range(0, 5000, 3), 2)))
    before = content(storage)
    rescaled(storage, rules(default=7), **{"lakewright__write__spill-bytes": "1000"})
    assert content(storage) == before
    assert check_law(storage) == {"": 7}


COPY = {"lakewright__clustering__copied-row-group-bytes": "0"}


def test_buckets_that_become_one_are_copied_unread(shape: dict[str, Any], tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage, buckets=8, **shape)
    before = content(storage)
    for number in (4, 2, 1):
        groups = {path: len(slices) for path, slices in live_groups(storage).items()}
        result = rescaled(storage, rules(default=number), **COPY)
        assert content(storage) == before
        assert set(check_law(storage).values()) == {number}
        agrees_with_hudi(storage)
        assert result.rows == sum(before.values())
        assert {p: one.groups for p, one in result.partitions.items()} == groups
    table.upsert(table_of(rows(range(40, 70), 9)))
    agrees_with_hudi(storage)
    report = Table(storage).fsck(deep=True)
    assert report.ok, report.problems


def test_whether_rows_are_copied_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    storage = memory()
    filled_table(storage, partitioned=False)
    with caplog.at_level("INFO"):
        rescaled(storage, rules(default=2), **COPY)
        assert "rows are read, not copied" not in caplog.messages
        rescaled(storage, rules(default=1))
        assert "rows are read, not copied" in caplog.messages


def test_a_copied_row_in_a_wrong_bucket_is_told() -> None:
    storage = memory()
    filled_table(storage, partitioned=False)
    found = {bucket_number(piece.group.file_id): piece for piece in live_groups(storage)[""]}
    one, two = found[0].base, found[1].base
    assert one is not None and two is not None
    storage.write(one.path, storage.read(two.path))
    with pytest.raises(Corrupt, match=r"buckets\.repair\(\)"):
        rescaled(storage, rules(default=2), **COPY)
    assert not left(storage)


def test_nothing_to_do() -> None:
    storage = memory()
    filled_table(storage)
    result = rescaled(storage, rules(default=4))
    assert result.instant is None
    assert not result.partitions
    assert len(open_state(storage).timeline.by_action(Action.REPLACECOMMIT)) == 0


def test_rules_that_move_no_row_are_set() -> None:
    storage = memory()
    table = filled_table(storage)
    result = rescaled(storage, rules(("p=new", 32), default=4))
    assert result.instant is None
    assert result.version is not None
    table.upsert(table_of(rows(range(10), 1, ("new",))))
    assert check_law(storage)["p=new"] == 32


def test_a_stale_plan_says_what_changed() -> None:
    storage = memory()
    table = filled_table(storage)
    planned = plan(storage, rules(default=8))
    # Rows that go to groups that are there leave the plan as it is.
    table.upsert(table_of(rows(range(4), 9)))
    table.delete_partitions(["p=y"])
    with pytest.raises(Conflict, match=r"partition 'p=y' has other file groups: 4 .*, 0 now"):
        rescale(servicing(storage), planned)
    planned = plan(storage, rules(default=8))
    set_rules(servicing(storage).state, rules(("p=q", 3), default=4), {})
    with pytest.raises(Conflict, match="not of one number for all"):
        rescale(servicing(storage), planned)
    planned = plan(storage, rules(default=8))
    rescaled(storage, rules(default=6))
    with pytest.raises(Conflict, match="the bucket rules are those of"):
        rescale(servicing(storage), planned)
    assert check_law(storage) == {"p=x": 6, "p=z": 6}
    assert not left(storage)


def test_a_plan_outlives_writes_into_its_groups() -> None:
    storage = memory()
    table = filled_table(storage, mor=True)
    planned = plan(storage, rules(default=8))
    table.upsert(table_of(rows(range(60), 9)))
    before = content(storage)
    rescale(servicing(storage), planned)
    assert content(storage) == before
    check_law(storage)


def test_damaged_buckets_are_refused() -> None:
    storage = memory()
    filled_table(storage, partitioned=False)
    piece = live_groups(storage)[""][0]
    assert piece.base is not None
    other = piece.base.name.replace(piece.group.file_id, "00000001-0000-4000-8000-000000000000-0")
    storage.write(other, storage.read(piece.base.path))
    with pytest.raises(Invalid, match="bucket 1 of partition '' has two file groups"):
        plan(storage, rules(default=8))
    storage.delete([other])
    beyond = other.replace("00000001-", "00000009-")
    storage.write(beyond, storage.read(piece.base.path))
    with pytest.raises(Invalid, match="belongs to none of the 4 buckets"):
        plan(storage, rules(default=8))


def test_a_row_in_a_wrong_bucket_is_not_lost_but_told() -> None:
    storage = memory()
    filled_table(storage, partitioned=False)
    one, two = live_groups(storage)[""][:2]
    assert one.base is not None and two.base is not None
    kept = storage.read(one.base.path)
    storage.write(one.base.path, storage.read(two.base.path))
    with pytest.raises(Corrupt, match=r"buckets\.repair\(\)"):
        rescaled(storage, rules(default=8))
    storage.write(one.base.path, kept)
    assert not left(storage)
    rescaled(storage, rules(default=8))
    check_law(storage)


def test_planned_services_are_carried_out_first() -> None:
    storage = memory()
    table = filled_table(storage, mor=True)
    assert table.schedule_compaction() is not None
    with pytest.raises(Conflict, match="compaction"):
        rescaled(storage, rules(default=8))
    table.compact()
    rescaled(storage, rules(default=8))
    check_law(storage)


def test_services_after_a_rescale(shape: dict[str, Any], tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage, **shape)
    rescaled(storage, rules(default=7))
    table.upsert(table_of(rows(range(20, 80), 8)))
    if shape["mor"]:
        table.compact()
    table.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "n"})
    before = content(storage)
    table.upsert(table_of(rows(range(20, 80), 9)))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    check_law(storage)
    assert sum(before.values()) == sum(content(storage).values())
    agrees_with_hudi(storage)
    assert not left(storage)
    rescaled(storage, rules(default=3))
    check_law(storage)


def test_the_result_tells_what_was_done() -> None:
    storage = memory()
    filled_table(storage)
    result = rescaled(storage, rules(("p=x", 8), default=4))
    told = json.loads(result.to_json())
    assert told["partitions"]["p=x"]["before"] == 4
    assert told["partitions"]["p=x"]["after"] == 8
    assert told["rows"] == result.rows == result.partitions["p=x"].rows > 0
    assert "p=x: 4 -> 8 buckets, 4 groups replaced" in str(result)
    assert "<td>p=x</td>" in result._repr_html_()
    back = undone(storage)
    assert json.loads(back.to_json())["undone"] == [told["instant"]]


def test_tables_without_buckets_are_refused() -> None:
    storage = memory()
    create_table(storage, plan_table(TableId("", "t"), SCHEMA, "id", {}))
    Table(storage).upsert(table_of(rows(range(3), 1)))
    with pytest.raises(Invalid, match="no bucket table"):
        plan(storage, rules(default=8))


def test_work_is_divided_by_the_greatest_common_divisor() -> None:
    storage = memory()
    table = made_table(storage, partitioned=False, buckets=12)
    table.upsert(table_of(rows(range(400), 1)))
    slices = live_groups(storage)[""]
    for after in (8, 18, 6, 24, 5):
        works = list(rescale_works(slices, ("id",), 12, after, after))
        step = math.gcd(12, after)
        assert len(works) == step
        assert sorted(bucket for one in works for bucket in one.buckets) == list(range(after))
        for one in works:
            classes = {(bucket_number(p.group.file_id) or 0) % step for p in one.slices}
            assert classes == {one.buckets[0] % step}
    many = list(rescale_works(slices[:1], ("id",), 12, 12 * 5000, 12 * 5000))
    first = bucket_number(slices[0].group.file_id) or 0
    assert [b for one in many for b in one.buckets] == list(range(first, 60_000, 12))
    assert len(many) == 3
    assert len(list(rescale_works(slices[:1], ("id",), 12, 12 * 5000, 40))) == 1
