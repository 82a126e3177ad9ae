"""The streaming source through Spark's protocol, without Spark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import lakewright as lw
from lakewright.interfaces.spark_source.source import LakewrightSource
from lakewright.interfaces.spark_source.stream_reader import PlainStreamReader, Source
from support.source_protocol import sent

Read = Callable[..., list[Any]]


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    made = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id", order_by="n")
    for n in (1, 2, 3):
        made.upsert([{"id": "a", "n": n}, {"id": f"b{n}", "n": n}])
    return made


class Query:
    """A streaming query over a table: what Spark asks of the reader, and in which order."""

    def __init__(self, path: str, **options: str) -> None:
        self._options = {"path": path, **options}
        self.offset: dict[str, str] | None = None

    def reader(self) -> Any:
        source = LakewrightSource(self._options)
        return source.streamReader(sent(source.schema()))

    def run(self) -> list[list[dict[str, Any]]]:
        """Read what is available now, as a query that was started anew."""
        reader = self.reader()
        reader.prepareForTriggerAvailableNow()
        start = self.offset or reader.initialOffset()
        batches = []
        while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
            batches.append(self.read(reader, start, end))
            start = self.offset = end
        return batches

    def read(self, reader: Any, start: Any, end: Any) -> list[dict[str, Any]]:
        bundles = [sent(bundle) for bundle in reader.partitions(start, end)]
        batches = [batch for bundle in bundles for batch in self.reader().read(bundle)]
        return sorted(pa.Table.from_batches(batches).to_pylist() if batches else [], key=str)


def test_a_restart_goes_on_where_it_was(table: lw.Table) -> None:
    query = Query(table.path)
    (first,) = query.run()
    assert first == [{"id": "a", "n": 3}, *({"id": f"b{n}", "n": n} for n in (1, 2, 3))]
    assert query.run() == []
    table.upsert([{"id": "a", "n": 4}])
    assert query.run() == [[{"id": "a", "n": 4}]]


def test_a_limit_of_instants(table: lw.Table) -> None:
    batches = Query(table.path, max_instants="2").run()
    assert batches == [
        [{"id": "a", "n": 2}, {"id": "b1", "n": 1}, {"id": "b2", "n": 2}],
        [{"id": "a", "n": 3}, {"id": "b3", "n": 3}],
    ]
    reader = Query(table.path, max_instants="2").reader()
    assert reader.getDefaultReadLimit() == ReadMaxFiles(2)
    begin = reader.initialOffset()
    assert reader.latestOffset(begin, ReadAllAvailable()) == reader.reportLatestOffset()


def test_the_same_offsets_give_the_same_rows(table: lw.Table) -> None:
    query = Query(table.path)
    ends = [{"completed": i.completed or ""} for i in table.timeline.data()]
    once = query.read(query.reader(), ends[0], ends[1])
    table.upsert([{"id": "b9", "n": 9}])
    assert (
        query.read(query.reader(), ends[0], ends[1])
        == once
        == [
            {"id": "a", "n": 2},
            {"id": "b2", "n": 2},
        ]
    )
    assert query.reader().partitions(ends[0], ends[0]) == []


def test_changes(table: lw.Table) -> None:
    query = Query(table.path, readChangeFeed="true", start="latest")
    assert query.run() == []
    query.offset = query.reader().initialOffset()
    table.upsert([{"id": "a", "n": 7}])
    table.delete(["b1"])
    (batch,) = query.run()
    told = [(c["op"], c["before"], c["after"]) for c in sorted(batch, key=lambda c: c["ts_ms"])]
    assert told == [
        ("u", {"id": "a", "n": 3}, {"id": "a", "n": 7}),
        ("d", {"id": "b1", "n": 1}, None),
    ]


def test_a_query_keeps_the_columns_with_which_it_began(table: lw.Table) -> None:
    query = Query(table.path)
    reader = query.reader()
    table.upsert([{"id": "c", "n": 9, "more": "x"}])
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    bundles = reader.partitions(start, end)
    rows = [r for b in bundles for batch in reader.read(b) for r in batch.to_pylist()]
    assert {"id": "c", "n": 9} in rows
    assert {"id": "c", "n": 9, "more": "x"} in Query(table.path).run()[0]

    changes = Query(table.path, mode="cdc").reader()
    table.upsert([{"id": "d", "n": 9, "more": "x", "most": "y"}])
    with pytest.raises(lw.Invalid, match="Start the query anew"):
        changes.partitions(start, changes.reportLatestOffset())


def test_before_spark_4_2_a_batch_takes_all_there_is(table: lw.Table) -> None:
    source = LakewrightSource({"path": table.path})
    reader = PlainStreamReader(Source.of(source.options), source.schema())
    assert reader.latestOffset() == {"completed": table.timeline.latest_completion()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "snapshot"}, "incremental .rows that changed., changes"),
        ({"max_instants": "0"}, "a whole number from 1"),
        ({"history": "guess"}, "fail, skip"),
        ({"as_of": "20261115000000000"}, "unknown option as_of"),
        ({"start": "yesterday"}, "neither an instant nor a time"),
        ({"columns": "m"}, "no column 'm'"),
    ],
)
def test_bad_options_are_named(table: lw.Table, options: dict[str, str], message: str) -> None:
    with pytest.raises(lw.LakewrightError, match=message):
        Query(table.path, **options).run()


@pytest.mark.parametrize("mode", ["incremental", "changes"])
def test_a_query_that_read_what_was_taken_back_is_stopped(table: lw.Table, mode: str) -> None:
    query = Query(table.path, mode=mode)
    behind = Query(table.path, mode=mode, max_instants="2")
    query.run()
    reader = behind.reader()
    begin = reader.initialOffset()
    behind.offset = reader.latestOffset(begin, ReadMaxFiles(2))

    last = table.timeline.data()[-1]
    table.rollback(last.requested)
    with pytest.raises(lw.HistoryGone, match="the option history is skip"):
        query.run()
    with pytest.raises(lw.HistoryGone):
        query.reader().partitions(query.offset, {"completed": "99991231000000000"})
    assert behind.run() == []

    table.upsert([{"id": "c", "n": 4}])
    with pytest.raises(lw.HistoryGone):
        query.run()
    skipping = Query(table.path, mode=mode, history="skip")
    skipping.offset = query.offset
    for following in (skipping, behind):
        ((row,),) = following.run()
        assert (row["after"] if mode == "changes" else row) == {"id": "c", "n": 4}


def test_a_time_to_start_from_was_read_by_nobody(table: lw.Table) -> None:
    last = table.timeline.data()[-1]
    table.rollback(last.requested)
    table.upsert([{"id": "c", "n": 4}])
    assert last.completed is not None
    assert Query(table.path, start=last.completed).run() == [[{"id": "c", "n": 4}]]
