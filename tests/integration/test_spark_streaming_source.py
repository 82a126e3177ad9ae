"""``spark.readStream.format("lakewright")``: what is new in a table, across restarts."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from lakewright.model.instant import Instant

pytestmark = pytest.mark.spark

Drain = Callable[..., list[list[Any]]]


class Growing:
    """A copy of a table whose last commits can be hidden, and shown again."""

    def __init__(self, table: Path, into: Path) -> None:
        self.path = shutil.copytree(table, into / "table")
        self._aside = into / "aside"
        self._aside.mkdir()
        self.writes: list[Instant] = list(lw.open_table(self.path).timeline.data())

    def show(self, count: int) -> "Growing":
        """Let the table have its first ``count`` commits."""
        timeline = self.path / ".hoodie" / "timeline"
        hidden = {i.requested for i in self.writes[count:]}
        for file in [*timeline.iterdir(), *self._aside.iterdir()]:
            if file.is_file():
                place = self._aside if file.name[:17] in hidden else timeline
                file.rename(place / file.name)
        return self


@pytest.fixture
def growing(own_table: Callable[[str], Path], tmp_path: Path) -> Growing:
    """Orders: inserts, updates (some late), a delete, more updates."""
    return Growing(own_table("orders_mor"), tmp_path)


@pytest.fixture
def drain(spark: Any, growing: Growing, tmp_path: Path) -> Drain:
    """Read what is available, and return the rows of each micro-batch."""

    def run(checkpoint: str = "checkpoint", **options: str) -> list[list[Any]]:
        taken: list[list[Any]] = []

        def take(frame: Any, number: int) -> None:
            taken.append(sorted((row.asDict(recursive=True) for row in frame.collect()), key=str))

        frame = spark.readStream.format("lakewright").options(**options).load(str(growing.path))
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / checkpoint)).start()
        try:
            assert query.awaitTermination(600)
        finally:
            query.stop()
        return [rows for rows in taken if rows]  # a new query begins with a batch of its own

    return run


def expected(growing: Growing, after: str | None, **more: Any) -> list[Any]:
    rows = lw.open_table(growing.path).incremental(after, **more).to_arrow().to_pylist()
    return sorted(rows, key=str)


def test_a_restart_reads_only_what_is_new(growing: Growing, drain: Drain) -> None:
    names = {"columns": "id, n"}
    columns = ["id", "n"]
    growing.show(2)
    (first,) = drain(**names)
    assert first == expected(growing, None, columns=columns)
    assert drain(**names) == []
    growing.show(4)
    (second,) = drain(**names)
    assert second == expected(growing, growing.writes[1].completed, columns=columns)
    assert 0 < len(second) < len(first)


def test_a_limit_makes_several_micro_batches(growing: Growing, drain: Drain) -> None:
    batches = drain(max_instants="1", columns="id", meta="true")
    starts = [None, *(i.completed for i in growing.writes[:-1])]
    table = lw.open_table(growing.path)
    wanted = []
    for start, write in zip(starts, growing.writes, strict=True):
        scan = table.incremental(start, write.completed, columns=["id"], meta=True)
        wanted.append(sorted(scan.to_arrow().to_pylist(), key=str))
    told = [rows for rows in wanted if rows]  # a compaction brings no rows
    assert batches == told and len(told) > 2


def test_changes_come_with_their_images(growing: Growing, drain: Drain) -> None:
    table = lw.open_table(growing.path)
    (batch,) = drain(readChangeFeed="true")
    wanted = table.changes().to_arrow().to_pylist()
    assert sorted((c["op"], str(c["ts_ms"])) for c in batch) == sorted(
        (c["op"], str(c["ts_ms"])) for c in wanted
    )
    assert {c["op"] for c in batch} == {"i", "u", "d"}
    gone = next(c for c in batch if c["op"] == "d")
    assert gone["after"] is None and gone["before"]["id"]


@pytest.mark.slow
def test_a_stream_begins_where_it_is_told(growing: Growing, drain: Drain) -> None:
    assert drain("latest", start="latest") == []
    later = growing.writes[2].completed
    (batch,) = drain("later", start=str(later), columns="id")
    assert batch == expected(growing, later, columns=["id"])
    growing.show(3)
    assert drain("soon", start="latest") == []
    growing.show(4)
    (batch,) = drain("soon", start="latest", where="n >= 0", columns="id")
    assert batch == expected(growing, later, where="n >= 0", columns=["id"])


def test_changes_of_a_table_that_keeps_them_arrive_once(spark: Any, tmp_path: Path) -> None:
    """The batch of a query that died is given again, the same; all others come once."""
    table = lw.create_table(
        tmp_path / "kept",
        schema="id string, n long",
        key="id",
        properties={"hoodie.table.cdc.enabled": "true"},
    )
    batches: dict[int, list[Any]] = {}
    died: list[int] = []

    def take(frame: Any, number: int) -> None:
        rows = sorted((row.asDict(recursive=True) for row in frame.collect()), key=str)
        assert batches.setdefault(number, rows) == rows
        if not died:
            died.append(number)
            raise RuntimeError("the sink died after its batch")

    def drain() -> None:
        frame = spark.readStream.format("lakewright").option("mode", "changes").load(table.path)
        writer = frame.writeStream.foreachBatch(take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "kept-offsets")).start()
        try:
            assert query.awaitTermination(600)
        finally:
            query.stop()

    table.insert([{"id": name, "n": 1} for name in "abc"])
    table.upsert([{"id": "a", "n": 2}, {"id": "d", "n": 3}])
    with pytest.raises(Exception, match="the sink died"):
        drain()
    table.delete("id = 'b'")
    drain()
    assert died
    told = [row for number in sorted(batches) for row in batches[number]]
    assert sorted(told, key=str) == sorted(table.changes().to_arrow().to_pylist(), key=str)
    assert [row["op"] for row in told] == ["i", "i", "i", "i", "u", "d"]
