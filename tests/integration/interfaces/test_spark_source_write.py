"""Writing through Spark's data source protocol, without Spark: ways, failures, refusals."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from lakewright.interfaces.spark_source import direct
from lakewright.interfaces.spark_source.source import LakewrightSource
from support.left_behind import left_behind
from support.source_protocol import Protocol, TaskFailed

SCHEMA = "id string, n bigint, ts bigint, dt string"
Make = Callable[..., lw.Table]


@pytest.fixture
def spark_like(monkeypatch: pytest.MonkeyPatch) -> Protocol:
    return Protocol(monkeypatch, SCHEMA)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def table(**details: Any) -> lw.Table:
        told = {"key": "id", "partition_by": "dt", "order_by": "ts", **details}
        return lw.create_table(tmp_path / "table", schema=SCHEMA, **told)

    return table


def rows(*numbers: int, n: int = 0, ts: int = 1) -> list[dict[str, Any]]:
    return [{"id": f"k{i:03d}", "n": n + i, "ts": ts, "dt": f"d{i % 2}"} for i in numbers]


def found(table: lw.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: str(row["id"]))


def operations(table: lw.Table) -> list[str | None]:
    return [body.operation for _, body in table.timeline.commits(table.timeline.data())]


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_appends_write_new_file_groups(
    spark_like: Protocol, make: Make, kind: str, version: int
) -> None:
    table = make(type=kind, version=version)
    spark_like.save(table.path, [rows(0, 1, 2), rows(3, 4), []])
    spark_like.save(table.path, [rows(100)], operation="insert")
    assert found(table) == rows(0, 1, 2, 3, 4, 100)
    assert operations(table) == ["BULK_INSERT", "INSERT"]
    first, _ = table.timeline.data()
    stats = table.timeline.commit_metadata(first).write_stats
    assert sum(len(some) for some in stats.values()) == 4  # two tasks, two partitions each
    assert left_behind(table) == []
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize(
    "details", [{"buckets": 2}, {"buckets": 2, "type": "MERGE_ON_READ"}, {"type": "MERGE_ON_READ"}]
)
def test_upserts_and_deletes_are_staged_and_merged(
    spark_like: Protocol, make: Make, details: dict[str, Any]
) -> None:
    table = make(**details)
    spark_like.save(table.path, [rows(0, 1), rows(2, 3)], operation="upsert")
    spark_like.save(table.path, [rows(0, n=50, ts=2), rows(4, ts=2)], operation="upsert")
    spark_like.save(table.path, [rows(0, 1, n=90, ts=0)], operation="upsert")  # late rows lose
    assert found(table) == [*rows(0, n=50, ts=2), *rows(1, 2, 3), *rows(4, ts=2)]
    spark_like.save(table.path, [rows(1), rows(3)], operation="delete")
    assert [row["id"] for row in found(table)] == ["k000", "k002", "k004"]
    assert left_behind(table) == []
    assert table.fsck(deep=True).ok


@pytest.mark.parametrize("details", [{"buckets": 2}, {}])
def test_overwrites(spark_like: Protocol, make: Make, details: dict[str, Any]) -> None:
    table = make(**details)
    spark_like.save(table.path, [rows(0, 1, 2, 3)])
    spark_like.save(table.path, [rows(0, n=7), rows(1, n=7)], overwrite=True)
    assert found(table) == rows(0, 1, n=7)
    spark_like.save(table.path, [rows(3)], overwrite=True, operation="insert_overwrite")
    assert found(table) == [*rows(0, n=7), *rows(3)]
    assert operations(table)[1:] == ["INSERT_OVERWRITE_TABLE", "INSERT_OVERWRITE"]
    assert table.fsck(deep=True).ok


def test_an_overwrite_without_rows_empties_the_table(spark_like: Protocol, make: Make) -> None:
    table = make()
    spark_like.save(table.path, [rows(0, 1)])
    spark_like.save(table.path, [[], []], overwrite=True)
    assert found(table) == []


@pytest.mark.parametrize("options", [{}, {"operation": "upsert"}])
def test_failed_attempts_leave_one_commit_and_no_file(
    spark_like: Protocol, make: Make, options: dict[str, str]
) -> None:
    table = make()
    spark_like.save(
        table.path,
        [rows(0, 1), rows(2, 3)],
        fails=lambda task, attempt: task == 1 and attempt < 2,
        **options,
    )
    assert found(table) == rows(0, 1, 2, 3)
    assert len(table.timeline.data()) == 1
    assert left_behind(table) == []


@pytest.mark.parametrize("options", [{}, {"operation": "upsert"}])
def test_a_task_that_always_fails_leaves_nothing(
    spark_like: Protocol, make: Make, options: dict[str, str]
) -> None:
    table = make()
    spark_like.save(table.path, [rows(9)])
    with pytest.raises(TaskFailed):
        spark_like.save(
            table.path, [rows(0, 1), rows(2)], fails=lambda task, attempt: task == 1, **options
        )
    assert found(table) == rows(9)
    assert len(table.timeline.data()) == 1 and not table.timeline.pending()
    assert left_behind(table) == []


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_a_task_that_is_late_takes_its_files_back(
    spark_like: Protocol, make: Make, ends: str
) -> None:
    table = make()
    writer = LakewrightSource({"path": table.path}).writer(spark_like.spark_schema, False)
    message = writer.write(iter(spark_like.batches(rows(0, 1))))
    getattr(writer, ends)([message])
    with pytest.raises(lw.Conflict, match="was over before this task was done"):
        writer.write(iter(spark_like.batches(rows(2, 3))))
    assert found(table) == (rows(0, 1) if ends == "commit" else [])
    assert left_behind(table) == []


@pytest.mark.parametrize("options", [{}, {"operation": "upsert"}])
def test_a_lost_message_stops_the_commit(
    spark_like: Protocol, make: Make, options: dict[str, str]
) -> None:
    table = make()
    with pytest.raises(lw.Unsupported, match="1 of 2 tasks did not say what they wrote"):
        spark_like.save(table.path, [rows(0), rows(1)], lose=True, **options)
    assert found(table) == [] and not table.timeline.pending() and left_behind(table) == []


def test_abort_after_the_commit_took_effect_deletes_nothing(
    spark_like: Protocol, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make()
    true_end = direct.finish_write

    def ends_and_raises(*args: Any) -> None:
        true_end(*args)
        raise ConnectionError("the answer was lost")

    monkeypatch.setattr(direct, "finish_write", ends_and_raises)
    with pytest.raises(ConnectionError):
        spark_like.save(table.path, [rows(0), rows(1)])
    assert found(table) == rows(0, 1)


def test_a_write_that_was_rolled_back_meanwhile_is_a_conflict(
    spark_like: Protocol, make: Make
) -> None:
    table = make()

    def roll_back() -> None:
        (pending,) = table.timeline.pending()
        heartbeat = Path(table.path) / ".hoodie" / ".heartbeat" / pending.requested
        os.utime(heartbeat, (1, 1))
        table.insert(rows(50))

    with pytest.raises(lw.Conflict):
        spark_like.save(table.path, [rows(0), rows(1)], between=roll_back)
    assert found(table) == rows(50)
    assert left_behind(table) == []


def test_another_writer_may_commit_while_tasks_run(spark_like: Protocol, make: Make) -> None:
    table = make()
    spark_like.save(table.path, [rows(0)], between=lambda: table.insert(rows(50)) and None)
    assert found(table) == rows(0, 50)
    assert left_behind(table) == []


@pytest.mark.parametrize("options", [{}, {"operation": "upsert"}])
def test_null_keys_are_refused_and_nothing_is_left(
    spark_like: Protocol, make: Make, options: dict[str, str]
) -> None:
    table = make()
    nothing = {"id": None, "n": 2, "ts": 1, "dt": "d0"}
    with pytest.raises(lw.Invalid, match="null"):
        spark_like.save(table.path, [rows(0), [*rows(1), nothing]], **options)
    assert found(table) == [] and not table.timeline.pending() and left_behind(table) == []


def test_rows_beyond_what_is_staged_are_refused(spark_like: Protocol, make: Make) -> None:
    table = make(buckets=2)
    half = sum(batch.nbytes for batch in spark_like.batches(rows(0, 1)))
    limit = {"lakewright.write.staged-bytes": str(half + 1)}
    spark_like.save(table.path, [rows(0, 1)], **limit)
    for tasks in ([rows(2, 3), rows(4, 5)], [rows(*range(2, 9))]):
        with pytest.raises(lw.Invalid, match=r"table\.upsert\(df\)"):
            spark_like.save(table.path, tasks, **limit)
    assert len(table.timeline) == 1 and left_behind(table) == []


def test_no_rows_make_no_commit(spark_like: Protocol, make: Make) -> None:
    table = make()
    spark_like.save(table.path, [[], []])
    spark_like.save(table.path, [[], []], operation="upsert")
    assert len(table.timeline) == 0 and left_behind(table) == []


@pytest.mark.parametrize(
    ("overwrite", "options", "message"),
    [
        (False, {"operation": "merge"}, "insert, bulk_insert, upsert, delete"),
        (False, {"operation": "insert_overwrite"}, "goes with mode overwrite"),
        (True, {"operation": "upsert"}, "goes with mode append"),
        (False, {"colums": "x"}, "unknown option colums"),
        (False, {"lakewright.write.staged-byte": "1"}, "Did you mean"),
        (True, {"lakewright.write.staged-byte": "1"}, "Did you mean"),
        (False, {"operation": "upsert", "lakewright.write.thread": "1"}, "Did you mean"),
        (False, {"storage.s3.acces-key": "x"}, "Did you mean"),
        (False, {"hoodie.parquet.max.file.size": "big"}, "a whole number of bytes"),
        (False, {"lakewright.write.staged-bytes": "0"}, "1 or more"),
        (False, {"retry": "often"}, "a whole number from 1"),
        (False, {"hoodie.index.type": "BUCKET"}, "is SIMPLE in the table"),
    ],
)
def test_what_is_refused_writes_nothing(
    spark_like: Protocol, make: Make, overwrite: bool, options: dict[str, str], message: str
) -> None:
    table = make()
    with pytest.raises(lw.LakewrightError, match=message):
        spark_like.save(table.path, [rows(0)], overwrite=overwrite, **options)
    assert len(table.timeline) == 0 and left_behind(table) == []


def test_a_table_must_be_there(spark_like: Protocol, tmp_path: Path) -> None:
    with pytest.raises(lw.TableNotFound):
        spark_like.save(str(tmp_path / "none"), [rows(0)])
    with pytest.raises(lw.InvalidOption, match="there is no path"):
        LakewrightSource({}).writer(spark_like.spark_schema, overwrite=False)
    assert not (tmp_path / "none").exists()


def test_columns_that_do_not_fit_are_refused_before_anything_begins(
    spark_like: Protocol, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make()
    spark_like.save(table.path, [rows(0)])
    wrong = Protocol(monkeypatch, SCHEMA.replace("n bigint", "n boolean"))
    with pytest.raises(lw.Invalid, match="n"):
        wrong.save(table.path, [[{"id": "a", "n": True, "ts": 1, "dt": "d0"}]])
    assert len(table.timeline) == 1


def test_the_operation_may_be_named_as_in_hudi(spark_like: Protocol, make: Make) -> None:
    table = make()
    spark_like.save(table.path, [rows(0, 1)])
    hudi = {"hoodie.datasource.write.operation": "upsert"}
    spark_like.save(table.path, [rows(1, n=7, ts=2)], **hudi)
    assert found(table) == [*rows(0), *rows(1, n=7, ts=2)]
    assert operations(table) == ["BULK_INSERT", "UPSERT"]
    with pytest.raises(lw.InvalidOption, match="operation"):
        spark_like.save(table.path, [rows(1)], operation="insert", **hudi)
    assert len(table.timeline.data()) == 2
