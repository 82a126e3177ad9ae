"""A repair that stops at any storage call leaves the damage or none, and no row is lost."""

import itertools
import re
from collections import Counter
from dataclasses import replace

import pytest

from lakewright.api.buckets import RepairPlanned
from lakewright.api.table import Table
from lakewright.format.hudi.properties import PROPERTIES_PATH
from lakewright.model.errors import Conflict, LakewrightError
from lakewright.storage.port import Storage
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.rescaling import filled_table, memory, rows, table_of
from support.table_files import copy_table, strays

#: Every so many-th call fails; the whole takes minutes and is for those who wait.
SAMPLED = 17
SHAPES = {"cow-9": (False, 9), "mor-9": (True, 9), "cow-6": (False, 6), "mor-6": (True, 6)}


def claim_buckets(storage: Storage, number: int) -> None:
    text = storage.read(PROPERTIES_PATH).decode()
    text = re.sub(r"(index\.num\.buckets=)\d+", rf"\g<1>{number}", text)
    storage.write(PROPERTIES_PATH, re.sub(r"hoodie\.table\.checksum=.*\n", "", text).encode())


def damaged(shape: str) -> Storage:
    mor, version = SHAPES[shape]
    storage = memory()
    table = filled_table(storage, mor=mor, version=version)
    claim_buckets(storage, 6)
    table.upsert(table_of(rows(range(60), 7)))
    claim_buckets(storage, 4)
    assert not table.buckets.check().ok
    return storage


def newest(storage: Storage) -> dict[tuple[str, str], tuple[int, int]]:
    """The row of each key that its ordering value makes the one that counts."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in Table(storage).scan().to_arrow().to_pylist():
        key = (row["id"], row["p"])
        found[key] = max(found.get(key, (0, 0)), (row["ts"], row["n"]))
    return found


def fail_at_calls(shape: str, start: int, step: int, *, after: bool, dies: bool) -> Counter[str]:
    template = damaged(shape)
    before = newest(template)
    seen: Counter[str] = Counter()
    for number in itertools.count(start, step):
        storage = memory()
        copy_table(template, storage)
        plan = Table(storage).buckets.repair()
        fault = Fault(at=number, after=after)
        if dies:
            fault = replace(fault, error=Crash)
        faulty = FaultyStorage(storage, [fault])
        try:
            RepairPlanned(Table(faulty).buckets, plan.plan, None).apply()
        except (LakewrightError, Crash):
            seen["failed"] += 1
        if len(faulty.calls) <= number:
            break
        at = f"call {number}, {faulty.calls[number]}"
        assert newest(storage) == before, at
        table = Table(storage)
        sound = table.buckets.check().ok
        seen["mended" if sound else "as before"] += 1
        if not sound:
            again = table.buckets.repair()
            assert again.plan.items == plan.plan.items, at
            try:
                again.apply()
            except Conflict:  # a dead write was taken back under the plan
                table.buckets.repair().apply()
        assert table.buckets.check().ok, at
        assert newest(storage) == before, at
        table.upsert(table_of(rows(range(3), 99)))
        assert table.scan().count() == len(newest(storage)), at
        assert not strays(storage), at
        assert table.fsck().ok, at
    return seen


@pytest.mark.parametrize("shape", ["cow-9", "mor-6"])
def test_failing_storage(shape: str) -> None:
    seen = fail_at_calls(shape, 1, SAMPLED, after=False, dies=False)
    assert seen["as before"]


def test_a_death() -> None:
    seen = fail_at_calls("mor-9", 2, SAMPLED, after=True, dies=True)
    assert seen["as before"] and seen["failed"]


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["fails", "dies"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_call(shape: str, after: bool, dies: bool) -> None:
    assert fail_at_calls(shape, 0, 1, after=after, dies=dies)["as before"]
