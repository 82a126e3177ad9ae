"""Values as text in keys and paths: Java's forms."""

import datetime as dt
import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.key_text import (
    complex_key,
    java_double,
    java_float,
    logical_timestamp_text,
    simple_key,
    split_complex_key,
    value_text,
)
from lakewright.model import schema
from lakewright.model.errors import Invalid

UTC = dt.UTC


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e10, "1.0E10"),
        (1.5e-7, "1.5E-7"),
        (100.0, "100.0"),
        (0.1, "0.1"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (-1.25, "-1.25"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert java_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_follows_javas_rules(value: float) -> None:
    text = java_double(value)
    assert float(text) == value
    check_form(text, value)


def check_form(text: str, value: float) -> None:
    mantissa, _, exponent = text.removeprefix("-").partition("E")
    whole, point, fraction = mantissa.partition(".")
    assert point
    assert fraction
    assert fraction == "0" or not fraction.endswith("0")
    if exponent:
        assert len(whole) == 1
        assert whole != "0"
        assert not 1e-3 <= abs(value) < 1e7
    else:
        assert value == 0 or 1e-3 <= abs(value) < 1e7


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_float_reads_back(value: float) -> None:
    text = java_float(value)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    check_form(text, value)
    assert len(text) <= len(java_double(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (3.4028234663852886e38, "3.4028235E38"),
        (16777216.0, "1.6777216E7"),
        (1.0, "1.0"),
        (999999.0, "999999.0"),
        (1000000.0, "1000000.0"),
        (-1000001.0, "-1000001.0"),
        (9999999.0, "9999999.0"),
        (1234567.5, "1234567.5"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_floats(value: float, text: str) -> None:
    assert java_float(value) == text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("x", None, "x"),
        (True, None, "true"),
        (False, None, "false"),
        (-7, None, "-7"),
        (19782, schema.DATE, "2024-02-29"),
        (0.1, schema.DOUBLE, "0.1"),
        (struct.unpack("<f", struct.pack("<f", 0.1))[0], schema.FLOAT, "0.1"),
        (Decimal("12.500"), None, "12.500"),
        (Decimal("12.5"), schema.Decimal(10, 3), "12.500"),
        (Decimal("-1E-3"), None, "-0.001"),
        (dt.date(2024, 2, 29), None, "2024-02-29"),
        (dt.datetime(2024, 2, 29, 13, 14, 15, 123456, UTC), None, "1709212455123456"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), None, "-1000000"),
        (dt.datetime(2024, 2, 29, 13, 14, 15, 123456), None, "1709212455123456"),
        (
            dt.datetime(2024, 2, 29, 13, 14, 15, 123456, UTC),
            schema.Timestamp(schema.Unit.MILLIS),
            "1709212455123",
        ),
        (b"\x01\xff", None, "01ff"),
    ],
)
def test_values(value: object, kind: schema.DataType | None, text: str) -> None:
    assert value_text(value, kind) == text


def test_lists_are_no_keys() -> None:
    with pytest.raises(Invalid, match="list"):
        value_text([1])


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (dt.datetime(2024, 2, 29, 13, 14, 15, 123456), "2024-02-29 13:14:15.123"),
        (dt.datetime(1969, 12, 31, 23, 59, 59), "1969-12-31 23:59:59.0"),
        (dt.datetime(2024, 1, 1, 0, 0, 0, 120000), "2024-01-01 00:00:00.12"),
    ],
)
def test_the_other_form_of_timestamps(moment: dt.datetime, text: str) -> None:
    assert logical_timestamp_text(moment) == text


def test_simple_keys() -> None:
    assert simple_key("id", 42) == "42"
    for value in (None, ""):
        with pytest.raises(Invalid, match="id"):
            simple_key("id", value)


def test_complex_keys() -> None:
    assert complex_key(["id", "name"], ["k000", "z:1,2"]) == "id:k000,name:z:1,2"
    assert complex_key(["id", "name"], ["k004", None]) == "id:k004,name:__null__"
    assert complex_key(["id", "name"], ["", 1]) == "id:__empty__,name:1"
    assert complex_key(["id"], [42]) == "id:42"
    assert complex_key(["d"], [19782], {"d": schema.DATE}) == "d:2024-02-29"
    with pytest.raises(Invalid, match="id, name"):
        complex_key(["id", "name"], [None, ""])


@given(st.lists(st.none() | st.text(), min_size=3, max_size=3))
def test_complex_keys_come_apart(values: list[str | None]) -> None:
    names = ["a", "b2", "c"]
    if not any(values) or any(v in ("__null__", "__empty__") for v in values):
        return
    if any(f",{name}:" in (v or "") for v in values for name in names):
        return
    assert split_complex_key(complex_key(names, values), names) == tuple(values)


@pytest.mark.parametrize("key", ["", "a:1", "a:1,b:2", "b:1,a:2", "a1,b:2"])
def test_keys_that_do_not_fit_stay_whole(key: str) -> None:
    assert split_complex_key(key, ["a", "b", "c"]) is None
