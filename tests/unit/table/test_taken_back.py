"""Readers of version 6 that listed the log of a dead write finish after it was taken back."""

from pathlib import Path

import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.model.errors import SnapshotGone
from lakewright.storage.open import open_storage
from support.faulty_storage import Crash, Fault, FaultyStorage


def row(n: int) -> list[dict[str, object]]:
    return [{"id": "a", "n": n, "p": "x"}]


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    made = lw.create_table(
        tmp_path / "t",
        schema="id string, n int, p string",
        key="id",
        partition_by="p",
        type="MERGE_ON_READ",
        version=6,
        buckets=1,
    )
    made.upsert(row(0))
    made.upsert(row(1))
    return made


def logs(table: lw.Table) -> set[str]:
    return {path.name for path in Path(table.path, "p=x").glob(".*.log.*")}


def test_a_reader_beside_a_dead_write_finishes(table: lw.Table) -> None:
    known = logs(table)
    dies = Fault("writer", path=".log.", after=True, error=Crash)
    with pytest.raises(Crash):
        Table(FaultyStorage(open_storage(table.path), [dies])).upsert(row(2))
    (left,) = logs(table) - known
    (snapshot,) = table.get_latest_snapshot()
    assert any(left in path for piece in snapshot.file_slices for path in piece.paths)
    scan = table.scan()
    scan.plan()
    table.upsert(row(3))
    assert left not in logs(table)
    assert scan.to_arrow().to_pylist() == row(1)
    assert table.scan().to_arrow().to_pylist() == row(3)


def test_a_write_that_counted_for_the_reader_is_missed(table: lw.Table) -> None:
    scan = table.scan()
    scan.plan()
    newest = max(instant.requested for instant in table.timeline.data())
    table.rollback(newest)
    with pytest.raises(SnapshotGone):
        scan.to_arrow()
    assert table.scan().to_arrow().to_pylist() == row(0)
