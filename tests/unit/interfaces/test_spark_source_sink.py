"""The streaming sink through Spark's protocol, without Spark: every batch once."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from lakewright.interfaces.spark_source import sink
from lakewright.interfaces.spark_source.source import LakewrightSource
from support.left_behind import left_behind
from support.source_protocol import Protocol

SCHEMA = "id string, n bigint"


@pytest.fixture
def spark_like(monkeypatch: pytest.MonkeyPatch) -> Protocol:
    return Protocol(monkeypatch, SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    return lw.create_table(tmp_path / "table", schema=SCHEMA, key="id", order_by="n")


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": f"k{i}", "n": i} for i in numbers]


def found(table: lw.Table) -> list[Any]:
    return sorted(table.scan(columns=["n"]).to_arrow().column("n").to_pylist())


def test_batches_are_written_once_and_in_order(spark_like: Protocol, table: lw.Table) -> None:
    spark_like.batch(table.path, "q", 0, [rows(0), rows(1)])
    spark_like.batch(table.path, "q", 1, [rows(2), []])
    for number, tasks in ((0, [rows(0), rows(1)]), (1, [rows(2), []])):
        spark_like.batch(table.path, "q", number, tasks)  # run again after a restart
    assert found(table) == [0, 1, 2]
    told = [
        json.loads(body.extra["_hudi_streaming_sink_checkpoint"])
        for _, body in table.timeline.commits(table.timeline.data())
    ]
    assert told == [{"q": "0"}, {"q": "1"}]
    assert left_behind(table) == []


def test_other_queries_and_other_writers_do_not_matter(
    spark_like: Protocol, table: lw.Table
) -> None:
    spark_like.batch(table.path, "q", 0, [rows(0)])
    table.insert(rows(10))
    spark_like.batch(table.path, "p", 0, [rows(1)])
    spark_like.batch(table.path, "q", 0, [rows(0)])
    spark_like.batch(table.path, "p", 1, [rows(2)])
    assert found(table) == [0, 1, 2, 10]


def test_a_second_run_of_the_query_at_the_same_time_cannot_write_the_batch(
    spark_like: Protocol, table: lw.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked and found nothing; the guard under the lock tells them apart."""
    looks: list[int] = []

    def look(batch: sink.StreamBatch, state: object) -> None:
        looks.append(batch.number)
        if len(looks) == 2:  # the instant has begun, and nothing was there yet
            monkeypatch.undo()
            spark_like.patch().batch(table.path, "q", 0, [rows(0)])

    monkeypatch.setattr(sink.StreamBatch, "check", look)
    spark_like.batch(table.path, "q", 0, [rows(0)])
    assert found(table) == [0] and len(looks) == 2
    assert left_behind(table) == [] and not table.timeline.pending()


def test_a_run_whose_staged_rows_another_run_swept_finds_the_batch_there(
    spark_like: Protocol, table: lw.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_merge = sink.merge_staged

    def late(*args: Any) -> Any:
        monkeypatch.setattr(sink, "merge_staged", true_merge)
        spark_like.batch(table.path, "q", 0, [rows(0)])
        return true_merge(*args)

    monkeypatch.setattr(sink, "merge_staged", late)
    spark_like.batch(table.path, "q", 0, [rows(0)])
    assert found(table) == [0] and left_behind(table) == []


def test_an_upsert_stream(spark_like: Protocol, table: lw.Table) -> None:
    spark_like.batch(table.path, "q", 0, [rows(0, 1)], operation="upsert")
    spark_like.batch(table.path, "q", 1, [[{"id": "k0", "n": 5}]], operation="upsert")
    assert found(table) == [1, 5]


def test_batches_without_rows_make_no_commit(spark_like: Protocol, table: lw.Table) -> None:
    spark_like.batch(table.path, "q", 0, [[], []])
    spark_like.batch(table.path, "q", 1, [])
    assert len(table.timeline) == 0
    spark_like.batch(table.path, "q", 2, [rows(0)])
    assert found(table) == [0]


def test_a_batch_that_fails_leaves_nothing_and_can_be_run_again(
    spark_like: Protocol, table: lw.Table
) -> None:
    with pytest.raises(lw.Invalid, match="null"):
        spark_like.batch(table.path, "q", 0, [rows(0), [{"id": None, "n": 1}]])
    assert not table.timeline.pending() and left_behind(table) == []
    spark_like.batch(table.path, "q", 0, [rows(0)])
    assert found(table) == [0]


def test_staged_rows_of_a_killed_run_are_swept_by_the_next(
    spark_like: Protocol, table: lw.Table
) -> None:
    writer: Any = LakewrightSource({"path": table.path}).streamWriter(
        spark_like.spark_schema, overwrite=False
    )
    spark_like.batch(table.path, "q", 0, [rows(0)])
    writer.write(iter(spark_like.batches(rows(7))))
    assert left_behind(table)
    spark_like.batch(table.path, "q", 0, [rows(0)])
    assert left_behind(table) == [] and found(table) == [0]


def test_rows_of_spark_4_0_come_one_by_one(spark_like: Protocol) -> None:
    from pyspark.sql import Row

    made = [Row(id="a", n=1), Row(id="b", n=None)]
    (batch,) = sink._batches(made, spark_like.spark_schema)
    assert batch.to_pylist() == [{"id": "a", "n": 1}, {"id": "b", "n": None}]


def test_a_task_that_is_not_told_whose_batch_it_writes_refuses() -> None:
    with pytest.raises(lw.Unsupported, match="stream_writer"):
        sink._whose()
