"""Hudi's options that say what a table is: heard where they agree, refused where they do not."""

from pathlib import Path

import pytest

import lakewright as lw

WRITE = "hoodie.datasource.write."
ROW = {"id": "1", "at": "d", "n": 1, "ts": 1}


@pytest.fixture(params=[9, 6], ids=["v9", "v6"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> lw.Table:
    made = lw.create_table(
        tmp_path / "t",
        schema="id string, at string, n int, ts bigint",
        key="id",
        partition_by="at",
        order_by="ts",
        version=request.param,
    )
    made.upsert([ROW])
    return made


AGREEING = {
    f"{WRITE}recordkey.field": "id",
    f"{WRITE}partitionpath.field": "at:SIMPLE",
    f"{WRITE}precombine.field": " ts ",
    f"{WRITE}table.type": "copy_on_write",
    f"{WRITE}operation": "upsert",
    f"{WRITE}hive_style_partitioning": "true",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}


def test_options_that_agree_are_heard(table: lw.Table) -> None:
    assert table.upsert([ROW], options=AGREEING).updated == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{WRITE}recordkey.field", "n"),
        (f"{WRITE}recordkey.field", "id,n"),
        ("hoodie.table.recordkey.fields", "n"),
        (f"{WRITE}partitionpath.field", ""),
        (f"{WRITE}precombine.field", "n"),
        ("hoodie.table.ordering.fields", "n,ts"),
        (f"{WRITE}table.type", "MERGE_ON_READ"),
        (f"{WRITE}hive_style_partitioning", "false"),
        (f"{WRITE}partitionpath.urlencode", "true"),
        ("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING"),
        ("hoodie.write.record.merge.mode", "COMMIT_TIME_ORDERING"),
        (f"{WRITE}operation", "insert"),
        (f"{WRITE}operation", "delete"),
    ],
)
def test_options_that_say_otherwise_are_refused(table: lw.Table, key: str, value: str) -> None:
    before = table.timeline.instants
    with pytest.raises(lw.InvalidOption, match=key) as told:
        table.upsert([ROW], options={key: value})
    assert told.value.next_step
    assert table.timeline.instants == before


def test_a_delete_of_whole_partitions_is_a_delete(table: lw.Table) -> None:
    table.delete(where="at = 'd'", options={f"{WRITE}operation": "delete"})
    assert table.scan().count() == 0
