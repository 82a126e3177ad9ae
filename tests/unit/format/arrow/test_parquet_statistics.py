"""Statistics from a footer's own bytes: equal to Arrow's, and unmoved by forged footers."""

import contextlib
import datetime as dt
import io
import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.parquet_statistics import (
    ColumnStatistics,
    decode_bound,
    read_statistics,
)
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import LakewrightError
from support.schemas import rows, structs


def written(table: pa.Table, **options: Any) -> tuple[bytes, pq.FileMetaData]:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    data = sink.getvalue()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8], pq.read_metadata(io.BytesIO(data))


@settings(max_examples=40)
@given(st.data())
def test_bounds_and_nulls_are_those_that_arrow_reads(data: st.DataObject) -> None:
    schema = data.draw(structs)
    values = data.draw(st.lists(rows(schema), min_size=1, max_size=5))
    footer, metadata = written(
        pa.Table.from_pylist(values, to_arrow_schema(schema)), row_group_size=2
    )
    found = read_statistics(footer, range(metadata.num_columns))
    assert len(found) == metadata.num_row_groups
    for group, columns in enumerate(found):
        for number in range(metadata.num_columns):
            theirs = metadata.row_group(group).column(number).statistics
            ours = columns[number]
            assert ours.nulls == (theirs.null_count if theirs.has_null_count else None)
            assert (ours.low is not None) == theirs.has_min_max


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, -5], pa.int32()),
        ([3, -5], pa.int8()),
        ([3, 2**32 - 1], pa.uint32()),
        ([2**62, -(2**62)], pa.int64()),
        ([0.5, -1.5], pa.float32()),
        ([0.1, 1e300], pa.float64()),
        (["b", "é"], pa.string()),
        (["b", "é"], pa.large_string()),
        ([b"\x00", b"\xff"], pa.binary()),
        ([b"aaaa", b"zzzz"], pa.binary(4)),
        ([True, False], pa.bool_()),
        ([dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32()),
        ([dt.datetime(1960, 1, 1), dt.datetime(2200, 1, 1, 0, 0, 0, 7)], pa.timestamp("us")),
        ([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], pa.timestamp("ms", "UTC")),
        ([dt.time(1, 2, 3), dt.time(23, 59, 59, 999999)], pa.time64("us")),
        ([dt.time(1, 2, 3, 4000)], pa.time32("ms")),
        ([Decimal("-12.34"), Decimal("0.05")], pa.decimal128(5, 2)),
        ([Decimal(10**37), Decimal(-1)], pa.decimal128(38, 0)),
    ],
)
@pytest.mark.parametrize("integers", [False, True])
def test_bounds_become_values(values: list[Any], kind: pa.DataType, integers: bool) -> None:
    table = pa.table({"c": pa.array(values, kind)})
    footer, metadata = written(table, store_decimal_as_integer=integers)
    column = read_statistics(footer, [0])[0][0]
    physical = metadata.schema.column(0).physical_type
    assert column.low is not None
    assert column.high is not None
    assert decode_bound(column.low, kind, physical, upper=False) == min(values)
    assert decode_bound(column.high, kind, physical, upper=True) == max(values)


def test_nanoseconds_are_bounded_from_outside() -> None:
    raw = (1_234_567).to_bytes(8, "little")
    kind = pa.timestamp("ns")
    low = decode_bound(raw, kind, "INT64", upper=False)
    high = decode_bound(raw, kind, "INT64", upper=True)
    assert (low, high) == (
        dt.datetime(1970, 1, 1, 0, 0, 0, 1234),
        dt.datetime(1970, 1, 1, 0, 0, 0, 1235),
    )


@pytest.mark.parametrize(
    ("raw", "kind", "physical"),
    [
        (b"\xff", pa.string(), "BYTE_ARRAY"),
        (b"\x01", pa.int32(), "INT32"),
        (b"\x01", pa.float64(), "DOUBLE"),
        (b"", pa.decimal128(5, 2), "FIXED_LEN_BYTE_ARRAY"),
        ((2**62).to_bytes(8, "little"), pa.timestamp("us"), "INT64"),
    ],
)
def test_bytes_that_are_no_such_value(raw: bytes, kind: pa.DataType, physical: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        decode_bound(raw, kind, physical, upper=False)


def test_nan_bounds_nothing() -> None:
    with pytest.raises(ValueError, match="NaN"):
        decode_bound(struct.pack("<d", math.nan), pa.float64(), "DOUBLE", upper=False)


def test_times_without_order_have_no_bounds() -> None:
    assert decode_bound(bytes(12), pa.timestamp("us"), "INT96", upper=False) is None


def test_files_without_statistics() -> None:
    footer, _ = written(pa.table({"c": [1]}), write_statistics=False)
    assert read_statistics(footer, [0]) == [{0: ColumnStatistics()}]


def test_every_cut_and_many_lies_raise_our_errors_alone() -> None:
    footer, _ = written(pa.table({"c": [1, 2], "s": ["x", "y"]}))
    for cut in range(0, len(footer), 3):
        with contextlib.suppress(LakewrightError):
            read_statistics(footer[:cut], [0, 1])
    for at in range(len(footer)):
        forged = footer[:at] + b"\xff" + footer[at + 1 :]
        with contextlib.suppress(LakewrightError):
            read_statistics(forged, [0, 1])


@pytest.mark.parametrize("link", [b"\x19", b"\x1c", b"\x1b\x01\xbb"])
def test_bottomless_footers_are_corrupt(link: bytes) -> None:
    # A list of lists, a struct in a struct, a map of maps, without end.
    with pytest.raises(LakewrightError):
        read_statistics(link * 100_000, [0])


@given(st.binary(max_size=100))
def test_noise_raises_our_errors_alone(noise: bytes) -> None:
    with contextlib.suppress(LakewrightError):
        read_statistics(noise, [0])
