"""Tables whose folders are formatted times, of a column of times: Spark shows it as text."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import lakewright as lw

TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMICROSECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
SCHEMA = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int64())])
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 120000, dt.UTC)
TEXT = "2024-02-29 12:00:00.12"
CDC = "hoodie.table.cdc."


def rows(n: int) -> pa.Table:
    return pa.table([["a", "b"], [NOON, None], [n, n]], schema=SCHEMA)


def create(place: Path, kind: str, **properties: str) -> lw.Table:
    return lw.create_table(
        place / "t",
        schema=SCHEMA,
        key="id",
        order_by="n",
        partition_by="at",
        key_generator="TIMESTAMP",
        type=kind,
        properties={**TIMES, **properties},
    )


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_times_are_shown_as_text_and_nulls_lie_at_the_epoch(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind)
    for n in (1, 2):
        table.upsert(rows(n))
        found = table.scan(columns=["id", "at", "n", "_hoodie_partition_path"]).to_arrow()
        assert sorted(found.to_pylist(), key=str) == [
            {"id": "a", "at": TEXT, "n": n, "_hoodie_partition_path": "at=2024/02/29"},
            {"id": "b", "at": None, "n": n, "_hoodie_partition_path": "at=1970/01/01"},
        ]
    (only,) = table.scan(where=f"at = '{TEXT}'").to_arrow().to_pylist()
    assert only["id"] == "a"


@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
def test_so_are_they_in_changes(tmp_path: Path, mode: str) -> None:
    properties = {f"{CDC}enabled": "true", f"{CDC}supplemental.logging.mode": mode}
    table = create(tmp_path, "COPY_ON_WRITE", **properties)
    table.upsert(rows(1))
    since = table.timeline.data()[-1]
    table.upsert(rows(2))
    images = table.changes(since).to_arrow().column("before").to_pylist()
    assert sorted(images, key=str) == [
        {"id": "a", "at": TEXT, "n": 1},
        {"id": "b", "at": None, "n": 1},
    ]
