"""Writers beside a drop and its undo, and two who apply the same plan: no row of anyone is lost."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import Applied, PlanState
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import Conflict, LakewrightError, Unavailable
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.dropping import (
    applied,
    by_hudi,
    made_table,
    memory,
    of_partition,
    planned,
    seen,
    undone,
)
from support.faulty_storage import Fault, FaultyStorage
from support.table_files import copy_table
from support.write_scenarios import content, rows, table_of
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

TOLD: Counter[str] = Counter()
IMPATIENT = {"hoodie.write.lock.wait_time_ms": "1"}
SHAPES = ("cow-v9-plain", "mor-v9-plain", "mor-v9-buckets", "mor-v6-plain", "cow-v9-rules")
#: A key of before, with an ordering value that is older than its, and a new one.
NEW = [*rows("a", "x", 1), *rows("z", "x", 4)]
NEW[0]["n"] = 777
STEP = 5


@dataclass(slots=True)
class Interrupted(FaultyStorage):
    """Lets something else happen before one of its calls."""

    number: int = -1
    made: int = 0
    between: Callable[[], None] | None = None

    def _begin(self, verb: str, path: str) -> Fault | None:
        with self._lock:
            self.made += 1
            now = self.made - 1 == self.number
        if now and self.between is not None:
            self.between()
        return None


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how many interleavings there were."""
    TOLD.clear()
    yield
    tell(request, TOLD, "drop contests")


def write(storage: Storage, **options: str) -> None:
    Table(storage).upsert(table_of(NEW), options=options)


def x_rows(storage: Storage) -> Counter[Any]:
    return of_partition(seen(storage, meta=False), "x")


def beside(old: Counter[Any]) -> Counter[Any]:
    """The old rows, with the new ones in the place of those of the same keys."""
    keys = {row["id"] for row in NEW}
    return Counter({row: n for row, n in old.items() if row[0] not in keys}) + content(NEW)


def check_sound(storage: Storage) -> None:
    report = Table(storage).fsck(deep=True)
    assert report.ok, report.problems


def copy_of(template: Storage) -> Storage:
    storage = memory()
    copy_table(template, storage)
    return storage


def interleaved(
    template: Storage,
    first: Callable[[Storage], object],
    second: Callable[[Storage], object],
    judge: Callable[[Storage, set[str]], None],
    start: int,
    step: int,
) -> None:
    """Run the second, whole, between any two storage calls of the first."""
    for number in itertools.count(start, step):
        storage = copy_of(template)
        done: set[str] = set()

        def rival(storage: Storage = storage, done: set[str] = done) -> None:
            try:
                second(storage)
                done.add("second")
            except (Conflict, Unavailable):
                TOLD["the second was refused"] += 1

        interrupted = Interrupted(storage, between=rival, number=number)
        try:
            first(interrupted)
            done.add("first")
        except Conflict:
            TOLD["the first was refused"] += 1
            assert "second" in done, "a conflict with nobody"
        if interrupted.made <= number:
            return
        TOLD["interleavings"] += 1
        judge(storage, done)
        check_sound(storage)


