"""Sorting in bounded memory: the same rows in order, whatever fits."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.actions.tasks import sorted_rows as module
from lakewright.actions.tasks.sorted_rows import sorted_rows

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("i", pa.int64())])


def batches(values: list[tuple[int | None, str | None]], size: int) -> list[pa.RecordBatch]:
    rows = [{"a": a, "b": b, "i": i} for i, (a, b) in enumerate(values)]
    return pa.Table.from_pylist(rows, schema=SCHEMA).to_batches(max_chunksize=size)


_VALUES = st.lists(
    st.tuples(st.none() | st.integers(-3, 3), st.none() | st.text("ab", max_size=2)), max_size=60
)


@settings(max_examples=60, deadline=None)
@given(_VALUES, st.integers(1, 9), st.sampled_from([1, 200, 1 << 20]))
def test_rows_come_in_order(
    values: list[tuple[int | None, str | None]], size: int, limit: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_HEAD", 2)
        found = list(sorted_rows(iter(batches(values, size)), ("a", "b"), limit))
    table = pa.Table.from_batches(found, SCHEMA)
    expected = pa.Table.from_batches(batches(values, 100), SCHEMA)
    expected = expected.sort_by([("a", "ascending"), ("b", "ascending")])
    assert table.select(["a", "b"]).equals(expected.select(["a", "b"]))
    assert sorted(table["i"].to_pylist()) == list(range(len(values)))


def test_what_does_not_fit_lies_on_disk_while_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    values: list[tuple[int | None, str | None]] = [(n * 37 % 100, "x") for n in range(1000)]
    stream = sorted_rows(iter(batches(values, 50)), ("a",), 4000)
    first = next(stream)
    assert len(list(tmp_path.rglob("*.arrow"))) > 3
    rest = list(stream)
    found = pa.Table.from_batches([first, *rest])
    assert found["a"].to_pylist() == sorted(a for a, _ in values)
    assert not list(tmp_path.iterdir())
    # One that is left half way leaves nothing behind either.
    stream = sorted_rows(iter(batches(values, 50)), ("a",), 4000)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert not list(tmp_path.iterdir())
