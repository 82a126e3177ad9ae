"""A drop or its undo that stops at any storage call is finished by the next one; no row is lost."""

import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakewright.actions.services.views import savepoints
from lakewright.api.table import Table
from lakewright.lifecycle.drops.holding import release_ended
from lakewright.lifecycle.drops.restored import RESTORED_FOLDER
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PLANS_FOLDER, PlanStore
from lakewright.model.errors import LakewrightError
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.pins import PINS_FOLDER
from lakewright.table.state import open_state
from support.deaths import die_before_calls
from support.dropping import (
    FEW,
    applied,
    by_hudi,
    made_table,
    memory,
    of_partition,
    planned,
    seen,
    undone,
    without,
)
from support.faulty_storage import Fault, FaultyStorage
from support.servicing import servicing
from support.table_files import copy_table, strays
from support.warm import command
from support.write_scenarios import rows, table_of
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

TOLD: Counter[str] = Counter()
#: Applying, without and with a savepoint, and undoing by a rollback and by a commit.
VERBS = ("apply", "apply_saved", "roll_back", "bring_back")
APPLYING = ("apply", "apply_saved")
#: So many calls lie between those that are tried always; trying all takes minutes.
SAMPLED = 7
CASES = [pytest.param(verb, shape, id=f"{verb}-{shape}") for verb in VERBS for shape in FEW]
QUICK = [
    pytest.param("apply", "mor-v6-plain", id="apply-mor-v6-plain"),
    pytest.param("apply_saved", "cow-v9-plain", id="apply_saved-cow-v9-plain"),
    pytest.param("roll_back", "cow-v6-rules", id="roll_back-cow-v6-rules"),
    pytest.param("bring_back", "mor-v9-buckets", id="bring_back-mor-v9-buckets"),
    pytest.param("bring_back", "cow-v9-plain", id="bring_back-cow-v9-plain"),
]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how many points there were."""
    TOLD.clear()
    yield
    tell(request, TOLD, "drop crashes")


def prepare(verb: str, storage: Storage, shape: str) -> Plan:
    """Create a table with a plan, applied where the verb undoes it."""
    table = made_table(storage, shape)
    plan = planned(storage)
    if verb not in APPLYING:
        applied(storage, plan)
    if verb == "bring_back":
        table.upsert(table_of(rows("az", "x", 0), rows("q", "y", 5)))
    return plan


def act(storage: Storage, verb: str) -> None:
    """Do it, or finish it where it was done already."""
    store = PlanStore(storage)
    id = store.ids()[0]
    if verb in APPLYING:
        if store.applied(id) is None:
            saves = str(verb == "apply_saved").lower()
            applied(storage, id, lakewright__undo__savepoint=saves)
    elif store.undone(id) is None:
        undone(storage, id)


def states(template: Storage, verb: str) -> list[Counter[Any]]:
    """What readers see before it, and after it."""
    copy = memory()
    copy_table(template, copy)
    act(copy, verb)
    found = [seen(template), seen(copy)]
    assert found[0] != found[1]
    return found


def look(storage: Storage, verb: str, expected: list[Counter[Any]], at: str) -> int:
    """Judge a table on which it was cut off, then finish it; return which state it was in."""
    found = seen(storage)
    assert found in expected, f"{at}: rows that never were"
    if not storage.uri.startswith("memory:"):
        assert by_hudi(storage.uri) == seen(storage, meta=False), at
    report = Table(storage).fsck()
    assert report.ok, f"{at}: {report.problems}"
    act(storage, verb)
    assert seen(storage) == expected[1], f"{at}: not finished"
    store = PlanStore(storage)
    record = store.record(store.ids()[0])
    wanted = PlanState.APPLIED if verb in APPLYING else PlanState.UNDONE
    assert record.state is wanted, at
    assert record.applied is not None and record.applied.done == ("p=x",)
    # What was done can be undone, and whatever is written next lies beside it.
    Table(storage).upsert(table_of(rows("y", "y", 9)))
    if verb not in APPLYING:
        # An undo that could not let go of what held its files is not undone again for that.
        release_ended(servicing(storage), datetime.now(UTC))
    assert len(list(savepoints(open_state(storage).timeline))) == (verb == "apply_saved"), at
    if verb in APPLYING:
        undone(storage, record.plan)
        assert of_partition(seen(storage), "x") == of_partition(expected[0], "x"), at
    assert without(seen(storage), "y") == without(
        expected[0] if verb in APPLYING else expected[1], "y"
    ), at
    assert not list(savepoints(open_state(storage).timeline)), at
    if not storage.uri.startswith("memory:"):
        assert by_hudi(storage.uri) == seen(storage, meta=False), at
    kept = (f"{PLANS_FOLDER}/", f"{RESTORED_FOLDER}/")
    left = [path for path in strays(storage) if not path.startswith(kept)]
    pins = [path for path in left if path.startswith(PINS_FOLDER)]
    assert not [path for path in left if path not in pins], f"{at}: left {left}"
    held = [json.loads(storage.read(path))["why"] for path in pins]
    assert not held, f"{at}: {held}"
    report = Table(storage).fsck(deep=True)
    assert report.ok, f"{at}: {report.problems}"
    return expected.index(found)


def fail_at_calls(verb: str, shape: str, start: int, step: int, lost: bool) -> None:
    template = memory()
    prepare(verb, template, shape)
    expected = states(template, verb)
    before: Counter[int] = Counter()
    for number in itertools.count(start, step):
        storage = memory()
        copy_table(template, storage)
        faulty = FaultyStorage(storage, [Fault(at=number, after=lost)])
        try:
            act(faulty, verb)
        except LakewrightError:
            TOLD["failed"] += 1
        if len(faulty.calls) <= number:
            break
        TOLD["points"] += 1
        at = f"{verb} of {shape} at call {number}, {faulty.calls[number]}"
        before[look(storage, verb, expected, at)] += 1
    TOLD["points after which it was done"] += before[1]
    assert before[0]


@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize(("verb", "shape"), QUICK)
def test_failing_storage(verb: str, shape: str, lost: bool) -> None:
    fail_at_calls(verb, shape, VERBS.index(verb) % SAMPLED, SAMPLED, lost)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize(("verb", "shape"), CASES)
def test_failing_storage_wherever_it_fails(verb: str, shape: str, lost: bool) -> None:
    fail_at_calls(verb, shape, 0, 1, lost)


def kill_at_calls(folder: Path, verb: str, shape: str, step: int) -> None:
    template = open_storage(folder / "template")
    prepare(verb, template, shape)
    expected = states(template, verb)
    here = Path(__file__)
    paths = [str(here.parents[1]), str(here.parent), *sys.path]
    done = subprocess.run(
        [*command(here), str(folder), verb, str(step)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    deaths = int(done.stdout)
    assert deaths * step > 20
    TOLD["deaths"] += deaths
    before: Counter[int] = Counter()
    for place in sorted(folder.iterdir()):
        if place.name != "template":
            at = f"{verb} of {shape} died at {place.name}"
            before[look(open_storage(place), verb, expected, at)] += 1
    TOLD["deaths after which it was done"] += before[1]
    assert before[0]


@pytest.mark.parametrize(("verb", "shape"), QUICK)
def test_a_killed_process(tmp_path: Path, verb: str, shape: str) -> None:
    kill_at_calls(tmp_path, verb, shape, 7)


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "shape"), CASES)
def test_a_killed_process_wherever_it_dies(tmp_path: Path, verb: str, shape: str) -> None:
    kill_at_calls(tmp_path, verb, shape, 1)


if __name__ == "__main__":
    die_before_calls(act)
