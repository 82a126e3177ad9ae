"""Rows that wait for their group: in memory, and on disk beyond a size."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakewright.actions.tasks.write_prepare import Piece, Place
from lakewright.actions.tasks.write_shelf import Shelf
from lakewright.model.schema import RECORD_KEY

PLACES: list[Place] = [("a", "0"), ("a", "1"), ("b", "0")]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def batch(number: int, *, sharing: bool = True) -> pa.RecordBatch:
    keys = pa.array([f"key-{number:04d}-{row:04d}" for row in range(100)])
    own = keys if sharing else pa.array(keys.to_pylist())
    return pa.RecordBatch.from_pydict({RECORD_KEY: keys, "n": pa.array(range(100)), "id": own})


def put(shelf: Shelf, *, sharing: bool = True) -> Iterator[pa.RecordBatch]:
    for number in range(9):
        rows = batch(number, sharing=sharing)
        shelf.put(Piece(PLACES[number % 3], rows, rows.nbytes))
        yield rows


@pytest.mark.parametrize("limit", [1, 5_000, 1 << 30])
@pytest.mark.parametrize("sharing", [True, False])
def test_rows_come_back_in_their_order(limit: int, *, sharing: bool) -> None:
    with Shelf(limit) as shelf:
        rows = list(put(shelf, sharing=sharing))
        assert list(shelf.places()) == PLACES
        for number, place in enumerate(PLACES):
            found = shelf.take(place)
            assert found is not None
            assert found.equals(pa.Table.from_batches(rows[number::3]))
        assert shelf.take(PLACES[0]) is None


def test_keys_that_are_a_column_are_put_on_disk_once(temporary: Path) -> None:
    def stored(*, sharing: bool) -> int:
        with Shelf(20_000) as shelf:
            list(put(shelf, sharing=sharing))
            assert shelf.spilled
            return sum(file.stat().st_size for file in temporary.rglob("*.arrow"))

    assert stored(sharing=True) < 0.75 * stored(sharing=False)


def test_keys_that_are_a_column_in_some_rows_only_are_kept() -> None:
    with Shelf(1 << 30) as shelf:
        mixed = [batch(1), batch(2, sharing=False)]
        for rows in mixed:
            shelf.put(Piece(PLACES[0], rows, rows.nbytes))
        shelf._store()
        found = shelf.take(PLACES[0])
    assert found is not None
    assert found.equals(pa.Table.from_batches(mixed))


def test_pieces_of_one_place_are_stored_together() -> None:
    with Shelf(1 << 30) as shelf:
        list(put(shelf))
        shelf._store()
        found = shelf.take(PLACES[1])
    assert found is not None
    assert found.column("n").num_chunks == 1
    assert found.column("n").to_pylist() == [*range(100)] * 3
