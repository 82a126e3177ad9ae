"""Rows of this process on a table that was opened with a session: Spark writes the files."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import lakewright as lw
from lakewright.model.errors import Unsupported

pytestmark = pytest.mark.spark

#: Nothing is left to the driver's threads.
TASKS = {"lakewright.write.driver-work": "0"}


def rows(*numbers: int, n: int = 0) -> pa.Table:
    return pa.table({"id": [f"k{i}" for i in numbers], "n": [n + i for i in numbers]})


def test_arrow_rows_with_a_session(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakewright.engine.spark.executor import SparkExecutor

    jobs: list[str] = []
    in_tasks = SparkExecutor._in_tasks

    def counted(self: Any, job: Any, *rest: Any) -> Any:
        jobs.append(job.function.__name__)
        return in_tasks(self, job, *rest)

    monkeypatch.setattr(SparkExecutor, "_in_tasks", counted)
    lw.create_table(tmp_path / "t", schema="id STRING, n BIGINT", key="id", buckets=2)
    table = lw.open_table(tmp_path / "t", spark=spark)
    table.bulk_insert(rows(*range(10)), options=TASKS)
    table.upsert(rows(1, 2, 20, n=100).to_pandas(), options=TASKS)
    table.delete(["k3"], options=TASKS)
    assert table.delete(where="n = 4", options=TASKS).deleted == 1
    many = {"lakewright.write.driver-bytes": "0"}
    table.upsert(rows(5, 30, n=100), options=many)
    found = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {
        **{f"k{i}": i for i in (0, 6, 7, 8, 9)},
        **{f"k{i}": 100 + i for i in (1, 2, 5, 20, 30)},
    }
    assert jobs == ["write_group"] * 4


def test_rows_whose_partition_shows_another_value(spark: Any, tmp_path: Path) -> None:
    made = lw.create_table(
        tmp_path / "t",
        schema="id STRING, n BIGINT, p STRING",
        key="id",
        partition_by="p",
        hive_style=False,
    )
    values = ["a=b", "p=x", "a%2Fb", "%41", "50%", "ok"]
    made.insert([{"id": f"k{i}", "n": i, "p": p} for i, p in enumerate(values)])
    table = lw.open_table(tmp_path / "t", spark=spark)

    def found(where: str | None = None) -> list[tuple[Any, ...]]:
        frame = table.scan(where=where).to_spark()
        here = table.scan(where=where).to_arrow().to_pylist()
        assert sorted(map(tuple, frame.collect())) == sorted(tuple(r.values()) for r in here)
        return sorted(map(tuple, frame.collect()))

    shown = ["b", "x", "a/b", "A", "50%", "ok"]  # as real Hudi shows them
    assert found() == [(f"k{i}", i, p) for i, p in enumerate(shown)]
    assert found("p = 'b'") == [("k0", 0, "b")]
    assert found("p = 'a=b'") == []
    with pytest.raises(Unsupported, match="another partition"):
        table.update({"n": "n + 10"}, where="id = 'k3'")
    with pytest.raises(Unsupported, match="another partition"):
        table.delete(where="id = 'k2'")
    table.update({"n": "n + 10"}, where="id = 'k5'")
    table.delete(where="n = 4")
    assert found() == [*((f"k{i}", i, shown[i]) for i in range(4)), ("k5", 15, "ok")]
