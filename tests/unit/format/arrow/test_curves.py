"""Curves through several columns: every cell once, neighbours near each other."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakewright.format.arrow.curves import Scale, bits_for, hilbert_order, z_order


@pytest.mark.parametrize(("columns", "bits"), [(2, 4), (3, 3), (4, 2), (1, 5)])
def test_each_cell_has_its_own_place(columns: int, bits: int) -> None:
    axes = np.meshgrid(*[np.arange(1 << bits)] * columns)
    cells = [axis.reshape(-1).astype(np.uint64) for axis in axes]
    for curve in (z_order, hilbert_order):
        places = curve(cells, bits)
        assert sorted(places.tolist()) == list(range(1 << bits * columns))
    walk = np.stack(cells).astype(int)[:, np.argsort(hilbert_order(cells, bits))]
    # One step of Hilbert's curve is one step in one column.
    assert set(np.abs(np.diff(walk, axis=1)).sum(axis=0).tolist()) == {1}


def test_the_z_curve_takes_bits_in_turn() -> None:
    one, two = np.array([0b11, 0b01], np.uint64), np.array([0b01, 0b10], np.uint64)
    assert z_order([one, two], 2).tolist() == [0b1011, 0b0110]


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2, 2],
        ["c", "a", "b", "b"],
        [b"c", b"a", b"b", b"b"],
        [2.5, -1.0, 0.0, 0.0],
        [Decimal("3.10"), Decimal("-1.00"), Decimal("2.00"), Decimal("2.00")],
        [dt.date(2026, 1, 3), dt.date(2025, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 2)],
        [True, False, True, True],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_values_of_any_type_keep_their_order(values: list[Any]) -> None:
    column = pa.array([*values, None])
    scale = Scale.of(pa.chunked_array([column]), 4)
    found = scale.coordinates(column).tolist()
    assert found[-1] == 0
    pairs = [(v, c) for v, c in zip(values, found[:-1], strict=True)]
    for one, place in pairs:
        for other, there in pairs:
            assert (one < other) == (place < there)
    assert max(found) == 15


def test_values_outside_the_sample_stay_in_range() -> None:
    scale = Scale.of(pa.chunked_array([pa.array(range(1000))]), 12)
    assert scale.coordinates(pa.array([-5, 10**9])).tolist() == [0, 4095]
    empty = Scale.of(pa.chunked_array([pa.array([], pa.int64())]), 12)
    assert empty.coordinates(pa.array([1, None])).tolist() == [0, 0]


def test_skew_takes_no_room_from_others() -> None:
    skewed = pa.array([0] * 10_000 + list(range(1000)))
    places = Scale.of(pa.chunked_array([skewed]), 8).coordinates(skewed)
    assert len(np.unique(places)) > 15


def test_bits_fit_into_one_number() -> None:
    assert [bits_for(n) for n in (1, 2, 5, 6, 60, 100)] == [12, 12, 12, 10, 1, 1]
