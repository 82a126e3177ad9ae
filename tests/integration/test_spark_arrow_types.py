"""What Arrow rows leave in a table, as Spark reads it."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyarrow as pa

import lakewright as lw
from support.arrow_types import STORED, WRAPPINGS, shown

pytestmark = pytest.mark.spark

KEYS = pa.array(["a", "b"])


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_spark_reads_every_stored_type(spark: Any, tmp_path: Path, kind: str) -> None:
    table = lw.create_table(tmp_path / "t", schema="k string", key="k", type=kind)
    if kind == "MERGE_ON_READ":
        table.insert([{"k": "a"}])  # so that the values go to a log
    columns = {
        f"{name}_in_{inside}": way.array(array)
        for name, array in STORED.items()
        for inside, way in WRAPPINGS.items()
    }
    table.upsert(pa.table({"k": KEYS, **columns}))
    rows = table.scan().to_spark(spark).toArrow().sort_by("k")
    for name in STORED:
        for inside, way in WRAPPINGS.items():
            column = rows.column(f"{name}_in_{inside}")
            assert column.to_pylist() == way.shown(shown(name)), f"{name} in {inside}"
    if kind == "COPY_ON_WRITE":
        # Spark alone, as Hudi on it, has a type for everything that the file holds.
        (path,) = (tmp_path / "t").glob("*.parquet")
        assert spark.read.parquet(str(path)).count() == 2


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_time_of_day_from_elsewhere_is_a_number_on_spark(
    spark: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("k", pa.string()), ("ms", pa.time32("ms")), ("us", pa.time64("us"))])
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("lakewright.actions.create.check_columns", lambda _: None)
        table = lw.create_table(tmp_path / "t", schema=schema, key="k", type=kind)
    numbers = [1, None]
    columns = {"ms": pa.array(numbers, pa.time32("ms")), "us": pa.array(numbers, pa.time64("us"))}
    table.insert(pa.table({"k": KEYS, **columns}))
    table.upsert(pa.table({"k": KEYS, **columns}).slice(0, 1))
    rows = table.scan().to_spark(spark).toArrow().sort_by("k")
    assert rows.column("ms").to_pylist() == rows.column("us").to_pylist() == numbers
