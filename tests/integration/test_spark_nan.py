"""Rows with NaN on Spark: above every number, and never pruned away."""

import math
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

_SCHEMA = "id string, d double, s struct<f: float>"


def test_conditions_find_nan_in_what_was_written_here(spark: Any, tmp_path: Path) -> None:
    table = lw.create_table(tmp_path / "t", schema=_SCHEMA, key="id")
    values = {"a": 1.0, "b": math.nan, "c": 2.0}
    table.insert([{"id": key, "d": v, "s": {"f": v}} for key, v in values.items()])
    for where in ("d > 2.5", "d = double('NaN')", "s.f > 2.5", "NOT (d <= 2.0)"):
        frames = (
            table.scan().to_spark(spark).filter(where),
            table.scan(where=where).to_spark(spark),
        )
        assert [[row.id for row in frame.collect()] for frame in frames] == [["b"]] * 2, where
    plain = spark.read.parquet(*(str(p) for p in (tmp_path / "t").glob("*.parquet")))
    assert [row.id for row in plain.filter("d > 2.5").collect()] == ["b"]

    lake = lw.connect(tmp_path / "lake", spark=spark)
    lake.sql(f"CREATE TABLE n USING hudi LOCATION '{table.path}'")
    lake.sql("DELETE FROM n WHERE d > 2.5")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["a", "c"]
