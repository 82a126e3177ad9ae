"""A rescale that other software took back: it leaves the hashing config, and nobody is misled."""

from pathlib import Path

import pytest

import lakewright as lw
from lakewright.api.table import Table
from lakewright.format.hudi.hashing_config import hashing_config_path
from lakewright.format.hudi.simple_hash_meta import bucket_files_of
from lakewright.storage.open import open_storage

IDS = [f"k{number}" for number in range(12)]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("by", ["restore", "rollback"])
def test_writes_go_where_the_rows_are(version: int, by: str, tmp_path: Path) -> None:
    table = lw.create_table(
        tmp_path / "t", schema="id string, n bigint", key="id", buckets=2, version=version
    )
    first = table.upsert([{"id": key, "n": 1} for key in IDS]).instant
    table.buckets.plan_rescale(rules=5).apply()
    rescaled = table.timeline.data()[-1].requested
    storage = open_storage(table.path)
    kept = {path: storage.read(path) for path in bucket_files_of(rescaled) if storage.stat(path)}
    assert first is not None and hashing_config_path(rescaled) in kept
    if by == "restore":
        table.restore(first)
    else:
        table.rollback(rescaled)
    for path, data in kept.items():
        storage.create(path, data)  # as Hudi leaves it
    assert table.buckets.counts().uniform == 2
    table.upsert([{"id": key, "n": 2} for key in IDS[:7]])
    assert rows(table) == sorted((key, 2 if key in IDS[:7] else 1) for key in IDS)
    assert not [path for path in kept if storage.stat(path)], "Hudi's writers would believe it"


def rows(table: Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["n"]) for row in table.scan().to_arrow().to_pylist())
