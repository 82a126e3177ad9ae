"""What has expired: boundaries, clocks, values that cannot be read, and the words of verdicts."""

import datetime as dt
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pytest

from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.lifecycle.ttl.expiry import Verdict, effect, judge
from lakewright.lifecycle.ttl.levels import Level, Levels
from lakewright.model.errors import Invalid
from lakewright.model.instant import instant_time
from lakewright.model.schema import DATE, INT, STRING
from lakewright.model.ttl import LARGEST, TtlPolicy

USERS = Levels((Level("user_id", INT), Level("ts", STRING)))
DAYS = Levels((Level("dt", DATE),))
HOURS = Levels((Level("region", STRING), Level("hour", STRING)))
NOW = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
MILLI = dt.timedelta(milliseconds=1)


@dataclass(frozen=True)
class Stat:
    path: str
    last_modified: str = instant_time(NOW)
    bytes: int = 1


def policy(spec: str, kind: str, value: int, **settings: str) -> TtlPolicy:
    return TtlPolicy.of(spec, kind, value, settings)


def gone(verdicts: list[Verdict]) -> list[str]:
    return [verdict.partition for verdict in verdicts if verdict.expired]


def by_time(age: dt.timedelta, days: int, now: dt.datetime = NOW) -> Verdict:
    stats = [Stat("user_id=1/ts=a", instant_time(now - age))]
    (verdict,) = judge(stats, [policy("user_id=*/", "KEEP_BY_TIME", days)], USERS, now)
    return verdict


def event(
    text: str, days: int, now: dt.datetime, zone: str = "UTC", reference: str = "end", **more: str
) -> Verdict:
    rule = policy("/", "KEEP_BY_EVENT_TIME", days, zone=zone, reference=reference, **more)
    levels = Levels((Level("dt", STRING),))
    (verdict,) = judge([Stat(f"dt={text}")], [rule], levels, now)
    return verdict


@pytest.mark.parametrize("days", [1, 30, 10_000])
def test_exactly_n_days_are_kept_and_a_moment_more_is_not(days: int) -> None:
    kept, expired = by_time(days * DAY, days), by_time(days * DAY + MILLI, days)
    assert not kept.expired and kept.expires_at == NOW
    assert expired.expired and expired.expires_at == NOW - MILLI
    assert "goes after 2026-11-16 12:00:00 UTC" in kept.reason
    assert "last changed" in expired.reason and f"kept for {kept.policy.kept}" in expired.reason


@pytest.mark.parametrize("days", [25, 49, 50, 1_426_983])
def test_days_that_overflow_elsewhere_do_not(days: int) -> None:
    assert not by_time(dt.timedelta(hours=8), days).expired


@pytest.mark.parametrize("days", [10**7, 10**12, LARGEST])
def test_days_beyond_all_dates_keep_for_ever(days: int) -> None:
    verdict = by_time(DAY, days)
    assert not verdict.expired and verdict.expires_at is None
    assert "beyond all dates" in verdict.reason
    assert "beyond all dates" in event("2026-11-01", days, NOW).reason


def test_summer_time_does_not_move_days_of_instants() -> None:
    # In Berlin 25 October 2026 has 25 hours.
    berlin = ZoneInfo("Europe/Berlin")
    now = dt.datetime(2026, 10, 26, 12, tzinfo=berlin)
    assert not by_time(DAY, 1, now).expired
    assert by_time(DAY + MILLI, 1, now).expired


def test_instants_are_read_in_the_zone_of_the_timeline() -> None:
    local = Levels(USERS.levels, zone=ZoneInfo("Asia/Tokyo"))
    rule = policy("/", "KEEP_BY_TIME", 1)
    stats = [Stat("user_id=1/ts=a", "20261115205959999"), Stat("user_id=1/ts=b", "20261115210000")]
    early, late = judge(stats, [rule], local, NOW)
    assert early.expires_at == dt.datetime(2026, 11, 16, 11, 59, 59, 999000, tzinfo=dt.UTC)
    assert early.expired
    assert late.expires_at == NOW + 999 * MILLI  # 14 digits mean the last moment of the second
    assert not late.expired


