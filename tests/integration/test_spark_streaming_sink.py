"""``df.writeStream.format("lakewright")`` and ``foreachBatch``: every batch once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from support.left_behind import left_behind
from support.stream_feed import SCHEMA, Feed

pytestmark = pytest.mark.spark


@pytest.fixture
def feed(spark: Any, tmp_path: Path) -> Callable[..., Feed]:
    def make(**details: Any) -> Feed:
        table = lw.create_table(
            tmp_path / "table", schema=SCHEMA, key="id", order_by="ts", **details
        )
        return Feed(spark, table, tmp_path)

    return make


def by_format(feed: Feed, **options: str) -> Callable[[Any], Any]:
    return lambda w: w.format("lakewright").options(path=feed.table.path, **options)


def by_batch(feed: Feed, **told: Any) -> Callable[[Any], Any]:
    write = feed.table.stream_writer(checkpoint=str(feed.checkpoint), **told)
    return lambda w: w.foreachBatch(write)


@pytest.mark.parametrize(
    ("way", "details"),
    [(by_format, {}), (by_batch, {"buckets": 2, "type": "MERGE_ON_READ"})],
)
def test_a_batch_that_is_run_again_is_written_once(
    feed: Callable[..., Feed], way: Callable[..., Callable[[Any], Any]], details: dict[str, Any]
) -> None:
    made = feed(**details)
    sink = way(made, operation="upsert")
    made.put(("a", 1, 1), ("b", 1, 1)).run(sink)
    (write,) = made.table.timeline.data()
    told = made.table.timeline.commit_metadata(write).extra["_hudi_streaming_sink_checkpoint"]
    query = json.loads((made.checkpoint / "metadata").read_text())["id"]
    assert json.loads(told) == {query: "0"}

    made.forget_commit(0)
    made.put(("b", 2, 2), ("c", 2, 2)).run(sink)
    assert made.rows() == [("a", 1), ("b", 2), ("c", 2)]
    assert len(made.table.timeline.data()) == 2
    assert left_behind(made.table) == []


@pytest.mark.slow
def test_a_batch_that_fails_is_written_by_the_next_run(feed: Callable[..., Feed]) -> None:
    made = feed()
    sink = by_format(made)
    made.put(("a", 1, 1), (None, 2, 2))
    with pytest.raises(Exception, match="null"):
        made.run(sink)
    assert not made.table.timeline.pending() and left_behind(made.table) == []
    (made.checkpoint.parent / "input" / "1.json").write_text('{"id": "b", "n": 2, "ts": 2}')
    made.run(sink)
    assert made.rows() == [("b", 2)]


def test_from_table_to_table(spark: Any, tmp_path: Path, feed: Callable[..., Feed]) -> None:
    made = feed()
    copy = lw.create_table(tmp_path / "copy", schema=SCHEMA, key="id", order_by="ts", buckets=1)

    def move() -> None:
        frame = spark.readStream.format("lakewright").option("max_instants", "1")
        writer = frame.load(made.table.path).writeStream.format("lakewright")
        writer = writer.option("operation", "upsert").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "moving")).start(copy.path)
        assert query.awaitTermination(600)

    made.put(("a", 1, 1)).run(by_format(made, operation="upsert"))
    made.put(("a", 2, 2), ("b", 2, 2)).run(by_format(made, operation="upsert"))
    move()
    assert len(copy.timeline.data()) == 2
    made.put(("c", 3, 3)).run(by_format(made, operation="upsert"))
    move()
    assert len(copy.timeline.data()) == 3
    assert copy.scan().to_arrow().sort_by("id") == made.table.scan().to_arrow().sort_by("id")


def test_what_a_stream_writer_is_not_told(feed: Callable[..., Feed], tmp_path: Path) -> None:
    table = feed().table
    with pytest.raises(lw.Invalid, match="checkpoint of its query or a name"):
        table.stream_writer()
    with pytest.raises(lw.Invalid, match="insert, bulk_insert, upsert, delete"):
        table.stream_writer(stream="s", operation="merge")
    with pytest.raises(lw.Invalid, match="no checkpoint of a query"):
        table.stream_writer(checkpoint=str(tmp_path / "none"))([{"id": "a", "n": 1, "ts": 1}], 0)
