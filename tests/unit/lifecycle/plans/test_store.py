"""Plans are kept with the table; every change of state is one file that is created once."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakewright.lifecycle.plans.plan import Plan, PlanBase, PlanItem, Skipped, new_plan_id
from lakewright.lifecycle.plans.records import Applied, PlanRun, PlanState, Undone
from lakewright.lifecycle.plans.store import PLANS_FOLDER, PlanStore
from lakewright.model.errors import AlreadyExists, Conflict, Corrupt, Invalid, NotFound
from lakewright.storage.memory import MemoryStorage
from support.rescaling import memory

NOW = datetime(2026, 11, 16, 7, 41, tzinfo=UTC)


def made(at: datetime = NOW, kind: str = "ttl") -> Plan:
    items = (PlanItem("p=x", "old", 1, 10),)
    base = PlanBase(None, None)
    return Plan(new_plan_id(kind, at), "t", kind, base, items, "ann", at)


def applied(plan: Plan, until: datetime | None = None) -> Applied:
    left = (Skipped("p=y", "written since"),)
    return Applied(plan.id, "t", NOW, "ann", "1", ("p=x",), left, until, 1, {"a": "b"})


@pytest.fixture
def storage() -> MemoryStorage:
    return memory()


def test_a_plan_goes_through_its_states(storage: MemoryStorage) -> None:
    store, plan = PlanStore(storage), made()
    store.save(plan)
    assert store.load(plan.id) == plan
    assert store.record(plan.id).state is PlanState.PLANNED
    assert store.begin(plan.id, "applying", "ann", NOW) == 1
    assert store.record(plan.id).state is PlanState.APPLYING
    assert store.begin(plan.id, "applying", "bob", NOW) == 2
    done = applied(plan, NOW)
    store.finish_applying(done)
    record = store.record(plan.id)
    assert (record.state, record.applied) == (PlanState.APPLIED, done)
    assert store.begin(plan.id, "undoing", "ann", NOW) == 1
    assert store.record(plan.id).state is PlanState.UNDOING
    back = Undone(plan.id, "t", NOW, "ann", "2", "by a rollback", ("p=x",), 3, 1)
    store.finish_undoing(back)
    record = store.record(plan.id)
    assert (record.state, record.undone) == (PlanState.UNDONE, back)


def test_an_id_is_taken_once(storage: MemoryStorage) -> None:
    store, plan = PlanStore(storage), made()
    store.save(plan)
    with pytest.raises(AlreadyExists):
        store.save(plan)


def test_second_ends_are_conflicts(storage: MemoryStorage) -> None:
    store, plan = PlanStore(storage), made()
    store.save(plan)
    store.finish_applying(applied(plan))
    with pytest.raises(Conflict, match=r"applied\.json"):
        store.finish_applying(applied(plan))


def test_attempts_at_once_get_one_number_each(storage: MemoryStorage) -> None:
    store, plan = PlanStore(storage), made()
    store.save(plan)
    told: list[object] = []
    gate = threading.Barrier(6)

    def begin() -> None:
        gate.wait()
        try:
            told.append(store.begin(plan.id, "applying", "x", NOW))
        except Conflict as conflict:
            told.append(conflict)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [one for one in told if isinstance(one, int)]
    assert numbers and len(set(numbers)) == len(numbers)
    assert store.standing(plan.id).attempts("applying") == tuple(sorted(numbers))


def test_plans_are_listed_newest_first(storage: MemoryStorage) -> None:
    store = PlanStore(storage)
    plans = [made(NOW + timedelta(seconds=n), kind) for n, kind in enumerate(("z-a", "a", "m"))]
    for plan in plans:
        store.save(plan)
    assert [record.plan for record in store.list()] == plans[::-1]
    assert list(PlanStore(memory()).list()) == []


def test_absent_and_strange_plans(storage: MemoryStorage) -> None:
    store = PlanStore(storage)
    with pytest.raises(NotFound, match="There is no plan"):
        store.load(made().id)
    with pytest.raises(Invalid):
        store.load("../../hoodie.properties")


def test_damaged_records_are_named(storage: MemoryStorage) -> None:
    store, plan = PlanStore(storage), made()
    store.save(plan)
    storage.write(f"{PLANS_FOLDER}/{plan.id}/applied.json", b'{"plan": 1}')
    with pytest.raises(Corrupt, match=r"applied\.json"):
        store.record(plan.id)


def test_what_an_attempt_prepared(storage: MemoryStorage) -> None:
    store, plan = PlanStore(storage), made()
    store.prepare(plan.id, 2, {"a": [1]})
    assert store.prepared(plan.id, 2, dict) == {"a": [1]}
    with pytest.raises(NotFound):
        store.prepared(plan.id, 1, dict)


def test_runs_are_kept(storage: MemoryStorage) -> None:
    store, plan = PlanStore(storage), made()
    store.save(plan)
    runs = [PlanRun(n, "applying", "ann", NOW, NOW, f"{n}") for n in (1, 2)]
    for run in runs:
        store.note(plan.id, run)
    assert store.runs(plan.id) == tuple(runs)


def test_old_plans_are_forgotten_and_undoable_ones_are_not(storage: MemoryStorage) -> None:
    store = PlanStore(storage)
    old, used, open_, busy, new = (made(NOW + timedelta(seconds=n)) for n in range(5))
    for plan in (old, used, open_, busy, new):
        store.save(plan)
    later = NOW + timedelta(days=90, seconds=3.5)
    store.finish_applying(applied(used, later - timedelta(days=1)))
    store.finish_applying(applied(open_, later + timedelta(days=1)))
    store.begin(busy.id, "applying", "ann", NOW)
    assert set(store.expire({}, later)) == {old.id, used.id}
    assert set(store.ids()) == {open_.id, busy.id, new.id}
    assert store.expire({"lakewright.plans.retention": "1d"}, later) == (new.id,)
    assert replace(store.record(open_.id)).state is PlanState.APPLIED