def test_a_clock_that_went_back_expires_nothing() -> None:
    verdict = by_time(-3 * DAY, 2)
    assert not verdict.expired and verdict.expires_at == NOW + 5 * DAY
    assert "in the future" in verdict.reason
    assert by_time(3 * DAY, 2).expired
    assert not by_time(3 * DAY, 4).expired


def test_a_clock_without_a_zone_is_refused() -> None:
    with pytest.raises(Invalid, match="no time zone"):
        judge([], [], USERS, NOW.replace(tzinfo=None))


@pytest.mark.parametrize("instant", ["00000000000001", "yesterday", "", "20261332000000000"])
def test_an_instant_that_is_no_time_keeps(instant: str) -> None:
    (verdict,) = judge(
        [Stat("user_id=1/ts=a", instant)], [policy("/", "KEEP_BY_TIME", 1)], USERS, NOW
    )
    assert not verdict.expired and "not known" in verdict.reason


def test_late_data_keeps_by_time_and_not_by_event_time_or_creation() -> None:
    stats = [Stat("dt=2026-01-01", instant_time(NOW))]
    assert not gone(judge(stats, [policy("/", "KEEP_BY_TIME", 30)], DAYS, NOW))
    assert gone(judge(stats, [policy("/", "KEEP_BY_EVENT_TIME", 30)], DAYS, NOW))
    made = {"dt=2026-01-01": "20260102000000000"}
    by_creation = [policy("/", "KEEP_BY_CREATION_TIME", 30)]
    assert gone(judge(stats, by_creation, DAYS, NOW, made.get))
    assert not gone(judge(stats, by_creation, DAYS, NOW, {}.get))
    (verdict,) = judge(stats, by_creation, DAYS, NOW)
    assert not verdict.expired and "not known when it was created" in verdict.reason


def test_backfill_does_not_reset_the_time_of_an_event() -> None:
    stats = [Stat(f"dt=2026-11-{day:02d}", instant_time(NOW)) for day in (1, 14, 15)]
    rule = policy("dt=*/", "KEEP_BY_EVENT_TIME", 1)
    assert gone(judge(stats, [rule], DAYS, NOW)) == ["dt=2026-11-01", "dt=2026-11-14"]


def test_creation_is_asked_only_where_it_counts() -> None:
    asked = []

    def created(path: str) -> str:
        asked.append(path)
        return instant_time(NOW - 2 * DAY)

    rules = [policy("user_id=1/", "KEEP_BY_CREATION_TIME", 1), policy("/", "KEEP_BY_TIME", 1)]
    stats = [Stat("user_id=1/ts=a"), Stat("user_id=2/ts=a")]
    assert gone(judge(stats, rules, USERS, NOW, created)) == asked == ["user_id=1/ts=a"]


def test_the_start_or_the_end_of_the_period() -> None:
    midnight = dt.datetime(2026, 11, 3, tzinfo=dt.UTC)
    assert event("2026-11-01", 1, midnight).expires_at == midnight
    assert event("2026-11-01", 1, midnight, reference="start").expires_at == midnight - DAY
    assert not event("2026-11-01", 1, midnight).expired
    assert event("2026-11-01", 1, midnight + MILLI).expired
    assert event("2026-11-01", 1, midnight, reference="start").expired


