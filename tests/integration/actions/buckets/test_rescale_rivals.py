"""Rescales beside other writers: one of the two gives way, and the rows are those of a model."""

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lakewright.actions.buckets.rescale import rescale
from lakewright.actions.buckets.rescale_plan import RescalePlan, plan_rescale
from lakewright.actions.buckets.setting import set_rules
from lakewright.actions.executor import Executor
from lakewright.actions.services.servicing import Servicing
from lakewright.api.table import Table
from lakewright.model.errors import Conflict
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_committer import StorageCommitter
from support.rescaling import (
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

PARTED = {name: kind for name, kind in SHAPES.items() if kind["partitioned"]}


@pytest.fixture(params=PARTED.values(), ids=PARTED.keys())
def shape(request: pytest.FixtureRequest) -> dict[str, Any]:
    kind: dict[str, Any] = request.param
    return kind


@dataclass(frozen=True)
class Interrupted:
    """An executor that lets others do something after it has written, before the commit."""

    inner: Executor[Any]
    meanwhile: Callable[[], object]

    def map(self, function: Any, shared: Any, items: Sequence[Any], *, size: Any) -> Iterator[Any]:
        yield from self.inner.map(function, shared, items, size=size)
        self.meanwhile()


def interrupted(storage: Storage, meanwhile: Callable[[], object]) -> Servicing:
    work = servicing(storage)
    executor: Any = Interrupted(work.executor, meanwhile)
    return replace(work, executor=executor)


def left(storage: Storage) -> list[str]:
    inside = (".hoodie/.bucket_index/", ".hoodie/.hashing_meta/")
    return [path for path in strays(storage) if not path.startswith(inside)]


def refused(write: Callable[[], object]) -> None:
    with pytest.raises(Conflict):
        write()


def test_writers_on_its_partitions_are_refused_while_it_runs(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    before = content(storage)
    planned = plan(storage, rules(("p=x", 8), default=4))

    def meanwhile() -> None:
        mine = [row for row in rows(range(60), 9) if row["p"] == "x"]
        refused(lambda: table.upsert(table_of(mine)))
        refused(lambda: table.insert_overwrite(table_of(mine)))
        refused(lambda: table.delete_partitions(["p=x"]))
        # Readers see what was there.
        assert content(storage) == before
        assert check_law(storage) == {"p=x": 4, "p=y": 4, "p=z": 4}

    rescale(interrupted(storage, meanwhile), planned)
    assert content(storage) == before
    assert check_law(storage) == {"p=x": 8, "p=y": 4, "p=z": 4}
    assert not left(storage)


def test_a_new_bucket_of_its_partitions_is_refused_too() -> None:
    storage = memory()
    table = made_table(storage, buckets=64)
    table.upsert(table_of(rows(range(5), 1)))
    planned = plan(storage, rules(default=2))
    # Keys whose buckets have no file group yet, so that no group is touched twice.
    new = [row for row in rows(range(5, 200), 9) if row["p"] == "x"]
    rescale(interrupted(storage, lambda: refused(lambda: table.upsert(table_of(new)))), planned)
    assert check_law(storage) == {"p=x": 2}
    table.upsert(table_of(new))
    assert check_law(storage) == {"p=x": 2}


def test_writes_to_other_partitions_go_on(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    planned = plan(storage, rules(("p=x", 8), default=4))
    others = [row for row in rows(range(60), 9) if row["p"] != "x"]
    rescale(interrupted(storage, lambda: table.upsert(table_of(others))), planned)
    assert check_law(storage) == {"p=x": 8, "p=y": 4, "p=z": 4}
    found = content(storage, meta=False)
    assert all(found[tuple(row.values())] for row in others)


def test_a_new_partition_that_the_new_rules_would_change_makes_it_give_up() -> None:
    storage = memory()
    table = filled_table(storage)
    planned = plan(storage, rules(default=8))
    new = rows(range(100, 120), 9, ("new",))
    with pytest.raises(Conflict, match=r"'p=new' with 4 buckets, for which the new rules give 8"):
        rescale(interrupted(storage, lambda: table.upsert(table_of(new))), planned)
    assert set(check_law(storage).values()) == {4}
    assert not left(storage)
    rescaled(storage, rules(default=8))
    assert set(check_law(storage).values()) == {8}


def test_so_does_one_that_came_after_the_plan_was_made() -> None:
    storage = memory()
    table = filled_table(storage)
    planned = plan(storage, rules(default=8))
    table.upsert(table_of(rows(range(100, 120), 9, ("new",))))
    with pytest.raises(Conflict, match=r"'p=new' with 4 buckets, for which the new rules give 8"):
        rescale(servicing(storage), planned)
    assert set(check_law(storage).values()) == {4}
    assert not left(storage)


def test_a_deleted_partition_that_comes_back_makes_the_plan_stale() -> None:
    storage = memory()
    table = filled_table(storage)
    gone = table.delete_partitions(["p=y"])
    planned = plan(storage, rules(default=8))
    assert [item.partition for item in planned.items] == ["p=x", "p=z"]
    assert gone.instant is not None
    table.rollback(gone.instant.requested)
    with pytest.raises(Conflict, match="was taken back"):
        rescale(servicing(storage), planned)
    assert set(check_law(storage).values()) == {4}


def test_a_plan_that_is_older_than_the_timeline_is_stale() -> None:
    storage = memory()
    table = filled_table(storage)
    planned = plan(storage, rules(("p=x", 8), default=4))
    others = [row for row in rows(range(60), 9) if row["p"] != "x"]
    for _ in range(5):
        table.upsert(table_of(others))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    table.archive(min_commits=1, max_commits=2)
    with pytest.raises(Conflict, match="archived already"):
        rescale(servicing(storage), planned)
    rescaled(storage, rules(("p=x", 8), default=4))
    assert check_law(storage) == {"p=x": 8, "p=y": 4, "p=z": 4}


def begun_before(storage: Storage, write: Callable[[], object], act: Callable[[], object]) -> None:
    """Let a write begin, then ``act``, then let the write publish."""
    published = StorageCommitter.publish
    mine = threading.get_ident()
    state = {"done": False}

    def late(self: Any, ticket: Any, metadata: Any, guard: Any = None) -> Any:
        if threading.get_ident() == mine and not state["done"]:
            state["done"] = True
            act()
        return published(self, ticket, metadata, guard)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StorageCommitter, "publish", late)
        write()


def test_a_write_that_began_before_and_ends_after_is_refused(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    before = content(storage)
    with pytest.raises(Conflict):
        begun_before(
            storage,
            lambda: table.upsert(table_of(rows(range(60), 9))),
            lambda: rescaled(storage, rules(default=9)),
        )
    assert content(storage) == before
    assert set(check_law(storage).values()) == {9}
    assert not left(storage)


def test_so_is_one_that_meets_no_file_group_of_the_rescale() -> None:
    storage = memory()
    table = made_table(storage, buckets=64)
    table.upsert(table_of(rows(range(5), 1)))
    taken = {piece.group.file_id[:8] for piece in live_groups(storage)["p=x"]}
    assert len(taken) == 5
    new = [row for row in rows(range(5, 200), 9) if row["p"] == "x"]
    with pytest.raises(Conflict, match="p=x"):
        begun_before(
            storage,
            lambda: table.insert(table_of(new)),
            lambda: rescaled(storage, rules(default=1)),
        )
    assert check_law(storage) == {"p=x": 1}
    assert sum(content(storage).values()) == 5


def test_so_is_one_that_meets_an_undo() -> None:
    storage = memory()
    table = filled_table(storage)
    before = content(storage)
    for kept in (False, True):
        rescaled(storage, rules(default=9))
        if kept:
            table.upsert(table_of(rows(range(3), 8)))
            before = content(storage)
        with pytest.raises(Conflict):
            begun_before(
                storage,
                lambda: table.upsert(table_of(rows(range(60), 9))),
                lambda: undone(storage),
            )
        assert content(storage) == before
        assert set(check_law(storage).values()) == {4}
    assert not left(storage)


@dataclass(frozen=True)
class Preceded:
    """An executor that lets others do something before it reads."""

    inner: Executor[Any]
    before: Callable[[], object]

    def map(self, function: Any, shared: Any, items: Sequence[Any], *, size: Any) -> Iterator[Any]:
        self.before()
        yield from self.inner.map(function, shared, items, size=size)


@pytest.mark.parametrize("name", PARTED)
def test_a_writer_that_gives_up_while_rows_move(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In version 6 its logs lie among those of others, and vanish."""
    storage = memory()
    table = filled_table(storage, **PARTED[name])
    before, planned = content(storage), plan(storage, rules(default=8))
    published = StorageCommitter.publish
    given_up: list[str] = []

    def late(self: Any, ticket: Any, metadata: Any, guard: Any = None) -> Any:
        if not given_up:
            given_up.append(ticket.instant)
            work = servicing(storage)
            executor: Any = Preceded(work.executor, lambda: self.abandon(ticket))
            rescale(replace(work, executor=executor), planned)
        return published(self, ticket, metadata, guard)

    monkeypatch.setattr(StorageCommitter, "publish", late)
    with pytest.raises(Conflict):
        table.upsert(table_of(rows(range(60), 9)))
    assert given_up
    assert content(storage) == before
    assert set(check_law(storage).values()) == {8}
    assert not left(storage)


def test_rules_that_are_set_meanwhile() -> None:
    storage = memory()
    filled_table(storage)
    planned = plan(storage, rules(default=8))
    state = open_state(storage)

    def meanwhile() -> None:
        refused(lambda: set_rules(state.refresh(), rules(default=6), {}))

    rescale(interrupted(storage, meanwhile), planned)
    assert set(check_law(storage).values()) == {8}


def test_two_rescales_at_once() -> None:
    storage = memory()
    filled_table(storage)
    planned = plan(storage, rules(("p=x", 8), default=4))
    for wanted in (rules(("p=y", 8), default=4), rules(("p=x", 2), default=4)):
        other = plan(storage, wanted)

        def meanwhile(other: RescalePlan = other) -> None:
            refused(lambda: rescale(servicing(storage), other))

        rescale(interrupted(storage, meanwhile), planned)
        assert check_law(storage) == {"p=x": 8, "p=y": 4, "p=z": 4}
        undone(storage)
        planned = plan(storage, rules(("p=x", 8), default=4))
    assert not left(storage)


def test_services_leave_its_groups_alone(shape: dict[str, Any]) -> None:
    storage = memory()
    table = filled_table(storage, **shape)
    before = content(storage)
    sort = {"hoodie.clustering.plan.strategy.sort.columns": "n"}

    def meanwhile() -> None:
        if shape["mor"]:
            assert table.schedule_compaction() is None
        assert table.schedule_clustering(options=sort) is None
        table.clean(options={"hoodie.clean.commits.retained": "1"})
        assert table.cluster(options=sort).instant is None

    rescale(interrupted(storage, meanwhile), plan(storage, rules(default=8)))
    assert content(storage) == before
    assert set(check_law(storage).values()) == {8}


@pytest.mark.parametrize("name", PARTED)
def test_upserts_in_threads_beside_rescales_and_undos(name: str, tmp_path: Path) -> None:
    """Whatever was acknowledged is there, whatever was refused is not."""
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage, **PARTED[name])
    held = {(row["p"], row["id"]): row for row in table.scan().to_arrow().to_pylist()}
    locked = threading.Lock()
    over = threading.Event()
    told = {"written": 0, "refused": 0}
    errors: list[BaseException] = []

    def upserts(seed: int) -> None:
        chance = random.Random(seed)
        ts = 1000 * (seed + 1)
        try:
            while not over.is_set() or told["written"] < 3:
                ts += 1
                # Each thread has partitions of its own: they meet rescales, not each other.
                ids = range(300 * seed, 300 * seed + 60)
                part = chance.choice(("xw", "yz")[seed - 1])
                some = [row for row in rows(ids, ts, part) if chance.random() < 0.3]
                try:
                    Table(storage).upsert(table_of(some))
                except Conflict:
                    told["refused"] += 1
                else:
                    told["written"] += 1
                    with locked:
                        held.update({(row["p"], row["id"]): row for row in some})
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=upserts, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    moved = 0
    try:
        for number in (8, 3, 6, 12, 5, 2):
            for _ in range(6):
                try:
                    work = servicing(storage)
                    if number == 12:
                        undone(storage)
                    else:
                        rescale(work, plan_rescale(work, rules=rules(("p=x", number), default=4)))
                except Conflict:
                    continue
                moved += 1
                break
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not errors
    rescaled(storage, rules(default=7))
    assert moved or told["refused"]
    check_law(storage)
    expected = sorted(tuple(row.values()) for row in held.values())
    assert sorted(content(storage, meta=False).elements()) == expected
    assert sorted(by_hudi(storage.uri).elements()) == expected
    assert not left(storage)


HERE = Path(__file__).parents[3]
DYING = """
import os, signal, sys
from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from support.faulty_storage import Fault, FaultyStorage
from support.rescaling import rows, table_of
def die():
    os.kill(os.getpid(), signal.SIGKILL)
storage = FaultyStorage(open_storage(sys.argv[1]), [Fault("writer", at=3, after=True, error=die)])
Table(storage).upsert(table_of(rows(range(60), 9)))
"""
OTHER = """
import json, sys
from lakewright.api.table import Table
from lakewright.model.errors import Conflict
from lakewright.storage.open import open_storage
from support.rescaling import rows, table_of
storage = open_storage(sys.argv[1])
done = []
for ts in range(2000, 2012):
    some = rows(range(600 + ts % 7, 660, 3), ts, "xyzw")
    try:
        Table(storage).upsert(table_of(some))
    except Conflict:
        continue
    done.extend(some)
    if ts == 2000:
        print("begun", flush=True)
print(json.dumps(done))
"""


def test_another_process_writes_beside_rescales(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    table = filled_table(storage)
    held = {(row["p"], row["id"]): row for row in table.scan().to_arrow().to_pylist()}
    writer = subprocess.Popen(
        [sys.executable, "-c", OTHER, storage.uri],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline().strip() == "begun"
    moved = 0
    for number in (8, 3, 6, 5, 2) * 2:
        try:
            rescaled(storage, rules(("p=x", number), default=4))
        except Conflict:
            continue
        moved += 1
    out, _ = writer.communicate(timeout=300)
    assert writer.returncode == 0
    for row in json.loads(out):
        held[(row["p"], row["id"])] = row
    assert moved
    rescaled(storage, rules(default=7))
    assert set(check_law(storage).values()) == {7}
    expected = sorted(tuple(row.values()) for row in held.values())
    assert sorted(content(storage, meta=False).elements()) == expected
    assert not left(storage)


@pytest.mark.parametrize("version", [9, 6])
def test_a_dead_writer_does_not_stand_in_its_way(version: int, tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    filled_table(storage, mor=True, version=version)
    before = content(storage)
    planned = plan(storage, rules(default=8))
    killed = subprocess.run(
        [sys.executable, "-c", DYING, storage.uri],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        check=False,
    )
    assert killed.returncode == -9
    assert open_state(storage).timeline.pending()
    rescale(servicing(storage), planned)
    assert content(storage) == before
    assert set(check_law(storage).values()) == {8}
    assert not left(storage)