def plan_of(storage: Storage) -> Plan:
    store = PlanStore(storage)
    return store.load(store.ids()[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_writer_while_a_plan_is_applied(shape: str) -> None:
    template = memory()
    made_table(template, shape)
    planned(template)
    old = x_rows(template)

    def judge(storage: Storage, done: set[str]) -> None:
        found = x_rows(storage)
        record = PlanStore(storage).record(plan_of(storage).id)
        assert record.applied is not None, "a drop gives way to a writer, and is not refused"
        dropped = record.applied.done == ("p=x",)
        TOLD["left alone"] += not dropped
        wrote = "second" in done
        # Whoever wrote first is seen by the other; a writer's rows are never lost.
        if dropped:
            assert found == (content(NEW) if wrote else Counter())
            undone(storage, record.plan)
        else:
            assert wrote and record.applied.skipped[0].target == "p=x"
        # Without the drop the older value loses, where there is an old row to lose to.
        after = x_rows(storage)
        lost_to_old = old + content(NEW[1:])
        assert after in ([beside(old)] if dropped else [lost_to_old, beside(old)]) or not wrote
        assert wrote or after == old

    interleaved(
        template,
        lambda s: applied(s, plan_of(s)),
        lambda s: write(s, **IMPATIENT),
        judge,
        SHAPES.index(shape),
        STEP,
    )
    assert TOLD["left alone"] and TOLD["interleavings"] > TOLD["left alone"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plan_is_applied_while_a_writer_is_at_work(shape: str) -> None:
    template = memory()
    made_table(template, shape)
    planned(template)
    old = x_rows(template)

    def judge(storage: Storage, done: set[str]) -> None:
        record = PlanStore(storage).record(plan_of(storage).id)
        dropped = record.applied is not None and record.applied.done == ("p=x",)
        found = x_rows(storage)
        if dropped:
            assert found == (content(NEW) if "first" in done else Counter())
            undone(storage, record.plan)
            assert x_rows(storage) == (beside(old) if "first" in done else old)
        else:
            assert "first" in done and found in [old + content(NEW[1:]), beside(old)]

    interleaved(
        template,
        write,
        lambda s: applied(s, plan_of(s), hoodie__write__lock__wait_time_ms="1"),
        judge,
        SHAPES.index(shape),
        STEP,
    )


@pytest.mark.parametrize("wrote", [False, True], ids=["rollback", "commit"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_writer_while_a_plan_is_undone(shape: str, wrote: bool) -> None:
    template = memory()
    table = made_table(template, shape)
    old = x_rows(template)
    applied(template, planned(template))
    if wrote:
        table.upsert(table_of(rows("q", "x", 3), rows("q", "y", 3)))
        old += content(rows("q", "x", 3))

    def judge(storage: Storage, done: set[str]) -> None:
        record = PlanStore(storage).record(plan_of(storage).id)
        assert record.state is PlanState.UNDONE, "an undo gives way to a writer, and goes on"
        found = x_rows(storage)
        # A writer that came after the undo merges with the old row, which may win.
        possible = [beside(old), old + content(NEW[1:])] if "second" in done else [old]
        assert found in possible

    interleaved(
        template,
        lambda s: undone(s, plan_of(s)),
        lambda s: write(s, **IMPATIENT),
        judge,
        SHAPES.index(shape),
        STEP,
    )


def test_one_of_two_applies_at_every_call() -> None:
    template = memory()
    made_table(template, "cow-v9-plain")
    planned(template)

    def judge(storage: Storage, done: set[str]) -> None:
        assert done in ({"first"}, {"second"}), "one of the two, and one alone"
        assert not x_rows(storage)
        record = PlanStore(storage).record(plan_of(storage).id)
        assert record.state is PlanState.APPLIED

    interleaved(
        template,
        lambda s: applied(s, plan_of(s)),
        lambda s: applied(s, plan_of(s)),
        judge,
        0,
        1,
    )


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_many_at_once_on_disk(tmp_path: Path, verb: str) -> None:
    storage = open_storage(tmp_path / "t")
    made_table(storage, "mor-v9-plain")
    before = seen(storage)
    plan = planned(storage)
    if verb == "undo":
        applied(storage, plan)
        Table(storage).upsert(table_of(rows("q", "y", 5)))
    results: list[object] = []
    gate = threading.Barrier(4)

    def run() -> None:
        gate.wait()
        try:
            results.append((applied if verb == "apply" else undone)(storage, plan))
        except LakewrightError as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [one for one in results if not isinstance(one, LakewrightError)]
    assert len(won) == 1, results
    if verb == "apply":
        assert all(isinstance(one, Applied | Conflict) for one in results)
        assert not of_partition(seen(storage), "x")
    else:
        assert of_partition(seen(storage), "x") == of_partition(before, "x")
    assert by_hudi(storage.uri) == seen(storage, meta=False)
    check_sound(storage)


def test_two_plans_of_one_partition() -> None:
    storage = memory()
    made_table(storage, "cow-v9-plain")
    before = seen(storage)
    one, two = planned(storage), planned(storage)
    assert applied(storage, one).done == ("p=x",)
    second = applied(storage, two)
    assert not second.done and second.skipped[0].reason == "it holds no rows"
    undone(storage, one)
    assert seen(storage) == before
