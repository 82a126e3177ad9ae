"""Storage that fails, or does what it was asked and then fails, at every call of a write.

The caller gets a result, or an error that tells the truth: the table is as it was, unless the
error says that nobody knows.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.model.errors import CommitStateUnknown, LakewrightError, Unavailable
from lakewright.model.writing import WriteResult
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.faulty_storage import Fault, FaultyStorage, Outage
from support.s3_server import S3Server, running_s3_server
from support.table_files import copy_table, strays
from support.write_scenarios import VERBS, act, after, go_on, prepare, seen
from told import tell

POINTS: Counter[str] = Counter()
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how many points there were."""
    POINTS.clear()
    yield
    tell(request, POINTS, "lost answers")


def attempt(storage: Storage, verb: str) -> tuple[WriteResult | None, LakewrightError | None]:
    """Write; anything but our own errors is a failure of the test."""
    try:
        return act(Table(storage), verb), None
    except LakewrightError as error:
        return None, error


def judge(
    storage: Storage, verb: str, result: WriteResult | None, error: LakewrightError | None
) -> None:
    """Hold what the caller was told against what is there; then write again."""
    found, old, new = seen(storage), after(""), after(verb)
    if result is not None:
        assert found == new
        assert result.instant in Table(storage).timeline.completed()
    elif isinstance(error, CommitStateUnknown):
        assert found in (old, new)
        POINTS["unknown to the caller"] += 1
    else:
        assert found == old, f"the caller was told {error!r}"
    go_on(storage, found)
    assert strays(storage) == []
    assert Table(storage).fsck(deep=True).problems == ()


def fresh(template: Storage, tmp_path: Path, place: str) -> Storage:
    number = next(NUMBERS)
    if place == "memory":
        storage: Storage = MemoryStorage(f"memory://unknown-{number}/t", {})
    else:
        storage = open_storage(tmp_path / str(number))
    copy_table(template, storage)
    return storage


def _case(verb: str, mor: bool, version: int, place: str) -> Any:
    quick = place == "memory" and (mor or verb != "delete")
    name = f"{verb}-{'mor' if mor else 'cow'}-v{version}-{place}"
    marks = () if quick else pytest.mark.slow
    return pytest.param(verb, mor, version, place, id=name, marks=marks)


CASES = [
    _case(verb, mor, version, place)
    for verb in VERBS
    for mor in (False, True)
    for version, place in ((9, "memory"), (9, "local"), (6, "local"))
    if verb == "upsert" or not mor
]


@pytest.mark.parametrize(("verb", "mor", "version", "place"), CASES)
@pytest.mark.parametrize("done", [False, True], ids=["failed", "done"])
def test_one_call_fails(
    tmp_path: Path, verb: str, mor: bool, version: int, place: str, done: bool
) -> None:
    template = MemoryStorage(f"memory://unknown-{next(NUMBERS)}/t", {})
    prepare(template, mor=mor, version=version, buckets=None)
    for number in itertools.count():
        storage = fresh(template, tmp_path, place)
        faulty = FaultyStorage(storage)
        table = Table(faulty)
        faulty.faults = [Fault(at=number, after=done)]
        try:
            result, error = act(table, verb), None
        except LakewrightError as caught:
            result, error = None, caught
        if faulty._hits[0] <= number:
            assert result is not None
            break
        POINTS["one call lost"] += 1
        try:
            judge(storage, verb, result, error)
        except AssertionError as wrong:
            call = faulty.calls[-1]
            raise AssertionError(f"call {number}: {wrong}; last call {call}") from wrong
    assert number > 10


@pytest.mark.parametrize(("verb", "mor", "version", "place"), CASES)
@pytest.mark.parametrize("done", [False, True], ids=["failed", "done"])
def test_nothing_answers_from_one_call_on(
    tmp_path: Path, verb: str, mor: bool, version: int, place: str, done: bool
) -> None:
    template = MemoryStorage(f"memory://unknown-{next(NUMBERS)}/t", {})
    prepare(template, mor=mor, version=version, buckets=None)
    for number in itertools.count(0, 3 if place == "memory" else 1):
        storage = fresh(template, tmp_path, place)
        outage = Outage(storage, done=done)
        table = Table(outage)
        outage.start = number
        try:
            result, error = act(table, verb), None
        except LakewrightError as caught:
            result, error = None, caught
        outage.over = True
        if outage.made <= number:
            break
        POINTS["outages"] += 1
        try:
            judge(storage, verb, result, error)
        except AssertionError as wrong:
            raise AssertionError(f"from call {number} on: {wrong}") from wrong


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    pytest.importorskip("moto", reason="moto is not installed")
    with running_s3_server() as server:
        server.make_bucket("lake")
        yield server


@pytest.mark.service
@pytest.mark.parametrize(
    ("verb", "mor", "step"),
    [
        pytest.param("upsert", False, 6, id="upsert-cow"),
        pytest.param("upsert", True, 1, id="upsert-mor", marks=pytest.mark.slow),
        pytest.param("overwrite", False, 1, id="overwrite-cow", marks=pytest.mark.slow),
    ],
)
def test_answers_lost_on_s3(s3: S3Server, verb: str, mor: bool, step: int) -> None:
    template = MemoryStorage(f"memory://unknown-{next(NUMBERS)}/t", {})
    prepare(template, mor=mor, version=9, buckets=None)
    for number in itertools.count(0, step):
        storage = open_storage(f"s3://lake/{next(NUMBERS)}/t", s3.options)
        copy_table(template, storage)
        faulty = FaultyStorage(storage)
        table = Table(faulty)
        faulty.faults = [Fault(at=number, after=True)]
        try:
            result, error = act(table, verb), None
        except LakewrightError as caught:
            result, error = None, caught
        if faulty._hits[0] <= number:
            break
        POINTS["one call lost on S3"] += 1
        judge(storage, verb, result, error)


@pytest.mark.service
@pytest.mark.parametrize("key", ["requested", "inflight", ".parquet", ".marker", "commit", "lock"])
@pytest.mark.parametrize("how", ["lose", pytest.param("drop", marks=pytest.mark.slow), 503])
def test_requests_lost_by_the_server(s3: S3Server, key: str, how: Any) -> None:
    storage = open_storage(f"s3://lake/{next(NUMBERS)}/t", s3.options)
    prepare(storage, mor=False, version=9, buckets=None)
    s3.set_faults({"method": "PUT", "key": key, "how": how})
    try:
        result, error = act(Table(storage), "upsert"), None
    except LakewrightError as caught:
        result, error = None, caught
    finally:
        s3.set_faults()
    POINTS["requests lost"] += 1
    judge(storage, "upsert", result, error)


def test_the_error_of_a_dead_storage_is_its_own(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "t")
    prepare(storage, mor=False, version=9, buckets=None)
    outage = Outage(storage)
    table = Table(outage)
    outage.start = 0
    with pytest.raises(Unavailable):
        act(table, "upsert")
    outage.over = True
    assert attempt(storage, "upsert")[0] is not None