@pytest.mark.parametrize(
    ("text", "pattern", "end"),
    [
        ("2026", "yyyy", dt.datetime(2027, 1, 1)),
        ("2026-12", "yyyy-MM", dt.datetime(2027, 1, 1)),
        ("2026-11", "yyyy-MM", dt.datetime(2026, 12, 1)),
        ("20261101", "yyyyMMdd", dt.datetime(2026, 11, 2)),
        ("2024-02-29", "yyyy-MM-dd", dt.datetime(2024, 3, 1)),
        ("2026-11-01-23", "yyyy-MM-dd-HH", dt.datetime(2026, 11, 2)),
        ("2026110123", "yyyyMMddHH", dt.datetime(2026, 11, 2)),
        ("2026-11-01T05.07", "yyyy-MM-dd'T'HH.mm", dt.datetime(2026, 11, 1, 5, 8)),
        ("day 2026-11-01", "'day' yyyy-MM-dd", dt.datetime(2026, 11, 2)),
    ],
)
def test_a_period_is_as_long_as_its_format_says(text: str, pattern: str, end: dt.datetime) -> None:
    verdict = event(text, 1, NOW, format=pattern)
    assert verdict.expires_at == end.replace(tzinfo=dt.UTC) + DAY


def test_days_are_those_of_the_zone_through_summer_time() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    for text, until in [
        ("2026-10-24", dt.datetime(2026, 10, 26, tzinfo=berlin)),  # 25 hours in between
        ("2026-10-25", dt.datetime(2026, 10, 27, tzinfo=berlin)),
        ("2026-03-28", dt.datetime(2026, 3, 30, tzinfo=berlin)),  # 23 hours in between
    ]:
        verdict = event(text, 1, until.astimezone(dt.UTC), "Europe/Berlin")
        assert verdict.expires_at == until.astimezone(dt.UTC)
        assert not verdict.expired
        assert event(text, 1, until.astimezone(dt.UTC) + MILLI, "Europe/Berlin").expired
        assert "Europe/Berlin" in verdict.reason


def test_hours_that_a_clock_shows_twice_or_never() -> None:
    utc = dt.UTC

    def ends(text: str) -> dt.datetime | None:
        return event(text, 1, NOW, "Europe/Berlin", format="yyyy-MM-dd-HH").expires_at

    # 02 comes twice on 25 October: its partition ends with the second one, 03:00 of winter.
    assert ends("2026-10-25-02") == dt.datetime(2026, 10, 26, 2, tzinfo=utc)
    # 02 never comes on 29 March; 01 ends when 03 begins.
    assert ends("2026-03-28-01") == dt.datetime(2026, 3, 29, 1, tzinfo=utc)


def test_the_zone_moves_the_boundary() -> None:
    tokyo, utc = (event("2026-11-01", 1, NOW, zone).expires_at for zone in ("Asia/Tokyo", "UTC"))
    assert tokyo is not None and utc is not None
    assert utc - tokyo == dt.timedelta(hours=9)


@pytest.mark.parametrize("text", ["someday", "2026-13-01", "2026-02-30", "2026-11", "2026-11-01x"])
def test_a_text_that_is_no_time_is_kept_and_named(text: str) -> None:
    verdict = event(text, 1, NOW)
    assert not verdict.expired and f"{text!r} does not follow" in verdict.reason


def test_partitions_without_a_time_stay_unless_told() -> None:
    assert not event(DEFAULT_PARTITION, 1, NOW).expired
    verdict = event(DEFAULT_PARTITION, 1, NOW, nulls="delete")
    assert verdict.expired and "no time" in verdict.reason


def test_the_time_lies_where_the_spec_ends_or_where_the_segment_says() -> None:
    stats = [Stat("region=eu/hour=2026-11-01"), Stat("region=2026-11-01/hour=2026-11-16")]
    below = [policy("region=*/", "KEEP_BY_EVENT_TIME", 7)]
    assert gone(judge(stats, below, HOURS, NOW)) == ["region=eu/hour=2026-11-01"]
    first = [policy("region=*/", "KEEP_BY_EVENT_TIME", 7, segment="0")]
    assert gone(judge(stats, first, HOURS, NOW)) == ["region=2026-11-01/hour=2026-11-16"]
    parts = Levels(tuple(Level(name, INT) for name in ("y", "m", "d")))
    dated = [Stat("y=2026/m=11/d=1"), Stat("y=2026/m=11/d=16")]
    rule = policy("y=*/", "KEEP_BY_EVENT_TIME", 7, format="yyyy/MM/dd")
    assert gone(judge(dated, [rule], parts, NOW)) == ["y=2026/m=11/d=1"]


