"""Undoing rescales: data and rules go back together, and no later row is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from lakewright.actions.buckets.rescale import STANDS_FOR
from lakewright.actions.buckets.rescale_undo import plan_undo
from lakewright.actions.buckets.setting import set_rules
from lakewright.format.hudi.hashing_config import CONFIGS_FOLDER
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.errors import Invalid
from lakewright.model.instant import Action
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from support.pairwise import thinned
from support.rescaling import (
    SHAPES,
    by_hudi,
    check_law,
    content,
    filled_table,
    live_groups,
    memory,
    rescaled,
    rows,
    rules,
    table_of,
    undone,
)
from support.servicing import servicing
from support.table_files import strays


@pytest.fixture(params=thinned({name: (kind,) for name, kind in SHAPES.items()}))
def shape(request: pytest.FixtureRequest) -> dict[str, Any]:
    kind: dict[str, Any] = request.param
    return kind


def counting(storage: Storage) -> BucketRules:
    found = HashingStore(storage).newest(open_state(storage).timeline)
    assert found is not None
    return found.rules


def left(storage: Storage) -> list[str]:
    """Files that nothing names; of the bucket index, those of instants that are no more."""
    view = open_state(storage).timeline
    known = {i.requested for i in view.instants} | {"00000000000000"}
    found = []
    for path in strays(storage):
        inside = path.startswith((".hoodie/.bucket_index/", ".hoodie/.hashing_meta/"))
        if not inside or path.rpartition("/")[2].split(".")[0] not in known:
            found.append(path)
    return found


def test_the_newest_rescale_is_rolled_back(shape: dict[str, Any], tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    filled_table(storage, **shape)
    before, groups = content(storage), live_groups(storage)
    done = rescaled(storage, rules(default=9))
    assert done.instant is not None
    back = undone(storage)
    assert back.undone == (done.instant.requested,)
    assert back.version == "00000000000000"
    assert content(storage) == before
    assert live_groups(storage) == groups
    assert set(check_law(storage).values()) == {4}
    assert by_hudi(storage.uri) == content(storage, meta=False)
    assert [f.path for f in storage.list(CONFIGS_FOLDER)] == [
        f"{CONFIGS_FOLDER}/00000000000000.hashing_config"
    ]
    assert not left(storage)


def test_rows_that_came_since_are_kept(shape: dict[str, Any], tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage, **shape)
    rescaled(storage, rules(default=9))
    table.upsert(table_of(rows(range(40, 80), 5)))
    table.delete(table_of(rows(range(3), 6)))
    before = content(storage)
    back = undone(storage)
    assert not back.undone
    assert back.instant is not None
    assert content(storage) == before
    assert set(check_law(storage).values()) == {4}
    assert by_hudi(storage.uri) == content(storage, meta=False)
    assert counting(storage) == rules(default=4)
    body = open_state(storage).timeline.commit_metadata(back.instant)
    assert body.extra[STANDS_FOR] == "00000000000000"
    assert not left(storage)


def test_several_steps_at_once_by_rollbacks() -> None:
    storage = memory()
    filled_table(storage)
    before, groups = content(storage), live_groups(storage)
    made = [rescaled(storage, rules(default=n)).version for n in (6, 3, 12)]
    back = undone(storage, steps=2)
    assert back.undone == (made[2], made[1])
    assert back.version == made[0]
    assert set(check_law(storage).values()) == {6}
    assert content(storage) == before
    undone(storage)
    assert live_groups(storage) == groups
    assert set(check_law(storage).values()) == {4}
    with pytest.raises(Invalid, match="0 rescales can be undone, not 1"):
        undone(storage)


def test_several_steps_with_writes_between(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    numbers = (6, 3, 12)
    for ts, number in enumerate(numbers, 5):
        rescaled(storage, rules(default=number))
        table.upsert(table_of(rows(range(ts * 10, ts * 10 + 30), ts)))
    before = content(storage)
    undone(storage)
    assert set(check_law(storage).values()) == {3}
    # The next undo goes on from there, and does not undo the undo.
    undone(storage)
    assert set(check_law(storage).values()) == {6}
    undone(storage)
    assert set(check_law(storage).values()) == {4}
    assert content(storage) == before
    with pytest.raises(Invalid, match="0 rescales can be undone"):
        undone(storage)
    assert not left(storage)


def test_two_steps_with_writes_between_move_rows_once() -> None:
    storage = memory()
    table = filled_table(storage)
    for ts, number in enumerate((6, 3, 12), 5):
        rescaled(storage, rules(default=number))
        table.upsert(table_of(rows(range(ts * 10, ts * 10 + 30), ts)))
    before = content(storage)
    count = len(open_state(storage).timeline.by_action(Action.REPLACECOMMIT))
    undone(storage, steps=2)
    assert len(open_state(storage).timeline.by_action(Action.REPLACECOMMIT)) == count + 1
    assert set(check_law(storage).values()) == {6}
    assert content(storage) == before


def test_going_to_a_version_by_name_and_forth_again() -> None:
    storage = memory()
    table = filled_table(storage)
    first = rescaled(storage, rules(("p=x", 8), default=4)).version
    second = rescaled(storage, rules(("p=x", 8), ("p=y", 2), default=4)).version
    table.upsert(table_of(rows(range(20), 9)))
    before = content(storage)
    undone(storage, to="00000000000000")
    assert set(check_law(storage).values()) == {4}
    # What was undone can be named too.
    undone(storage, to=second)
    assert check_law(storage) == {"p=x": 8, "p=y": 2, "p=z": 4}
    undone(storage, to=first)
    assert check_law(storage) == {"p=x": 8, "p=y": 4, "p=z": 4}
    assert content(storage) == before
    with pytest.raises(Invalid, match=r"no bucket rules of 2020.*00000000000000"):
        undone(storage, to="20200101000000000")
    with pytest.raises(Invalid, match="steps=0"):
        undone(storage, steps=0)


def test_partitions_that_came_since_go_back_with_the_rules() -> None:
    storage = memory()
    table = filled_table(storage)
    rescaled(storage, rules(default=8))
    table.upsert(table_of(rows(range(100, 140), 5, ("new",))))
    assert check_law(storage)["p=new"] == 8
    before = content(storage)
    undone(storage)
    assert set(check_law(storage).values()) == {4}
    assert content(storage) == before


def test_pins_come_back() -> None:
    storage = memory()
    table = filled_table(storage)
    set_rules(servicing(storage).state, rules(("p=x", 16), default=2), {})
    assert set(check_law(storage).values()) == {4}
    rescaled(storage, partitions=["p=x", "p=y"])
    assert check_law(storage) == {"p=x": 16, "p=y": 2, "p=z": 4}
    table.upsert(table_of(rows(range(30), 9)))
    undone(storage)
    assert set(check_law(storage).values()) == {4}
    assert counting(storage) == rules(("p=x", 16), default=2)
    table.upsert(table_of(rows(range(100, 120), 9, ("new",))))
    assert check_law(storage)["p=new"] == 2


def test_rules_that_were_set_since_go_too() -> None:
    storage = memory()
    filled_table(storage)
    rescaled(storage, rules(default=8))
    set_rules(servicing(storage).state, rules(("p=x", 16), default=8), {})
    before = content(storage)
    undone(storage)
    assert set(check_law(storage).values()) == {4}
    assert counting(storage) == rules(default=4)
    assert content(storage) == before


def test_files_that_were_cleaned_make_the_undo_move_rows() -> None:
    storage = memory()
    table = filled_table(storage)
    rescaled(storage, rules(default=8))
    before = content(storage)
    table.clean(
        options={
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": "1",
        }
    )
    planned = plan_undo(servicing(storage))
    assert planned.rescale is not None
    assert "files of the earlier state are gone" in planned.why
    back = undone(storage)
    assert not back.undone
    assert content(storage) == before
    assert set(check_law(storage).values()) == {4}


def test_a_savepoint_on_the_rescale_makes_the_undo_move_rows() -> None:
    storage = memory()
    table = filled_table(storage)
    rescaled(storage, rules(default=8))
    table.savepoint()
    before = content(storage)
    undone(storage)
    assert content(storage) == before
    assert set(check_law(storage).values()) == {4}


def test_an_archived_rescale_is_undone_by_moving_rows() -> None:
    storage = memory()
    table = filled_table(storage)
    done = rescaled(storage, rules(default=8))
    for ts in range(10, 16):
        table.upsert(table_of(rows(range(ts), ts)))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    table.archive(min_commits=1, max_commits=2)
    assert done.version not in {i.requested for i in open_state(storage).timeline.instants}
    before = content(storage)
    undone(storage)
    assert content(storage) == before
    assert set(check_law(storage).values()) == {4}


def test_what_an_undo_would_do_is_told_and_nothing_done() -> None:
    storage = memory()
    table = filled_table(storage)
    done = rescaled(storage, rules(default=8))
    planned = plan_undo(servicing(storage))
    assert planned.rolled_back == (done.version,)
    assert json.loads(planned.to_json())["rescale"] is None
    assert f"rolled back: {done.version}" in str(planned)
    table.upsert(table_of(rows(range(5), 9)))
    planned = plan_undo(servicing(storage))
    assert "1 writes took effect since" in planned.why
    assert planned.rescale is not None
    assert {item.after for item in planned.rescale.items} == {4}
    assert "8 -> 4 buckets" in str(planned)
    assert json.loads(planned.to_json())["rescale"]["rows"] == planned.rescale.rows
    assert set(check_law(storage).values()) == {8}


def test_a_plain_table_has_nothing_to_undo() -> None:
    storage = memory()
    filled_table(storage)
    with pytest.raises(Invalid, match="0 rescales can be undone"):
        undone(storage)
    with pytest.raises(Invalid, match="no bucket rules of 7"):
        undone(storage, to="7")


def test_a_rollback_and_a_restore_by_hand_undo_a_rescale_too(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    before, groups = content(storage), live_groups(storage)
    last = open_state(storage).timeline.data()[-1].requested
    done = rescaled(storage, rules(default=9))
    assert done.version is not None
    table.rollback(done.version)
    assert live_groups(storage) == groups
    assert set(check_law(storage).values()) == {4}
    rescaled(storage, rules(default=9))
    table.upsert(table_of(rows(range(5), 9)))
    table.restore(last)
    assert live_groups(storage) == groups
    assert content(storage) == before
    assert set(check_law(storage).values()) == {4}
    table.upsert(table_of(rows(range(50, 70), 9)))
    assert set(check_law(storage).values()) == {4}
    assert not left(storage)
