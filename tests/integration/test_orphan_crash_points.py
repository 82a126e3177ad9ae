"""Removing orphan files, or its undo, that stops at any storage call is finished by the next one.

No row changes on the way, and each file is in its place, in quarantine, or (by a purge) gone.
"""

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from lakewright.api.table import Table
from lakewright.lifecycle.orphans import removing
from lakewright.lifecycle.plans.quarantine import QUARANTINE_FOLDER, held, list_quarantined
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import LakewrightError
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.deaths import die_before_calls
from support.dropping import memory, seen
from support.faulty_storage import Fault, FaultyStorage
from support.orphaned import SHAPES, applied, old_table, planned, strewn, tree, undone
from support.table_files import copy_table
from support.warm import command
from support.write_scenarios import rows, table_of
from told import tell

TOLD: Counter[str] = Counter()
VERBS = ("apply", "purge", "undo")
#: One of each sort.
QUICK = [
    pytest.param("apply", "cow-v9", id="apply-cow-v9"),
    pytest.param("purge", "mor-v9", id="purge-mor-v9"),
    pytest.param("undo", "mor-v6", id="undo-mor-v6"),
]
CASES = [pytest.param(verb, shape, id=f"{verb}-{shape}") for verb in VERBS for shape in SHAPES]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how many points there were."""
    TOLD.clear()
    yield
    tell(request, TOLD, "orphan crashes")


def prepare(verb: str, storage: Storage, shape: str) -> dict[str, bytes]:
    """Create a table with orphans, and a plan that was applied where the verb undoes it."""
    old_table(storage, **SHAPES[shape])
    found = strewn(storage)
    if verb == "undo":
        applied(storage, planned(storage))
    return found


def plan_in(storage: Storage, verb: str) -> None:
    """Plan what the verb applies: a plan takes the files of a copy for others than it knows."""
    if verb != "undo":
        planned(storage, purge=verb == "purge")


def act(storage: Storage, verb: str) -> None:
    """Do it, or finish it where it was done already."""
    store = PlanStore(storage)
    id = store.ids()[0]
    if verb == "undo":
        if store.undone(id) is None:
            undone(storage, id)
    elif store.applied(id) is None:
        with patch.object(removing, "_BATCH", 1):
            applied(storage, id)


def look(storage: Storage, verb: str, expected: Counter[object], found: dict[str, bytes]) -> int:
    """Judge a table on which it was cut off, then finish it; return how many files had gone."""
    store = PlanStore(storage)
    id = store.ids()[0]
    assert seen(storage) == expected
    assert Table(storage).fsck().ok
    here = {path for path in found if storage.stat(path) is not None}
    for path, data in found.items():
        places = [path, f"{QUARANTINE_FOLDER}/{id}/{path}"]
        held_by = [storage.read(place) for place in places if storage.stat(place) is not None]
        assert all(one == data for one in held_by), "never a part of a file"
        assert held_by or verb == "purge", "no file is lost"
    act(storage, verb)
    assert seen(storage) == expected
    record = store.record(id)
    assert record.state is (PlanState.UNDONE if verb == "undo" else PlanState.APPLIED)
    assert record.applied is not None
    assert record.applied.done == tuple(sorted(found)) and not record.applied.skipped
    place = {path for path in found if storage.stat(path) is not None}
    assert place == (found.keys() if verb == "undo" else set())
    assert (held(storage, id) is not None) == (verb == "apply")
    # Whatever is written next is not in the way, and what can be undone still can.
    Table(storage).upsert(table_of(rows("q", "y", 9)))
    if verb == "apply":
        undone(storage, id)
    if verb != "purge":
        assert {path: storage.read(path) for path in found} == found
    assert not list(list_quarantined(storage))
    assert not list(storage.list(QUARANTINE_FOLDER, recursive=True))
    assert Table(storage).fsck(deep=True).ok
    return len(found) - len(here)


def fail_at_calls(verb: str, shape: str, lost: bool) -> None:
    template = memory()
    found = prepare(verb, template, shape)
    expected: Counter[object] = Counter(seen(template))
    gone: Counter[int] = Counter()
    for number in itertools.count():
        storage = memory()
        copy_table(template, storage)
        plan_in(storage, verb)
        faulty = FaultyStorage(storage, [Fault(at=number, after=lost)])
        try:
            act(faulty, verb)
        except LakewrightError:
            TOLD["failed"] += 1
        if len(faulty.calls) <= number:
            break
        TOLD["points"] += 1
        gone[look(storage, verb, expected, found)] += 1
    assert len(gone) > 1, "it was cut off before and after files moved"


@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize(("verb", "shape"), QUICK)
def test_failing_storage(verb: str, shape: str, lost: bool) -> None:
    fail_at_calls(verb, shape, lost)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize(("verb", "shape"), CASES)
def test_failing_storage_of_any_table(verb: str, shape: str, lost: bool) -> None:
    fail_at_calls(verb, shape, lost)


@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize("verb", VERBS)
def test_what_finishes_it_fails_as_well(verb: str, lost: bool) -> None:
    """The first attempt stops after a file or two, the next one at any call."""
    template = memory()
    found = prepare(verb, template, "mor-v9")
    expected: Counter[object] = Counter(seen(template))
    kind, where = ("delete", "p=") if verb == "purge" else ("move", "")
    for number in itertools.count():
        storage = memory()
        copy_table(template, storage)
        plan_in(storage, verb)
        with pytest.raises(LakewrightError, match="told to fail"):
            act(FaultyStorage(storage, [Fault(kind, at=2, path=where)]), verb)
        faulty = FaultyStorage(storage, [Fault(at=number, after=lost)])
        try:
            act(faulty, verb)
        except LakewrightError:
            TOLD["failed twice"] += 1
        if len(faulty.calls) <= number:
            break
        TOLD["points of the second attempt"] += 1
        look(storage, verb, expected, found)


def kill_at_calls(folder: Path, verb: str, shape: str) -> None:
    template = open_storage(folder / "template")
    found = prepare(verb, template, shape)
    expected: Counter[object] = Counter(seen(template))
    whole = tree(template)
    here = Path(__file__)
    paths = [str(here.parents[1]), str(here.parent), *sys.path]
    done = subprocess.run(
        [*command(here), str(folder), verb, "1"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    TOLD["deaths"] += int(done.stdout)
    assert int(done.stdout) > 5
    gone: Counter[int] = Counter()
    for place in sorted(folder.iterdir()):
        if place.name != "template":
            gone[look(open_storage(place), verb, expected, found)] += 1
    assert tree(template) == whole
    assert len(gone) > 1, "it died before and after files moved"


@pytest.mark.parametrize(("verb", "shape"), QUICK)
def test_a_killed_process(tmp_path: Path, verb: str, shape: str) -> None:
    kill_at_calls(tmp_path, verb, shape)


if __name__ == "__main__":
    die_before_calls(act, before=plan_in)
