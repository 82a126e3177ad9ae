"""Row positions: the bytes that Hudi writes, every container form, and bitmaps that lie."""

import base64
import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.positions import (
    decode_bitmap,
    decode_positions,
    encode_bitmap,
    encode_positions,
)
from lakewright.model.errors import Corrupt, Invalid, LakewrightError

PLENTY = 10**7
#: As Hudi 1.1 wrote it into a block that replaces row 1.
ONE = "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAEA"


def array(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 300), unique=True))
def test_positions_survive_their_bytes(values: list[int]) -> None:
    made = decode_bitmap(encode_bitmap(array(*values)), limit=PLENTY)
    assert made.tolist() == sorted(values)


@pytest.mark.parametrize(
    "values",
    [
        range(0),
        range(100_000),
        range(0, 200_000, 2),
        range(0, 20_000, 3),
        [*range(10), *range(70_000, 70_005), *range(140_000, 200_000, 3), *range(300_000, 400_000)],
        [5, 1 << 40, (1 << 40) + 1],
    ],
    ids=["none", "runs", "bitsets", "arrays", "mixed", "buckets"],
)
def test_every_container_form(values: range | list[int]) -> None:
    numbers = array(*values)
    assert np.array_equal(decode_bitmap(encode_bitmap(numbers), limit=PLENTY), numbers)


def test_the_text_is_the_one_that_hudi_writes() -> None:
    assert encode_positions(array(1)) == ONE
    assert decode_positions(ONE, limit=1).tolist() == [1]


def test_order_and_repeats_do_not_matter() -> None:
    assert encode_positions(array(3, 1, 3)) == encode_positions(array(1, 3))


def test_a_small_bitmap_cannot_stand_for_more_rows_than_there_are() -> None:
    data = encode_bitmap(np.arange(1_000_000, dtype=np.uint64))
    assert len(data) < 500
    with pytest.raises(Corrupt, match="more positions than"):
        decode_bitmap(data, limit=1000)


def test_cuts_and_noise_raise_our_errors_alone() -> None:
    data = encode_bitmap(array(*range(0, 9000, 2), *range(70_000, 70_100), 1 << 35))
    for cut in range(len(data)):
        with pytest.raises(Corrupt):
            decode_bitmap(data[:cut], limit=PLENTY)
    with pytest.raises(Corrupt):
        decode_bitmap(data + b"\0", limit=PLENTY)
    with pytest.raises(Corrupt):
        decode_positions("not base64!", limit=PLENTY)


@given(st.binary(max_size=80))
def test_noise(noise: bytes) -> None:
    with contextlib.suppress(LakewrightError):
        decode_positions(base64.b64encode(noise).decode(), limit=PLENTY)


def test_positions_are_below_two_to_the_63() -> None:
    with pytest.raises(Invalid):
        encode_bitmap(array(1 << 63))