def users(*values: tuple[str, str, int]) -> list[Stat]:
    return [Stat(f"user_id={user}/ts={ts}", bytes=size) for user, ts, size in values]


def test_smaller_values_go_first_by_count() -> None:
    levels = Levels((Level("user_id", INT), Level("hour", INT)))
    stats = [Stat(f"user_id=1/hour={hour}") for hour in (10, 9, 100, -1)]
    stats += [Stat(f"user_id=1/hour={DEFAULT_PARTITION}"), Stat("user_id=2/hour=1")]
    verdicts = judge(stats, [policy("user_id=*/", "KEEP_BY_COUNT", 2)], levels, NOW)
    assert gone(verdicts) == [
        "user_id=1/hour=9",
        "user_id=1/hour=-1",
        f"user_id=1/hour={DEFAULT_PARTITION}",
    ]
    assert "5 partitions below user_id=1/, 2 are kept" in verdicts[1].reason
    assert "it goes when a larger value comes" in verdicts[0].reason
    assert "it goes when 2 larger values come" in verdicts[2].reason
    assert all(verdict.expires_at is None for verdict in verdicts)


def test_smaller_values_go_first_by_size() -> None:
    stats = users(("2", "a", 50), ("2", "c", 40), ("2", "b", 30), ("3", "a", 500))
    rule = policy("user_id=2/", "KEEP_BY_SIZE", 70)
    verdicts = judge(stats, [rule], USERS, NOW)
    assert gone(verdicts) == ["user_id=2/ts=a"]
    assert "hold 120 bytes, 70 are kept" in verdicts[0].reason
    assert "more than 0 bytes" in verdicts[2].reason
    assert verdicts[3].policy is None and verdicts[3].reason == "no policy names it"
    assert gone(judge(stats, [policy("user_id=2/", "KEEP_BY_SIZE", 120)], USERS, NOW)) == []
    assert len(gone(judge(stats, [policy("user_id=2/", "KEEP_BY_SIZE", 39)], USERS, NOW))) == 3


def test_a_star_at_the_last_level_counts_what_it_stands_for() -> None:
    stats = [Stat(f"dt=2026-11-{day:02d}") for day in range(1, 6)]
    for spec in ("dt=*/", "/"):
        verdicts = judge(stats, [policy(spec, "KEEP_BY_COUNT", 3)], DAYS, NOW)
        assert gone(verdicts) == ["dt=2026-11-01", "dt=2026-11-02"]
        assert "5 partitions of the table" in verdicts[0].reason
    stats = users(("1", "a", 1), ("1", "b", 1), ("2", "a", 1))
    deep = judge(stats, [policy("user_id=*/ts=*/", "KEEP_BY_COUNT", 1)], USERS, NOW)
    assert gone(deep) == ["user_id=1/ts=a"]


def test_what_a_more_specific_policy_takes_does_not_count() -> None:
    stats = users(("1", "a", 1), ("1", "b", 1), ("1", "c", 1))
    rules = [
        policy("user_id=1/", "KEEP_BY_COUNT", 2),
        policy("user_id=1/ts=c/", "KEEP_BY_TIME", 9),
    ]
    assert gone(judge(stats, rules, USERS, NOW)) == []


def test_the_more_specific_policy_governs() -> None:
    rules = [
        policy(spec, "KEEP_BY_TIME", days)
        for days, spec in enumerate(
            ["/", "user_id=*/", "user_id=1/", "user_id=*/ts=*/", "user_id=1/ts=a/"], 1
        )
    ]
    stats = users(("1", "a", 1), ("1", "b", 1), ("2", "a", 1))
    found = [verdict.policy.spec for verdict in judge(stats, rules, USERS, NOW) if verdict.policy]
    assert found == ["user_id=1/ts=a/", "user_id=1/", "user_id=*/ts=*/"]


