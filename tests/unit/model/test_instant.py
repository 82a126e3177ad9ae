"""Points in time, as users write them, become instant times that sort as the times do."""

import datetime as dt

import pytest

from lakewright.model.errors import Invalid
from lakewright.model.instant import instant_time, parse_point_in_time

EAST = dt.timezone(dt.timedelta(hours=5))


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("000", "000"),
        ("00000000000001", "00000000000001"),
        (" 20260228235959 ", "20260228235959"),
        (dt.date(999, 1, 2), "09990102235959999"),
        (dt.datetime(999, 1, 2, 3, 4, 5, 6000), "09990102030405006"),
        (dt.datetime(2026, 1, 1, 2, tzinfo=EAST), "20251231210000000"),
    ],
)
def test_a_point_in_time_is_written_with_all_its_digits(value: dt.date | str, instant: str) -> None:
    assert parse_point_in_time(value) == instant


def test_a_moment_is_written_with_all_its_digits() -> None:
    assert instant_time(dt.datetime(33, 1, 2, tzinfo=dt.UTC)) == "00330102000000000"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("20201301000000000", "no date and time"),
        ("20260229000000", "no date and time"),
        ("99999999999999999", "no date and time"),
        ("", "neither"),
        (20261101000000000, "int"),
        (True, "bool"),
        (dt.time(1), "time"),
        (dt.datetime(1, 1, 1, tzinfo=EAST), "beyond the calendar"),
    ],
)
def test_what_is_no_time_is_refused(value: object, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        parse_point_in_time(value)  # type: ignore[arg-type]
