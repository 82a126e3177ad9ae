"""The search for cycles is put off, and comes back as it was."""

import gc
from collections.abc import Iterator

import pytest

from lakewright.lifecycle.ttl.uncollected import uncollected


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    if was_on:
        gc.enable()


def test_it_is_off_within_and_on_again_after() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_within_brings_it_back_too() -> None:
    with pytest.raises(ZeroDivisionError), uncollected():
        _ = 1 // 0
    assert gc.isenabled()


def test_whoever_had_it_off_keeps_it_off() -> None:
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()


def test_blocks_that_overlap_leave_it_on() -> None:
    first, second = uncollected(), uncollected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.isenabled()
