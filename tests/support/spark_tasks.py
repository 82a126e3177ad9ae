"""Task functions for tests of the Spark executor; Spark pickles them by value."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakewright.actions.executor import Attempt
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.model.errors import Invalid


def describe(shared: str, item: Any, attempt: Attempt) -> tuple[str, Any, Attempt, int]:
    """Say what came, and in which process."""
    return shared, item, attempt, os.getpid()


def take_time(shared: float, item: int, attempt: Attempt) -> int:
    """Be busy for so many seconds."""
    time.sleep(shared)
    return item


def refuse(shared: str, item: int, attempt: Attempt) -> int:
    if item == 3:
        raise Invalid(f"item {item} is odd.", next_step="Give another.", item=item)
    return item


def census(
    shared: tuple[str, ...], batches: Iterable[pa.RecordBatch], attempt: Attempt
) -> Iterator[tuple[int, tuple[Any, ...], int]]:
    """Count the rows of each combination of values of the shared columns in this task."""
    found: dict[tuple[Any, ...], int] = {}
    for batch in batches:
        for values in zip(*(batch.column(name).to_pylist() for name in shared), strict=True):
            found[values] = found.get(values, 0) + 1
    for values, count in found.items():
        yield attempt.task, values, count


def rows_seen(
    shared: None, batches: Iterable[pa.RecordBatch], attempt: Attempt
) -> Iterator[tuple[int, list[dict[str, Any]], str]]:
    for batch in batches:
        yield attempt.task, batch.to_pylist(), str(batch.schema)


def refuse_rows(shared: str, batches: Iterable[pa.RecordBatch], attempt: Attempt) -> Iterator[int]:
    for batch in batches:
        raise Invalid(f"{batch.num_rows} rows are {shared}.", rows=batch.num_rows)
    yield 0


def write_once(
    shared: tuple[str, str], batches: Iterable[pa.RecordBatch], attempt: Attempt
) -> Iterator[tuple[str, int]]:
    """Write one file per task; the first run of a task fails, or sleeps, as told."""
    folder, trouble = shared
    rows = pa.Table.from_batches(list(batches)) if batches else None
    count = rows.num_rows if rows is not None else 0
    path = Path(folder) / f"{attempt.token}.txt"
    path.write_text(str(count))
    first = Path(folder) / f"first-{attempt.task}"
    try:
        first.touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        if trouble == "fail":
            raise OSError("the first run fails")
        if trouble == "sleep" and attempt.task == 0:
            time.sleep(20)
    yield path.name, count


def by_bucket(batch: pa.RecordBatch) -> Any:
    """Number rows by the columns day and key, as a route of four buckets does."""
    days = [sum(day.encode()) if day else 0 for day in batch.column("day").to_pylist()]
    return np.array(days) * 100 + bucket_of(batch.column("key"), ("key",), 4)
