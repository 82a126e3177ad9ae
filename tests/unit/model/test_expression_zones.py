"""Expressions in a zone: literals, days, hours, and what is left of it once they are bound."""

import datetime as dt
import pickle
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from lakewright.format.arrow.expression import residual_filter, to_arrow
from lakewright.format.arrow.expression_values import compile_value
from lakewright.model.errors import InvalidExpression
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import BoundComparison, BoundLiteral, BoundReference
from lakewright.model.expression.nodes import InZone
from lakewright.model.expression.outcomes import TRUE, compile_condition
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.prune import ColumnRange
from lakewright.model.expression.render import to_sql
from lakewright.model.expression.unbind import unbind
from lakewright.model.expression.zones import UNZONED, known_zone
from lakewright.model.schema import DATE, STRING, TIMESTAMP, Field, Struct, Timestamp, Unit

WALL = Timestamp(Unit.MICROS, utc=False)
SCHEMA = Struct((Field("ts", TIMESTAMP), Field("d", DATE), Field("w", WALL), Field("s", STRING)))
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("w", pa.timestamp("us")),
        ("s", pa.string()),
    ]
)
#: Around a change of clocks in New York (10 March 2024, 07:00 UTC), and back (3 November).
MOMENTS = [
    dt.datetime(2024, month, day, hour, minute, tzinfo=dt.UTC)
    for month, day in ((3, 9), (3, 10), (11, 3), (7, 1))
    for hour in range(24)
    for minute in (0, 30)
]
ZONES = ["America/New_York", "Asia/Tokyo", "Asia/Kolkata", "+05:45", "UTC"]
DAY = dt.date(2024, 3, 10)


def rules(zone: str) -> dt.tzinfo:
    if zone[0] == "+":
        return dt.timezone(dt.timedelta(hours=5, minutes=45))
    return ZoneInfo(zone)


def kept(text: str, zone: str) -> list[dt.datetime]:
    rows = [{"ts": at, "d": DAY, "w": None, "s": None} for at in MOMENTS]
    batch = pa.RecordBatch.from_pylist(rows, ARROW)
    keep = residual_filter(bind(InZone(parse_expression(text), zone), SCHEMA))
    assert keep is not None
    return list(keep(batch).to_pydict()["ts"])


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("ts >= TIMESTAMP '2024-03-10 03:00:00'", lambda at: at >= dt.datetime(2024, 3, 10, 3)),
        ("ts >= '2024-03-10 03:00:00'", lambda at: at >= dt.datetime(2024, 3, 10, 3)),
        ("ts < DATE '2024-03-10'", lambda at: at.date() < DAY),
        ("ts < d", lambda at: at.date() < DAY),
        ("d > ts", lambda at: at.date() < DAY),
        ("CAST(ts AS DATE) = DATE '2024-03-10'", lambda at: at.date() == DAY),
        ("to_date(ts) IN ('2024-03-10')", lambda at: at.date() == DAY),
        ("hour(ts) = 3", lambda at: at.hour == 3),
        ("day(ts) = 10 AND minute(ts) = 15", lambda at: at.day == 10 and at.minute == 15),
        ("CAST(ts AS STRING) LIKE '2024-03-10 0%'", lambda at: str(at)[:12] == "2024-03-10 0"),
        ("date_trunc('day', ts) = TIMESTAMP '2024-03-10'", lambda at: at.date() == DAY),
        ("date_trunc('hour', ts) = ts", lambda at: at.minute == 0),
        (
            "ts BETWEEN '2024-03-09 20:00' AND '2024-03-10'",
            lambda at: dt.datetime(2024, 3, 9, 20) <= at <= dt.datetime(2024, 3, 10),
        ),
    ],
)
def test_a_condition_follows_the_clocks_of_its_zone(
    text: str, test: Callable[[dt.datetime], bool], zone: str
) -> None:
    shown = {at: at.astimezone(rules(zone)).replace(tzinfo=None) for at in MOMENTS}
    assert kept(text, zone) == [at for at in MOMENTS if test(shown[at])]


