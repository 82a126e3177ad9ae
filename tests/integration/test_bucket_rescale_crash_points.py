"""A rescale or an undo that stops at any storage call leaves rows and rules in agreement."""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.model.errors import LakewrightError
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from support import rescale_scenarios
from support.faulty_storage import Fault, FaultyStorage
from support.rescale_scenarios import VERBS, act, prepare
from support.rescaling import (
    by_hudi,
    check_law,
    content,
    live_groups,
    memory,
    rescaled,
    rows,
    rules,
    table_of,
)
from support.table_files import copy_table, strays
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

TOLD: Counter[str] = Counter()
#: One shape of each verb is tried always, at every so many-th call; all the rest takes minutes.
SAMPLED = 7
SHAPES: dict[str, dict[str, Any]] = {
    f"{'mor' if mor else 'cow'}-v{version}": {"mor": mor, "version": version}
    for mor, version in itertools.product((True, False), (9, 6))
}
CASES = [pytest.param(verb, shape, id=f"{verb}-{shape}") for verb in VERBS for shape in SHAPES]
QUICK = [
    pytest.param(verb, shape, id=f"{verb}-{shape}")
    for verb, shape in zip(VERBS, SHAPES, strict=True)
]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how many points there were."""
    TOLD.clear()
    yield
    tell(request, TOLD, "rescale crashes")


def left(storage: Storage) -> list[str]:
    """Files that nothing names: of the bucket index, those of instants that never completed."""
    view = open_state(storage).timeline
    known = {i.requested for i in view.completed()} | {"00000000000000"}
    found = []
    for path in strays(storage):
        inside = path.startswith((".hoodie/.bucket_index/", ".hoodie/.hashing_meta/"))
        if not inside or path.rpartition("/")[2].split(".")[0] not in known:
            found.append(path)
    return found


def look(storage: Storage, before: Counter[Any], numbers: list[dict[str, int]], at: str) -> int:
    """Judge a table on which something was cut off; return which of the states it is in."""
    found = check_law(storage)
    assert found in numbers, f"{at}: numbers of buckets that never were"
    assert content(storage) == before, f"{at}: other rows"
    if not storage.uri.startswith("memory:"):
        assert by_hudi(storage.uri) == content(storage, meta=False), at
    report = Table(storage).fsck()
    assert report.ok, f"{at}: {report.problems}"
    new = rows(range(14, 20), 9, "xyz")
    Table(storage).upsert(table_of(new))
    now = check_law(storage)
    # Whoever writes next finishes what was being taken back.
    known = {path: count for path, count in now.items() if path != "p=z"}
    assert known in numbers[numbers.index(found) :], f"{at}: the next write"
    rescaled(storage, rules(default=5))
    assert set(check_law(storage).values()) == {5}, f"{at}: the next rescale"
    after = content(storage, meta=False)
    for row in new:
        assert after[tuple(row.values())] == 1, at
    keys = {(row["id"], row["p"]) for row in new}
    old = {row for row in content_of(before) if (row[0], row[2]) not in keys}
    assert old <= set(after), f"{at}: rows were lost"
    assert sum(after.values()) == len(old) + len(new), f"{at}: rows were doubled"
    stray = left(storage)
    assert not stray, f"{at}: left {stray}"
    report = Table(storage).fsck(deep=True)
    assert report.ok, f"{at}: {report.problems}"
    return numbers.index(found)


def content_of(before: Counter[Any]) -> list[tuple[Any, ...]]:
    """The rows without Hudi's columns."""
    return [row[3:] for row in before]


def outcomes(template: Storage, verb: str) -> list[dict[str, int]]:
    """The numbers of buckets before, and after it was done."""
    before = check_law(template)
    done = memory()
    copy_table(template, done)
    act(done, verb)
    after = check_law(done)
    assert after != before
    assert content(done) == content(template)
    return [before, after]


def fail_at_calls(verb: str, shape: str, start: int, step: int, lost: bool) -> None:
    template = memory()
    prepare(verb, template, **SHAPES[shape])
    before, numbers = content(template), outcomes(template, verb)
    seen: Counter[int] = Counter()
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
        at = f"{verb} at call {number}, {faulty.calls[number]}"
        seen[look(storage, before, numbers, at)] += 1
    TOLD["points after which it was done"] += seen[1]
    assert seen[0]


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
    prepare(verb, template, **SHAPES[shape])
    before, numbers = content(template), outcomes(template, verb)
    groups = sum(len(slices) for slices in live_groups(template).values())
    count = rescale_scenarios.run(folder, verb, step)
    assert count * step > groups
    TOLD["deaths"] += count
    seen: Counter[int] = Counter()
    for place in sorted(folder.iterdir()):
        if place.name != "template":
            at = f"{verb} died at {place.name}"
            seen[look(open_storage(place), before, numbers, at)] += 1
    assert seen[0]


@pytest.mark.parametrize(("verb", "shape"), QUICK)
def test_a_killed_process(tmp_path: Path, verb: str, shape: str) -> None:
    kill_at_calls(tmp_path, verb, shape, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "shape"), CASES)
def test_a_killed_process_wherever_it_dies(tmp_path: Path, verb: str, shape: str) -> None:
    kill_at_calls(tmp_path, verb, shape, 1)
