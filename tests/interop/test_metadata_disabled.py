"""A metadata table taken away: we write, and real Hudi makes it anew and sees every row."""

from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.actions.disable_metadata import disable_metadata, find_metadata
from lakewright.storage.open import open_storage
from lakewright.timeline.locks.choose import open_lock

pytestmark = pytest.mark.interop

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
}


def test_hudi_goes_on_after_its_metadata_table_was_taken_away(
    hudi_spark: Any, tmp_path: Path
) -> None:
    place = str(tmp_path / "t")

    def upsert(*rows: tuple[str, str, int]) -> None:
        frame = hudi_spark.createDataFrame(list(rows), "id string, p string, n int")
        frame.write.format("hudi").options(**OPTIONS).mode("append").save(place)

    def seen() -> list[tuple[str, int]]:
        reader = hudi_spark.read.format("hudi").option("hoodie.metadata.enable", "true")
        return sorted((row["id"], row["n"]) for row in reader.load(place).collect())

    upsert(("a", "x", 1), ("b", "y", 1))
    table = lw.open_table(place)
    with pytest.raises(lw.Unsupported, match="disable-metadata"):
        table.upsert([{"id": "a", "p": "x", "n": 2}])
    storage = open_storage(place, {})
    assert disable_metadata(storage, open_lock(storage, {}))
    table.upsert([{"id": "a", "p": "x", "n": 2}, {"id": "c", "p": "z", "n": 2}])
    assert seen() == [("a", 2), ("b", 1), ("c", 2)]
    upsert(("c", "z", 3), ("d", "x", 3))
    assert "files" in find_metadata(storage).partitions
    assert seen() == [("a", 2), ("b", 1), ("c", 3), ("d", 3)]
    rows = table.scan(columns=["id", "n"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in rows) == seen()
