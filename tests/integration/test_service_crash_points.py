"""A service that stops at any storage call leaves the table whole, and the next one goes on."""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.model.errors import Conflict, LakewrightError
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support import write_deaths
from support.faulty_storage import Fault, FaultyStorage
from support.service_scenarios import (
    CLUSTERING,
    SERVICES,
    UNDOING,
    act,
    has,
    marks,
    prepare_for,
    states,
)
from support.table_files import copy_table, strays
from support.write_machine import by_hudi
from support.write_scenarios import content, rows, seen, table_of
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

NUMBERS = itertools.count()
TOLD: Counter[str] = Counter()
#: One shape of each service is tried always, at every so many-th call; all the rest takes minutes.
SAMPLED = 9
SHAPES: dict[str, dict[str, Any]] = {
    f"{'mor' if mor else 'cow'}-v{version}-{'bucket' if buckets else 'lookup'}": {
        "mor": mor,
        "version": version,
        "buckets": buckets,
    }
    for mor, version, buckets in itertools.product((True, False), (9, 6), (2, None))
}
CASES = [
    pytest.param(service, shape, id=f"{service}-{shape}")
    for service in SERVICES
    for shape, kind in SHAPES.items()
    if has(service, mor=kind["mor"], version=kind["version"])
]


def _one_of(service: str) -> str:
    """One of the shapes that have the service, another one for each."""
    shapes = [s for s, k in SHAPES.items() if has(service, mor=k["mor"], version=k["version"])]
    return shapes[SERVICES.index(service) * 3 % len(shapes)]


QUICK = [pytest.param(s, _one_of(s), id=f"{s}-{_one_of(s)}") for s in SERVICES]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how many points there were."""
    TOLD.clear()
    yield
    tell(request, TOLD, "service crashes")


def look(storage: Storage, service: str, allowed: list[Any], where: str) -> bool:
    """Judge a table on which a service was cut off; say whether rows had changed."""
    found = seen(storage)
    assert found in allowed, f"{where}: a state that never was"
    if not storage.uri.startswith("memory:"):
        assert content(by_hudi(storage.uri)) == found, where
    report = Table(storage).fsck()
    assert report.ok, f"{where}: {report.problems}"
    new = [{"id": "next", "p": "x", "ts": 9, "n": 1}]
    try:
        Table(storage).upsert(table_of(new))
    except Conflict:
        assert service in CLUSTERING, where
        act(Table(storage), service)
        Table(storage).upsert(table_of(new))
    # Whoever writes finishes what was being taken back.
    after = [state + content(new) for state in allowed if state in (found, allowed[-1])]
    assert seen(storage) in after, f"{where}: the next write"
    if service not in UNDOING:
        act(Table(storage), service)
    Table(storage).upsert(table_of(rows("last", "w", 9)))
    final = [state + content(rows("last", "w", 9)) for state in after]
    assert seen(storage) in final, f"{where}: the next service"
    left = strays(storage)
    assert not left, f"{where}: left {left}"
    report = Table(storage).fsck(deep=True)
    assert report.ok, f"{where}: {report.problems}"
    return found != allowed[0]


def fail_at_calls(service: str, shape: str, start: int, step: int, lost: bool) -> None:
    template = MemoryStorage(f"memory://services-{next(NUMBERS)}/t", {})
    prepare_for(service, template, **SHAPES[shape])
    allowed, before = states(template, service), marks(Table(template))
    done = 0
    for number in itertools.count(start, step):
        storage = MemoryStorage(f"memory://services-{next(NUMBERS)}/t", {})
        copy_table(template, storage)
        faulty = FaultyStorage(storage, [Fault(at=number, after=lost)])
        try:
            act(Table(faulty), service)
        except LakewrightError:
            TOLD["failed"] += 1
        if len(faulty.calls) <= number:
            break
        TOLD["points"] += 1
        done += 1
        changed = marks(Table(storage)) != before
        TOLD["points after which it was done"] += changed
        look(storage, service, allowed, f"{service} at call {number}, {faulty.calls[number]}")
    assert done


@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize(("service", "shape"), QUICK)
def test_a_service_at_failing_storage(service: str, shape: str, lost: bool) -> None:
    start = SERVICES.index(service) % SAMPLED
    fail_at_calls(service, shape, start, SAMPLED, lost)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["fails", "lost"])
@pytest.mark.parametrize(("service", "shape"), CASES)
def test_a_service_at_failing_storage_wherever_it_fails(
    service: str, shape: str, lost: bool
) -> None:
    fail_at_calls(service, shape, 0, 1, lost)


def kill_at_calls(folder: Path, service: str, shape: str, step: int) -> None:
    template = open_storage(folder / "template")
    prepare_for(service, template, **SHAPES[shape])
    allowed = states(template, service)
    count = write_deaths.run(folder, service, step)
    assert count
    TOLD["deaths"] += count
    for place in sorted(folder.iterdir()):
        if place.name != "template":
            look(open_storage(place), service, allowed, f"{service} died at {place.name}")


@pytest.mark.parametrize(("service", "shape"), QUICK)
def test_a_killed_service(tmp_path: Path, service: str, shape: str) -> None:
    kill_at_calls(tmp_path, service, shape, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("service", "shape"), CASES)
def test_a_killed_service_wherever_it_dies(tmp_path: Path, service: str, shape: str) -> None:
    kill_at_calls(tmp_path, service, shape, 1)
