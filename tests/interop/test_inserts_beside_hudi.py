"""Plain inserts, by Hudi and by us into tables of one shape: the same rows, the same duplicates.

Hudi inserts without a look at stored keys and without combining a batch. What it makes of a key
that comes twice depends on the table: files of copy-on-write tables hold it twice, logs are
merged when they are read.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw
from support import hudi_writer
from support.model_table import Kind, counted
from support.write_machine import create, same

pytestmark = pytest.mark.interop

INT = pa.int64()
KINDS = [
    Kind(False, 9, index="bucket", ordering=INT, buckets=2),
    Kind(False, 9, partitioned=False, composite=True, index="bucket", buckets=2),
    Kind(False, 6, index="bucket", ordering=INT, buckets=2),
    Kind(False, 9, ordering=INT),
    Kind(True, 9, index="bucket", ordering=INT, buckets=2),
    Kind(True, 6, index="bucket", ordering=INT, buckets=2),
]
COMBINE = {"hoodie.combine.before.insert": "true"}


def _row(kind: Kind, key: str, mark: str, ts: int = 1, p: str = "x") -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(kind.schema.names)
    row |= {"id": key, "s": mark}
    if kind.composite:
        row["sub"] = 1
    if kind.partitioned:
        row["p"] = p
    if kind.ordering is not None:
        row["ts"] = ts
    return row


class Twins:
    """One table that Hudi fills and one that we fill; each also reads the other's."""

    def __init__(self, spark: Any, folder: Path, kind: Kind) -> None:
        self.spark, self.kind = spark, kind
        self.ours, self.theirs = (
            create(folder / whose / "t", kind) for whose in ("ours", "theirs")
        )
        self.columns = [*kind.schema.names, "_hoodie_record_key", "_hoodie_partition_path"]

    def arrow(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=self.kind.schema)

    def insert(self, *rows: dict[str, Any], swap: bool = False, **options: str) -> None:
        """Insert into both, each table by its own software; ``swap`` takes the other's."""
        ours, theirs = (self.theirs, self.ours) if swap else (self.ours, self.theirs)
        ours.insert(self.arrow(list(rows)), options=options)
        hudi_writer.write(self.spark, theirs.path, self.kind, rows, "insert", options)

    def upsert(self, *rows: dict[str, Any]) -> None:
        self.ours.upsert(self.arrow(list(rows)))
        hudi_writer.write(self.spark, self.theirs.path, self.kind, rows)

    def agree(self, what: str, most: int | None = None) -> None:
        """Both tables hold the same rows, whoever reads them; one key up to ``most`` times."""
        rows = hudi_writer.read(self.spark, self.theirs.path)
        expected = counted(rows, self.columns)
        found = hudi_writer.read(self.spark, self.ours.path)
        same(counted(found, self.columns), expected, f"{what}: our table, read by Hudi")
        for table, whose in ((self.ours, "our table"), (self.theirs, "Hudi's table")):
            found = table.scan(meta=True).to_arrow().to_pylist()
            same(counted(found, self.columns), expected, f"{what}: {whose}, read by us")
        if most is not None:
            keys = [row["_hoodie_record_key"] for row in rows]
            assert max(keys.count(key) for key in keys) == most, what


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_inserts_keep_what_hudi_keeps(hudi_spark: Any, tmp_path: Path, kind: Kind) -> None:
    twins = Twins(hudi_spark, tmp_path, kind)
    # Base files keep a key as often as it came; buckets with logs show the newest of them.
    logged = kind.mor and kind.index == "bucket"

    def row(*values: Any) -> dict[str, Any]:
        return _row(kind, *values)

    twins.insert(row("a", "1"), row("b", "1"), row("c", "1"), row("d", "1", 5), row("e", "1"))
    twins.agree("first insert", 1)
    twins.insert(row("f", "2"), row("f", "2 again"), row("g", "2"), row("h", "2", 1, "y"))
    twins.agree("a key twice in a batch", 1 if logged else 2)
    twins.insert(row("a", "3"), row("d", "3 is late", 4), row("f", "3"), row("i", "3"))
    twins.agree("keys that are stored", 1 if logged else 3)
    twins.insert(row("b", "4"), row("j", "4"), swap=True)
    twins.agree("the other's table", 1 if logged else 3)
    twins.insert(row("k", "5 loses"), row("k", "5", 2), row("c", "5"), **COMBINE)
    twins.agree("combined", 1 if logged else 3)


def test_inserts_without_duplicates_beside_hudi(hudi_spark: Any, tmp_path: Path) -> None:
    """``dedupe`` is Hudi's insert that drops duplicates; both leave the stored rows alone.

    Not in bucket tables, where Hudi drops new keys too: see the page of differences.
    """
    kind = Kind(False, 9, ordering=INT)
    table = create(tmp_path / "t", kind)
    twin = create(tmp_path / "twin" / "t", kind)
    drop = {"hoodie.datasource.insert.dup.policy": "drop"}
    batches = [
        [_row(kind, "a", "1"), _row(kind, "b", "1", 5)],
        [_row(kind, "b", "2", 9), _row(kind, "c", "2"), _row(kind, "c", "2 newer", 2)],
    ]
    for rows in batches:
        table.insert(pa.Table.from_pylist(rows, schema=kind.schema), dedupe=True)
        hudi_writer.write(hudi_spark, twin.path, kind, rows, "insert", {**COMBINE, **drop})
    columns = [*kind.schema.names, "_hoodie_record_key", "_hoodie_partition_path"]
    expected = counted(hudi_writer.read(hudi_spark, twin.path), columns)
    assert sum(expected.values()) == 3
    for found in (_read(table), hudi_writer.read(hudi_spark, table.path)):
        same(counted(found, columns), expected, "dropped duplicates")


def _read(table: lw.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.scan(meta=True).to_arrow().to_pylist()
    return rows
