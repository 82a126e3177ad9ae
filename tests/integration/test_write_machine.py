"""Random histories of every verb on every shape of table equal a dictionary model."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from support.model_table import Kind
from support.random_histories import run_histories
from support.write_machine import DONE, machine_of
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

SHAPES = [
    Kind(mor, version, partitioned, composite, index)
    for mor, version, partitioned, composite, index in itertools.product(
        (False, True), (9, 6), (True, False), (False, True), ("bucket", "lookup")
    )
]
#: Six shapes in which every pair of choices meets.
PAIRS = [SHAPES[number] for number in (1, 2, 14, 23, 27, 28)]
#: Partitions that differ in their number of buckets.
RULES = [
    Kind(mor, version, partitioned, composite, "bucket", rules=(("", 1),))
    for mor, version, partitioned, composite in (
        (False, 9, True, False),
        (True, 9, True, True),
        (True, 6, True, False),
        (False, 6, True, True),
        (True, 9, False, False),
    )
]
GLOBAL = [Kind(mor, version, index="global") for mor in (False, True) for version in (9, 6)]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how much was done."""
    DONE.clear()
    yield
    tell(request, DONE, "write machine")


@pytest.mark.parametrize("shape", [*SHAPES, *RULES, *GLOBAL], ids=str)
def test_histories_equal_the_model(shape: Kind) -> None:
    run_histories(machine_of(shape), examples=3, steps=6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*SHAPES, *RULES, *GLOBAL], ids=str)
def test_many_histories_equal_the_model(shape: Kind) -> None:
    run_histories(machine_of(shape), examples=25, steps=12)


@pytest.mark.spark
@pytest.mark.parametrize("shape", [*PAIRS, *RULES[:2]], ids=str)
def test_histories_on_spark_equal_the_model(spark: Any, shape: Kind) -> None:
    run_histories(machine_of(shape, spark), examples=2, steps=4)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("shape", [*PAIRS, *RULES, *GLOBAL], ids=str)
def test_many_histories_on_spark_equal_the_model(spark: Any, shape: Kind) -> None:
    run_histories(machine_of(shape, spark), examples=6, steps=8)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_late_row_of_a_moved_key_revives_nothing(tmp_path: Path, kind: str) -> None:
    """The base row that a move left behind, deleted by a log, must not come back."""
    columns = ("id", "p", "ts", "n")
    table = lw.create_table(
        tmp_path / "t",
        schema="id string, p string, ts long, n long",
        key="id",
        partition_by=["p"],
        order_by="ts",
        type=kind,
        properties={"hoodie.index.type": "GLOBAL_SIMPLE"},
    )
    for row in (("a", "x", 3, 1), ("a", "y", 3, 2), ("a", "x", 1, 3)):
        table.upsert([dict(zip(columns, row, strict=True))])
    rows = table.scan().to_arrow().to_pylist()
    assert rows == [{"id": "a", "p": "y", "ts": 3, "n": 2}]
