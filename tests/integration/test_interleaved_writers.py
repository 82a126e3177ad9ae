"""A second write runs, whole, in between any two storage calls of a first one.

What is left is what one of the two orders makes of the table: the first write notices what
happened behind its back, and is refused where that matters.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lakewright.api.table import Table
from lakewright.model.errors import Conflict, Unavailable
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from support.faulty_storage import Fault, FaultyStorage
from support.table_files import copy_table, strays
from support.write_scenarios import act, prepare, rows, seen, table_of
from told import tell

NUMBERS = itertools.count()
TOLD: Counter[str] = Counter()
IMPATIENT = {"hoodie.write.lock.wait_time_ms": "1"}
RIVALS: dict[str, Callable[[Table], Any]] = {
    "insert": lambda t: t.insert(table_of(rows("uz", "x", 4)), options=IMPATIENT),
    "upsert": lambda t: t.upsert(
        table_of(rows("anz", "x", 4), rows("o", "z", 4), rows("i", "y", 4)), options=IMPATIENT
    ),
    "delete": lambda t: t.delete(table_of(rows("ab", "x", 0)), options=IMPATIENT),
    "overwrite": lambda t: t.insert_overwrite(
        table_of(rows("as", "x", 4), rows("o", "z", 4)), options=IMPATIENT
    ),
    "delete_partitions": lambda t: t.delete_partitions(["p=x"], options=IMPATIENT),
}
SHAPES = {
    "cow-lookup": {"mor": False, "version": 9, "buckets": None},
    "mor-lookup": {"mor": True, "version": 9, "buckets": None},
    "cow-bucket": {"mor": False, "version": 9, "buckets": 2},
    "mor-bucket": {"mor": True, "version": 9, "buckets": 2},
    "cow-lookup-v6": {"mor": False, "version": 6, "buckets": None},
    "mor-bucket-v6": {"mor": True, "version": 6, "buckets": 2},
}


@dataclass(slots=True)
class Interrupted(FaultyStorage):
    """Lets something else happen before one of its calls."""

    number: int = -1
    made: int = 0
    between: Callable[[], None] | None = None

    def _begin(self, verb: str, path: str) -> Fault | None:
        self.made += 1
        if self.made - 1 == self.number and self.between is not None:
            self.between()
        return None


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how many interleavings there were."""
    TOLD.clear()
    yield
    tell(request, TOLD, "two writers")


def copy_of(template: Storage) -> MemoryStorage:
    storage = MemoryStorage(f"memory://interleaved-{next(NUMBERS)}/t", {})
    copy_table(template, storage)
    return storage


def interleave(template: Storage, first: str, second: str, number: int) -> bool:
    """Run one interleaving; False where the first write has no such call."""
    storage = copy_of(template)
    done: list[str] = []

    def rival() -> None:
        try:
            RIVALS[second](Table(storage))
            done.append("second")
        except (Conflict, Unavailable):  # the first holds the lock just now
            TOLD["met a lock"] += 1

    interrupted = Interrupted(storage, between=rival)
    table = Table(interrupted)
    interrupted.made, interrupted.number = 0, number
    try:
        act(table, first)
        done.append("first")
    except Conflict:
        TOLD["conflicts"] += 1
        assert "second" in done, "a conflict with nobody"
    if interrupted.made <= number:
        return False
    TOLD["interleavings"] += 1
    found = seen(storage)
    orders = [*itertools.permutations(done)]
    possible = [serial(template, first, second, order) for order in orders]
    assert found in possible, f"call {number}, {done}: {found - possible[0]} {possible[0] - found}"
    Table(storage).upsert(table_of(rows("last", "w", 9)))
    assert strays(storage) == []
    assert Table(storage).fsck(deep=True).problems == ()
    return True


_SERIAL: dict[Any, Counter[tuple[Any, ...]]] = {}


def serial(template: Storage, first: str, second: str, order: tuple[str, ...]) -> Counter[Any]:
    name = (template.uri, first, second, order)
    if name not in _SERIAL:
        storage = copy_of(template)
        for one in order:
            act(Table(storage), first) if one == "first" else RIVALS[second](Table(storage))
        _SERIAL[name] = seen(storage)
    return _SERIAL[name]


@pytest.fixture(scope="module")
def templates() -> dict[str, Storage]:
    found: dict[str, Storage] = {}
    for name, shape in SHAPES.items():
        storage = MemoryStorage(f"memory://interleaved-{next(NUMBERS)}/t", {})
        prepare(storage, **shape)
        found[name] = storage
    return found


@pytest.mark.parametrize("shape", ["cow-lookup", "mor-bucket"])
@pytest.mark.parametrize("second", list(RIVALS))
@pytest.mark.parametrize("first", list(RIVALS))
def test_two_writes_have_an_order(
    templates: dict[str, Storage], shape: str, first: str, second: str
) -> None:
    offset = (list(RIVALS).index(first) + list(RIVALS).index(second)) % 9
    for number in itertools.count(offset, 9):
        if not interleave(templates[shape], first, second, number):
            return


@pytest.mark.slow
@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("second", list(RIVALS))
@pytest.mark.parametrize("first", list(RIVALS))
def test_two_writes_have_an_order_wherever_they_meet(
    templates: dict[str, Storage], shape: str, first: str, second: str
) -> None:
    for number in itertools.count():
        if not interleave(templates[shape], first, second, number):
            return
