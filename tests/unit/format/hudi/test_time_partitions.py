"""Paths made of formatted times."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.time_partitions import format_java, format_time_partition, parse_java
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
        (dt.date(2024, 1, 5), settings("EPOCHMILLISECONDS"), "2024/01/05/00"),
        (
            1704470828,
            settings("UNIX_TIMESTAMP", output_timezone="Asia/Tokyo"),
            "2024/01/06/01",
        ),
        (1704470828, settings("UNIX_TIMESTAMP", timezone="GMT"), "2024/01/05/16"),
        (
            "2024-01-05T16:07:08.123+0100",
            settings("DATE_STRING", input_dateformat="yyyy-MM-dd'T'HH:mm:ss.SSSZ"),
            "2024/01/05/15",
        ),
        (
            "2024-01-05",
            settings("DATE_STRING", input_dateformat="yyyy-MM-dd HH,yyyy-MM-dd"),
            "2024/01/05/00",
        ),
        (
            "2024-01-05",
            settings("DATE_STRING", input_dateformat="yyyy-MM-dd", input_timezone="Asia/Tokyo"),
            "2024/01/04/15",
        ),
    ],
)
def test_raw_values_become_paths(value: object, properties: dict[str, str], text: str) -> None:
    assert format_time_partition(value, properties) == text


@pytest.mark.parametrize(
    ("value", "properties"),
    [
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
