"""Random histories of writes and services on every shape of table equal a dictionary model."""

import itertools
from collections.abc import Iterator

import pytest

from support.model_table import Kind
from support.random_histories import run_histories
from support.service_machine import service_machine_of
from support.write_machine import DONE
from told import tell

pytest.importorskip("hudi", reason="the hudi package is not installed")

SHAPES = [
    Kind(mor, version, partitioned, index=index)
    for mor, version, partitioned, index in itertools.product(
        (False, True), (9, 6), (True, False), ("bucket", "lookup")
    )
]


@pytest.fixture(autouse=True)
def told(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how much was done."""
    DONE.clear()
    yield
    tell(request, DONE, "service machine")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_histories_with_services_equal_the_model(shape: Kind) -> None:
    run_histories(service_machine_of(shape), examples=7, steps=7)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_many_histories_with_services_equal_the_model(shape: Kind) -> None:
    run_histories(service_machine_of(shape), examples=125, steps=12)
