"""Bucket rules change, whole, in between any two storage calls of a write.

The write notices where a partition of its own has another number of buckets by then, and is
refused; whatever happens, every row lies in its bucket.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lakewright.actions.buckets.setting import set_rules
from lakewright.api.table import Table
from lakewright.model.bucket_rules.text import rules_json
from lakewright.model.errors import Conflict, Unavailable
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from support.faulty_storage import Fault, FaultyStorage
from support.rescaling import check_law, rescaled, rules
from support.table_files import copy_table, strays
from support.write_scenarios import act, after, prepare, seen
from told import tell

NUMBERS = itertools.count()
TOLD: Counter[str] = Counter()
WAIT = "hoodie.write.lock.wait_time_ms"
BEFORE = rules(("p=x$", 3), default=2)
AFTER = rules(("p=[xz]$", 5), default=2)
CHANGES: dict[str, Callable[[Storage], object]] = {
    "set": lambda storage: set_rules(open_state(storage), AFTER, {WAIT: "1"}),
    "rescale": lambda storage: rescaled(storage, AFTER, **{WAIT: "1"}),
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
    tell(request, TOLD, "rules beside a writer")


def place() -> MemoryStorage:
    return MemoryStorage(f"memory://interleaved-rules-{next(NUMBERS)}/t", {})


def interleave(template: Storage, verb: str, change: str, number: int) -> bool:
    """Run one interleaving; False where the write has no such call."""
    storage = place()
    copy_table(template, storage)
    done: list[str] = []

    def rival() -> None:
        try:
            CHANGES[change](storage)
            done.append(change)
        except (Conflict, Unavailable):  # the writer holds the lock, or is at work on the files
            TOLD["changes that gave way"] += 1

    interrupted = Interrupted(storage, between=rival)
    table = Table(interrupted)
    interrupted.made, interrupted.number = 0, number
    try:
        act(table, verb)
        done.append(verb)
    except Conflict:
        TOLD["writes refused"] += 1
        assert change in done, "a conflict with nobody"
    if interrupted.made <= number:
        return False
    TOLD["interleavings"] += 1
    assert seen(storage) == after(verb if verb in done else ""), f"call {number}, {done}"
    moved = change == "rescale" and change in done
    assert check_law(storage).get("p=x") in (None, 5 if moved else 3)
    Table(storage).upsert([{"id": "last", "p": "w", "ts": 9, "n": 9}])
    check_law(storage)
    assert strays(storage) == []
    assert Table(storage).fsck(deep=True).problems == ()
    return True


@pytest.fixture(scope="module")
def templates() -> dict[str, Storage]:
    found: dict[str, Storage] = {}
    shapes: dict[str, dict[str, Any]] = {
        "cow": {"mor": False, "version": 9},
        "mor": {"mor": True, "version": 9},
        "mor-v6": {"mor": True, "version": 6},
    }
    for name, shape in shapes.items():
        found[name] = place()
        prepare(found[name], buckets=rules_json(BEFORE), **shape)
    return found


@pytest.mark.parametrize("shape", ["cow", "mor"])
@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("verb", ["upsert", "overwrite"])
def test_rules_and_a_write_have_an_order(
    templates: dict[str, Storage], shape: str, verb: str, change: str
) -> None:
    for number in itertools.count(len(verb) % 7, 7):
        if not interleave(templates[shape], verb, change, number):
            return


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["cow", "mor", "mor-v6"])
@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("verb", ["insert", "upsert", "delete", "overwrite", "delete_partitions"])
def test_rules_and_a_write_have_an_order_wherever_they_meet(
    templates: dict[str, Storage], shape: str, verb: str, change: str
) -> None:
    for number in itertools.count():
        if not interleave(templates[shape], verb, change, number):
            return