def test_policies_that_meet_are_refused() -> None:
    rules = [
        policy("user_id=1/", "KEEP_BY_TIME", 1),
        policy("user_id=*/ts=a/", "KEEP_BY_TIME", 1),
    ]
    with pytest.raises(Invalid, match="neither is the more specific"):
        judge([], rules, USERS, NOW)
    third = policy("user_id=1/ts=a/", "KEEP_BY_TIME", 1)
    assert judge([], [*rules, third], USERS, NOW) == []


@pytest.mark.parametrize("path", ["", "user_id=1", "other=1/ts=a", "1/a", "user_id=1/ts"])
def test_a_path_with_other_levels_is_kept(path: str) -> None:
    stats = [Stat(path, "20000101000000000")]
    (verdict,) = judge(stats, [policy("/", "KEEP_BY_TIME", 1)], USERS, NOW)
    assert not verdict.expired and "does not have the levels" in verdict.reason


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("p=a,b/", "p=a,b"),
        ("p=a=b/", "p=a=b"),
        ("p=50%/", "p=50%"),
        ("p=a%2Fb/", "p=a%2Fb"),
        ("p=ü😀/", "p=ü😀"),
        ("p=\\*/", "p=*"),
        (f"p={DEFAULT_PARTITION}/", f"p={DEFAULT_PARTITION}"),
    ],
)
@pytest.mark.parametrize("encode", [True, False])
def test_a_spec_takes_its_own_value_and_no_other(spec: str, path: str, encode: bool) -> None:
    levels = Levels((Level("p", STRING, slashed=not encode),), url_encode=encode)
    others = [
        "p=a",
        "p=a;b",
        "p=A,b",
        "p=50",
        "p=50%2",
        "p=a_b",
        "p=u",
        "p=x",
        "p=null",
        "p=a%3Db1",
    ]
    stats = [Stat(one, "20000101000000000") for one in (path, *others)]
    assert gone(judge(stats, [policy(spec, "KEEP_BY_TIME", 1)], levels, NOW)) == [path]


def test_one_value_of_an_encoded_table_has_one_policy_however_it_is_written() -> None:
    levels = Levels((Level("p", STRING),), url_encode=True)
    stats = [Stat("p=50%25", "20000101000000000")]
    for spec in ("p=50%/", "p=50%25/"):
        assert gone(judge(stats, [policy(spec, "KEEP_BY_TIME", 1)], levels, NOW))
    raw = Levels((Level("p", STRING),), url_encode=False)
    assert not gone(judge(stats, [policy("p=50%/", "KEEP_BY_TIME", 1)], raw, NOW))


def test_an_effect_is_counted() -> None:
    old, new = "20000101000000000", instant_time(NOW)
    stats = [
        Stat("user_id=1/ts=a", old),
        Stat("user_id=1/ts=b", new),
        Stat("user_id=2/ts=a", old),
        Stat("stray", old),
    ]
    rule = policy("user_id=*/", "KEEP_BY_TIME", 1)
    other = policy("user_id=2/", "KEEP_BY_TIME", 20_000)
    found = effect(stats, [rule, other], rule, USERS, NOW)
    assert (found.matches, found.governs, found.expires) == (3, 2, 1)
    assert str(found) == (
        "matches 3 partitions, would expire 1 now (1 have more specific policies)"
    )
    nothing = policy("user_id=9/", "KEEP_BY_TIME", 1)
    assert effect(stats, [rule, nothing], nothing, USERS, NOW).matches == 0


def test_a_verdict_tells_itself() -> None:
    verdict = by_time(40 * DAY, 30)
    assert str(verdict) == (
        "user_id=1/ts=a: expired (user_id=*/ KEEP_BY_TIME 30): last changed 2026-10-07 12:00:00 "
        "UTC, kept for 30 days, until 2026-11-06 12:00:00 UTC"
    )


SLASHED = Levels((Level("u", STRING, slashed=True), Level("d", STRING, slashed=True)))


