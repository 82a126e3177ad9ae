"""Rows divided by partition and bucket."""

import tracemalloc
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakewright.actions.tasks.write_prepare import Piece, Preparer
from lakewright.actions.tasks.write_spec import KeysToDelete
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.text import parse_rules
from lakewright.model.schema import RECORD_KEY
from lakewright.model.writing import Operation
from lakewright.storage.memory import MemoryStorage
from support.task_writes import TaskTable

NUMBERS = count()


def prepared(buckets: int, rules: str | None = None, **more: Any) -> Preparer:
    storage = MemoryStorage(f"memory://prepare-{next(NUMBERS)}/t", {})
    table = TaskTable(storage, buckets=buckets, **more)
    if rules is not None:
        HashingStore(storage).write_config(FIRST_INSTANT, parse_rules(rules, buckets), {})
    return Preparer(table.spec(Operation.UPSERT), 0)


def batch(keys: list[str], days: list[str]) -> pa.RecordBatch:
    rows = len(keys)
    columns = {"id": keys, "ts": np.zeros(rows, np.int64), "v": [""] * rows, "dt": days}
    return pa.RecordBatch.from_pydict(columns)


def placed(pieces: list[Piece]) -> dict[tuple[str, str], list[str]]:
    return {piece.place: piece.rows.column(RECORD_KEY).to_pylist() for piece in pieces}


@pytest.mark.parametrize("rules", [None, "=2,100000;=3,1", "=2,7"])
def test_rows_and_deletes_go_to_the_buckets_of_their_partitions(rules: str | None) -> None:
    preparer = prepared(4, rules)
    numbers = {"dt=1": 4, "dt=2": 4, "dt=3": 4}
    if rules is not None:
        numbers |= {"dt=2": 7} if rules == "=2,7" else {"dt=2": 100_000, "dt=3": 1}
    keys = [f"k{number}" for number in range(300)]
    days = [str(1 + number % 3) for number in range(300)]
    expected: dict[tuple[str, str], list[str]] = {}
    for key, day in zip(keys, days, strict=True):
        path = f"dt={day}"
        bucket = bucket_of(pa.array([key]), ("id",), numbers[path])[0]
        expected.setdefault((path, f"{bucket:08d}"), []).append(key)
    assert placed(preparer.pieces(batch(keys, days))) == expected
    gone = KeysToDelete(pa.array(keys), pa.array([f"dt={day}" for day in days]))
    assert placed(preparer.deletes(gone)) == expected


def test_many_buckets_cost_what_their_rows_cost() -> None:
    """No list of all buckets is made for the few rows of a batch."""
    preparer = prepared(99_999_999, "=2,99999998")
    preparer.pieces(batch(["a"], ["1"]))
    tracemalloc.start()
    try:
        pieces = preparer.pieces(batch(["a", "b", "c"], ["1", "2", "2"]))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(pieces) == 3
    assert most < 1 << 20


def test_rows_keep_their_order_within_a_place() -> None:
    preparer = prepared(2, "=2,70000")
    keys = [f"k{number % 5}" for number in range(60)]
    found = preparer.pieces(batch(keys, ["2"] * 60))
    assert sum(piece.rows.num_rows for piece in found) == 60
    for piece in found:
        values = piece.rows.column(RECORD_KEY).to_pylist()
        assert values == [key for key in keys if key in set(values)]


def test_no_rows_make_no_pieces() -> None:
    assert prepared(4, "=2,7").pieces(batch(["a"], ["1"]).slice(0, 0)) == []
