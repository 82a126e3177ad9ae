"""What can still be read after cleanings, savepoints and rollbacks."""

from pathlib import Path

import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.model.errors import HistoryGone
from lakewright.storage.open import open_storage
from support.faulty_storage import Crash, Fault, FaultyStorage


@pytest.fixture(params=[9, 6])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return lw.create_table(
        tmp_path / "t", schema="id string, n bigint", key="id", version=request.param
    )


def written(table: Table, *numbers: int) -> list[str]:
    done = [table.upsert([{"id": "a", "n": n}]).instant for n in numbers]
    return [instant.requested for instant in done if instant is not None]


def read(table: Table, instant: str) -> list[int]:
    return [row["n"] for row in table.scan(as_of=instant).to_arrow().to_pylist()]


def test_a_savepoint_can_be_read_whatever_was_cleaned(table: Table) -> None:
    first, second, *_ = written(table, 1, 2, 3, 4)
    table.savepoint(first)
    table.clean(retain=1)
    assert read(table, first) == [1]
    with pytest.raises(HistoryGone):
        read(table, second)
    table.delete_savepoint(first)
    with pytest.raises(HistoryGone):
        read(table, first)


def test_the_write_before_a_rolled_back_one_can_be_read(table: Table) -> None:
    first, second, third = written(table, 1, 2, 3)
    table.clean(retain=1)
    with pytest.raises(HistoryGone):
        read(table, second)
    # What the earliest retained write was made of is there: else it could not be taken back.
    table.rollback(third)
    assert read(table, second) == [2]
    written(table, 4)
    assert read(table, second) == [2]
    with pytest.raises(HistoryGone):
        read(table, first)


def test_a_cleaning_that_was_cut_off_counts(table: Table) -> None:
    first, *_, last = written(table, 1, 2, 3)
    plan = table.schedule_cleaning(retain=1)
    assert plan is not None
    assert read(table, first) == [1]
    storage = FaultyStorage(
        open_storage(table.path), [Fault("delete", path=".parquet", after=True, error=Crash)]
    )
    with pytest.raises(Crash):
        Table(storage).clean()
    with pytest.raises(HistoryGone):
        read(table, first)
    assert read(table, last) == [3]
    assert table.fsck().ok