def by_event(levels: Levels, path: str, spec: str = "/", **settings: str) -> Verdict:
    rule = policy(spec, "KEEP_BY_EVENT_TIME", 30, **settings)
    (verdict,) = judge([Stat(path)], [rule], levels, NOW)
    return verdict


def test_a_slash_in_a_value_before_it_does_not_move_the_time() -> None:
    verdict = by_event(SLASHED, "u=acme/2001-01-01/d=2026-11-16", "u=*/")
    assert not verdict.expired and "its time ends 2026-11-17" in verdict.reason
    assert by_event(SLASHED, "u=acme/2026-11-16/d=2001-01-01", "u=*/").expired


@pytest.mark.parametrize("path", ["u=a/d=2001-01-01/d=2026-11-16", "u=a/d=2026-11-16/d=2001-01-01"])
def test_a_path_that_can_be_cut_in_two_ways_is_kept_and_says_so(path: str) -> None:
    assert "in more ways than one" in by_event(SLASHED, path, "u=*/").reason
    rules = [policy("/", "KEEP_BY_COUNT", 1)]
    verdicts = judge([Stat(path), Stat("u=a/d=z")], rules, SLASHED, NOW)
    assert not gone(verdicts) and "in more ways than one" in verdicts[0].reason


@pytest.mark.parametrize(
    ("levels", "path", "settings"),
    [
        (Levels((Level("d", STRING, slashed=True),)), "d={}", {}),
        (Levels((Level("d", STRING, slashed=True),), hive_style=False), "{}", {}),
        (SLASHED, "u=x/y/d={}", {"segment": "1"}),
        (Levels((Level("u", INT), Level("d", STRING, slashed=True))), "u=1/d={}", {"segment": "1"}),
        (Levels((Level("d", STRING, slashed=True), Level("h", INT))), "d={}/h=1", {}),
        (Levels((Level("d", DATE, "yyyy/MM/dd", 3), Level("h", INT))), "d={}/h=1", {}),
    ],
)
def test_dates_with_slashes_of_one_column(
    levels: Levels, path: str, settings: dict[str, str]
) -> None:
    wanted = {"format": "yyyy/MM/dd", **settings}
    assert by_event(levels, path.format("2026/10/01"), **wanted).expired
    kept = by_event(levels, path.format("2026/11/01"), **wanted)
    assert kept.expires_at == dt.datetime(2026, 12, 2, tzinfo=dt.UTC)


def test_encoded_dates_with_slashes() -> None:
    levels = Levels((Level("u", STRING), Level("d", STRING)), url_encode=True)
    assert by_event(levels, "u=a%2Fb/d=2026%2F10%2F01", "u=*/", format="yyyy/MM/dd").expired
    assert not by_event(levels, "u=2026/d=2026%2F11%2F01", "u=*/", format="yyyy/MM/dd").expired


def test_a_time_in_levels_of_another_length_is_kept() -> None:
    three = Levels(tuple(Level(name, STRING, slashed=True) for name in "ymd"))
    assert by_event(three, "y=2026/m=10/d=01", format="yyyy/MM/dd").expired
    for path in ("y=2001/01/m=10/d=01", "y=2026/m=10/d=01/05", "y=2001/01/01/m=x/d=x"):
        verdict = by_event(three, path, format="yyyy/MM/dd")
        assert not verdict.expired and "not told for sure" in verdict.reason
    verdict = by_event(SLASHED, "u=2001-01-01/x/d=1")
    assert not verdict.expired and "not told for sure" in verdict.reason


def test_a_segment_with_which_no_time_can_begin_is_refused() -> None:
    with pytest.raises(Invalid, match="one of 0, 1"):
        by_event(SLASHED, "u=1/d=1", format="yyyy/MM/dd", segment="2")
    with pytest.raises(Invalid, match="none fits"):
        by_event(DAYS, "dt=1", format="yyyy/MM/dd")
    with pytest.raises(Invalid, match="one of 0, 1"):
        by_event(SLASHED, "u=1/d=1", segment="-1")