@pytest.mark.parametrize("zone", ZONES)
def test_a_time_that_names_its_zone_means_the_same_in_every_zone(zone: str) -> None:
    since = dt.datetime(2024, 3, 10, 3, tzinfo=dt.UTC)
    for text in ("ts >= TIMESTAMP '2024-03-10 03:00:00Z'", "ts >= '2024-03-10 05:00:00+02:00'"):
        assert kept(text, zone) == [at for at in MOMENTS if at >= since]


@pytest.mark.parametrize("zone", ZONES)
def test_hours_that_a_clock_leaves_out_or_shows_twice(zone: str) -> None:
    walls = [
        dt.datetime(2024, month, day, hour, minute)
        for month, day in ((3, 10), (11, 3))
        for hour in range(5)
        for minute in (0, 30, 59)
    ]
    written = InZone(parse_expression("CAST(w AS TIMESTAMP)"), zone)
    evaluate = compile_value(bind(written, SCHEMA, predicate=False), lazy=False)
    made: Any = evaluate(lambda _: pa.array(walls, pa.timestamp("us")))
    wanted = [wall.replace(tzinfo=rules(zone)).astimezone(dt.UTC) for wall in walls]
    assert made.to_pylist() == wanted


def test_constants_stay_constants_for_pruning() -> None:
    bound = bind(InZone(parse_expression("ts >= '2024-03-10'"), "America/New_York"), SCHEMA)
    wanted = dt.datetime(2024, 3, 10, 5, tzinfo=dt.UTC)
    assert isinstance(bound, BoundComparison)
    assert isinstance(bound.left, BoundReference) and isinstance(bound.right, BoundLiteral)
    assert bound.right.value == wanted and to_arrow(bound).exact
    before = ColumnRange(wanted - dt.timedelta(days=1), wanted - dt.timedelta(seconds=1), 0, 9)
    assert not compile_condition(bound)({("ts",): before}) & TRUE
    day = bind(InZone(parse_expression("CAST(ts AS DATE) = '2024-03-09'"), "Asia/Tokyo"), SCHEMA)
    assert compile_condition(day)({("ts",): before}) & TRUE


def test_a_bound_expression_needs_no_zone() -> None:
    text = "hour(ts) = 3 AND ts > d AND ts > '2024-03-10' AND w < ts"
    bound = bind(InZone(parse_expression(text), "Asia/Tokyo"), SCHEMA)
    assert bind(unbind(bound), SCHEMA) == bound
    plain = bind(parse_expression(text), SCHEMA)
    assert plain == bind(InZone(parse_expression(text), "Z"), SCHEMA)
    assert plain != bound


def test_texts_that_no_engine_could_read_alike_are_refused() -> None:
    with pytest.raises(InvalidExpression, match="Asia/Tokyo"):
        bind(InZone(parse_expression("CAST(s AS TIMESTAMP) > ts"), "Asia/Tokyo"), SCHEMA)
    with pytest.raises(InvalidExpression, match="no known time zone"):
        bind(InZone(parse_expression("hour(ts) = 3"), "Mars/Olympus"), SCHEMA)


def test_names_of_zones() -> None:
    assert [known_zone(name) for name in ("UTC", "Z", "+00:00", "GMT+0", "Etc/UTC")] == [None] * 5
    assert [known_zone(name) for name in ("+9", "UTC+9", "GMT+09:00", "+0900")] == ["+09:00"] * 4
    assert known_zone("Europe/Oslo") == "Europe/Oslo"


def test_constants_without_a_zone_travel() -> None:
    read = parse_expression("ts > TIMESTAMP '2024-03-10 03:00:00'")
    again: Any = pickle.loads(pickle.dumps(read))
    assert again.right.value.tzinfo is UNZONED
    assert to_sql(again) == "ts > TIMESTAMP '2024-03-10 03:00:00+00:00'"
    assert to_sql(InZone(again, "Asia/Tokyo")) == "ts > TIMESTAMP '2024-03-09 18:00:00+00:00'"
