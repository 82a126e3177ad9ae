"""Random histories of writes and changes of buckets on every shape of table equal a model."""

import itertools
from collections.abc import Iterator

import pytest

from support.bucket_machine import bucket_machine_of
from support.model_table import Kind
from support.random_histories import run_histories
from support.write_machine import DONE
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

SHAPES = [
    Kind(mor, version, partitioned, composite, "bucket", rules=(("", 1),))
    for mor, version, partitioned, composite in itertools.product(
        (False, True), (9, 6), (True, False), (False, True)
    )
]
#: Five shapes in which every pair of choices meets.
PAIRS = [SHAPES[number] for number in (0, 5, 9, 12, 14)]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how much was done."""
    DONE.clear()
    yield
    tell(request, DONE, "bucket machine")


@pytest.mark.parametrize("shape", PAIRS, ids=str)
def test_histories_with_rescales_equal_the_model(shape: Kind) -> None:
    run_histories(bucket_machine_of(shape), examples=7, steps=8)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_many_histories_with_rescales_equal_the_model(shape: Kind) -> None:
    run_histories(bucket_machine_of(shape), examples=80, steps=14)
