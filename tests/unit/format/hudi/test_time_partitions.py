"""Paths made of formatted times."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.time_partitions import (
    format_java,
    format_time_partition,
    parse_java,
    why_not_formatted,
)
from lakewright.model import schema as s
from lakewright.model.errors import Invalid, Unsupported

UTC = dt.UTC
MOMENT = dt.datetime(2024, 1, 5, 16, 7, 8, 123456, UTC)
P = "hoodie.keygen.timebased."


def settings(kind: str, output: str = "yyyy/MM/dd/HH", **more: str) -> dict[str, str]:
    given = {"timestamp.type": kind, "output.dateformat": output}
    given |= {key.replace("_", "."): value for key, value in more.items()}
    return {P + key: value for key, value in given.items()}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy/MM/dd/HH", "2024/01/05/16"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2024-01-05T16:07:08.123+0000"),
        ("yy M d h", "24 1 5 4"),
        ("'year='yyyy''''", "year=2024'"),
        ("D", "5"),
        ("hh mm ss SSSSSS", "04 07 08 123456"),
    ],
)
def test_java_patterns(pattern: str, text: str) -> None:
    assert format_java(MOMENT, pattern) == text


@pytest.mark.parametrize("pattern", ["EEE", "MMM", "QQ"])
def test_unknown_letters_are_named(pattern: str) -> None:
    with pytest.raises(Unsupported, match=pattern):
        format_java(MOMENT, pattern)
    with pytest.raises(Unsupported, match=pattern):
        parse_java("x", pattern, UTC)


@pytest.mark.parametrize(
    ("value", "properties", "text"),
    [
        (1704470828, settings("UNIX_TIMESTAMP"), "2024/01/05/16"),
        (1704470828000, settings("EPOCHMILLISECONDS"), "2024/01/05/16"),
        ("1704470828000", settings("EPOCHMILLISECONDS"), "2024/01/05/16"),
        (1704470828000000, settings("EPOCHMICROSECONDS"), "2024/01/05/16"),
        (19727, settings("SCALAR", timestamp_scalar_time_unit="days"), "2024/01/05/00"),
        (MOMENT, settings("EPOCHMILLISECONDS"), "2024/01/05/16"),
        (MOMENT.replace(tzinfo=None), settings("EPOCHMILLISECONDS"), "2024/01/05/16"),
        (19727, settings("SCALAR", timestamp_scalar_time_unit="NANOSECONDS"), "1970/01/01/00"),
        (
            1704470828,
            settings("UNIX_TIMESTAMP", output_timezone="Asia/Tokyo"),
            "2024/01/06/01",
        ),
        (1704470828, settings("UNIX_TIMESTAMP", timezone="GMT"), "2024/01/05/16"),
        (
            "2024-01-05T16:07:08.123+0100",
            settings("DATE_STRING", input_dateformat="yyyy-MM-dd'T'HH:mm:ss.SSSZ"),
            "2024/01/05/16",
        ),
        (
            "2024-01-05",
            settings("DATE_STRING", input_dateformat="yyyy-MM-dd HH,yyyy-MM-dd"),
            "2024/01/05/00",
        ),
        (
            "2024-01-05",
            settings("DATE_STRING", input_dateformat="yyyy-MM-dd", input_timezone="Asia/Tokyo"),
            "2024/01/05/00",
        ),
    ],
)
def test_raw_values_become_paths(value: object, properties: dict[str, str], text: str) -> None:
    assert format_time_partition(value, properties) == text


OSLO = {"input_dateformat": "yyyy-MM-dd HH", "input_timezone": "Europe/Oslo"}
TOKYO = {"input_dateformat": "yyyy-MM-dd,yyyy-MM-dd HH", "input_timezone": "Asia/Tokyo"}
OFFSETS = {"input_dateformat": "yyyy-MM-dd'T'HH:mm:ssZ"}
SECOND, MILLI, MICRO = "yyyyMMddHHmmss", "yyyyMMddHHmmssSSS", "yyyyMMddHHmmss.SSSSSS"
#: As Hudi 1.1.1 and 1.2.0 write them, upserts and bulk inserts alike.
MEASURED: list[tuple[object, dict[str, str], str]] = [
    (None, settings("UNIX_TIMESTAMP", SECOND), "19700101000001"),
    (None, settings("EPOCHMILLISECONDS", MILLI), "19700101000000001"),
    (None, settings("EPOCHMICROSECONDS", MILLI), "19700101000000000"),
    (None, settings("SCALAR", timestamp_scalar_time_unit="DAYS"), "1970/01/02/00"),
    (None, settings("EPOCHMILLISECONDS", timezone="GMT+8:00"), "1970/01/01/08"),
    (None, settings("DATE_STRING", input_dateformat="yyyy-MM-dd"), "1970/01/01/00"),
    (None, settings("DATE_STRING", **OSLO, output_timezone="UTC"), "1970/01/01/00"),
    (None, settings("DATE_STRING", **OSLO, output_timezone="Asia/Tokyo"), "1970/01/01/09"),
    (None, settings("DATE_STRING", **TOKYO), "1970/01/01/00"),
    (None, settings("MIXED", input_dateformat="yyyy-MM-dd"), "1970/01/01/00"),
    (-1.5, settings("UNIX_TIMESTAMP", SECOND), "19691231235959"),
    (-0.5, settings("UNIX_TIMESTAMP", SECOND), "19700101000000"),
    (float("nan"), settings("UNIX_TIMESTAMP", SECOND), "19700101000000"),
    (Decimal("1709212455.999"), settings("UNIX_TIMESTAMP", SECOND), "20240229131415"),
    (Decimal("-1.500"), settings("UNIX_TIMESTAMP", SECOND), "19691231235959"),
    (-1, settings("EPOCHMICROSECONDS", MILLI), "19700101000000000"),
    (-1001, settings("EPOCHMICROSECONDS", MILLI), "19691231235959999"),
    (1709212455123456, settings("EPOCHMICROSECONDS", MICRO), "20240229131415.123000"),
    (dt.date(2024, 2, 29), settings("UNIX_TIMESTAMP"), "1970/01/01/05"),
    (dt.date(1969, 12, 31), settings("EPOCHMILLISECONDS"), "1969/12/31/23"),
    (dt.date(2024, 2, 29), settings("SCALAR", timestamp_scalar_time_unit="DAYS"), "2024/02/29/00"),
    ("2024-02-29T23:14:15-0500", settings("DATE_STRING", **OFFSETS), "2024/02/29/23"),
    (
        "2024-01-01T05:00:00+0900",
        settings("DATE_STRING", **OFFSETS, input_timezone="Europe/Oslo"),
        "2023/12/31/21",
    ),
    ("2024-01-01 05", settings("DATE_STRING", **OSLO), "2024/01/01/05"),
    ("2024-01-01 05", settings("DATE_STRING", **TOKYO, timezone="Europe/Oslo"), "2024/01/01/05"),
    (
        1709212455000,
        settings("EPOCHMILLISECONDS", output_timezone="Asia/Tokyo", timezone="Europe/Oslo"),
        "2024/02/29/14",
    ),
    (1709212455000, settings("EPOCHMILLISECONDS", timezone="GMT+3"), "2024/02/29/16"),
    (
        1709212455000,
        settings("EPOCHMILLISECONDS", "yyyy-MM-dd-HHmm", output_timezone="GMT-0330"),
        "2024-02-29-0944",
    ),
]


@pytest.mark.parametrize(("value", "properties", "text"), MEASURED)
def test_texts_are_those_of_hudi(value: object, properties: dict[str, str], text: str) -> None:
    assert format_time_partition(value, properties) == text


@pytest.mark.parametrize(
    ("value", "properties"),
    [
        (10**15, settings("UNIX_TIMESTAMP")),
        (float("inf"), settings("UNIX_TIMESTAMP")),
        (1, settings("UNIX_TIMESTAMP", timezone="GMT+24")),
        ("x", settings("UNIX_TIMESTAMP")),
        ("x", settings("DATE_STRING", input_dateformat="yyyy")),
        ("2024-02-31", settings("DATE_STRING", input_dateformat="yyyy-MM-dd")),
        (1, settings("SCALAR", timestamp_scalar_time_unit="ages")),
        (1, settings("UNIX_TIMESTAMP", timezone="Nowhere/At_All")),
        (1, {P + "timestamp.type": "UNIX_TIMESTAMP"}),
        ([], settings("UNIX_TIMESTAMP")),
    ],
)
def test_refusals(value: object, properties: dict[str, str]) -> None:
    with pytest.raises((Invalid, Unsupported)):
        format_time_partition(value, properties)


@given(st.datetimes(min_value=dt.datetime(1000, 1, 1)))
def test_a_time_survives_its_pattern(moment: dt.datetime) -> None:
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    assert parse_java(format_java(moment, pattern), pattern, UTC) == moment.replace(tzinfo=UTC)


def test_text_that_does_not_follow_the_pattern_is_none() -> None:
    assert parse_java("2024", "yyyy-MM", UTC) is None
    assert parse_java("2024-01Z", "yyyy-MMZ", UTC) == dt.datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "unit", "fits"),
    [
        (s.Timestamp(s.Unit.MICROS), "EPOCHMICROSECONDS", True),
        (s.Timestamp(s.Unit.MILLIS), "EPOCHMILLISECONDS", True),
        (s.Timestamp(s.Unit.MICROS), "EPOCHMILLISECONDS", False),
        (s.Timestamp(s.Unit.MICROS), "DATE_STRING", False),
        (s.LONG, "UNIX_TIMESTAMP", True),
        (s.DATE, "UNIX_TIMESTAMP", True),
    ],
)
def test_times_are_formatted_where_all_of_hudi_agrees(
    kind: s.DataType, unit: str, fits: bool
) -> None:
    assert (why_not_formatted(kind, settings(unit)) is None) == fits
