"""Rules written for chosen numbers give just those numbers, and are short."""

import datetime as dt
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.actions.buckets.rule_writing import compact_rules, escaped, pattern_of
from lakewright.model.bucket_rules.compiled import check_rules, compile_rules
from lakewright.model.bucket_rules.rules import BucketRules

part = st.text(st.sampled_from("ab01=-.,;$()[]|\\é😀 "), min_size=1, max_size=6)
paths = st.builds("/".join, st.lists(part, min_size=1, max_size=3))


def number_of(rules: BucketRules, partition: str) -> int:
    return compile_rules(rules)(partition)


@settings(max_examples=300)
@given(st.dictionaries(paths, st.sampled_from([1, 2, 4, 256]), max_size=25))
def test_every_partition_gets_its_number(numbers: dict[str, int]) -> None:
    rules = compact_rules(numbers)
    assert {path: number_of(rules, path) for path in numbers} == numbers
    check_rules(rules)
    for rule in rules.rules:
        assert "," not in rule.expression and ";" not in rule.expression


@settings(max_examples=300)
@given(st.sets(part, min_size=1, max_size=20), part)
def test_a_pattern_matches_its_texts_and_no_others(texts: set[str], other: str) -> None:
    pattern = re.sub(r"\\x\{([0-9A-F]+)\}", lambda m: f"\\U{int(m[1], 16):08X}", pattern_of(texts))
    for text in texts:
        assert re.fullmatch(pattern, text)
    assert bool(re.fullmatch(pattern, other)) == (other in texts)


def test_one_number_for_all_needs_no_rule() -> None:
    assert compact_rules({"dt=1": 8, "dt=2": 8}) == BucketRules(default=8)
    assert compact_rules({"": 4}) == BucketRules(default=4)


def test_days_of_sales_are_named_as_a_person_would_name_them() -> None:
    numbers = {f"2026-{month:02d}-{day:02d}": 10 for month in range(1, 13) for day in range(1, 29)}
    sales = [f"2026-{day}" for day in ("06-01", "06-17", "06-18", "11-01", "11-10", "11-11")]
    numbers.update(dict.fromkeys(sales, 256))
    rules = compact_rules(numbers)
    (rule,) = rules.rules
    assert rules.default == 10
    assert (rule.expression, rule.buckets) == ("^2026-(06-(01|1[78])|11-(01|1[01]))$", 256)


def test_a_folder_of_one_number_is_one_short_rule() -> None:
    numbers = {f"region={r}/dt=2026-11-{d:02d}": 4 for r in ("us", "in") for d in range(1, 29)}
    numbers.update({f"region=eu/dt=2026-11-{d:02d}": 64 for d in range(1, 29)})
    numbers["region=eu/dt=2026-11-11"] = 512
    rules = compact_rules(numbers)
    assert [(r.expression, r.buckets) for r in rules.rules] == [
        ("^region=eu/dt=2026-11-11$", 512),
        ("^region=eu/", 64),
    ]
    assert rules.default == 4
    assert number_of(rules, "region=eu/dt=2027-01-01") == 64  # partitions to come, too


def test_many_partitions_are_written_quickly() -> None:
    numbers = {f"u={u}/dt={d}": (4 if u % 7 else 16) for u in range(1000) for d in range(100)}
    rules = compact_rules(numbers)
    assert rules.default == 4
    assert len(rules.rules) == 1
    assert number_of(rules, "u=14/dt=5") == 16
    assert number_of(rules, "u=15/dt=5") == 4


def test_signs_that_mean_something_are_escaped() -> None:
    assert escaped("a.b,c;d") == r"a\.b\x2Cc\x3Bd"
    assert escaped("日") == r"\x{65E5}"


days = st.dates(dt.date(2025, 1, 1), dt.date(2026, 12, 31)).map(str)


@settings(max_examples=200)
@given(st.dictionaries(days, st.sampled_from([1, 2, 4]), max_size=30), st.sampled_from(["dt=", ""]))
def test_days_get_their_numbers(numbers: dict[str, int], prefix: str) -> None:
    named = {f"{prefix}{day}": number for day, number in numbers.items()}
    rules = compact_rules(named)
    assert {path: number_of(rules, path) for path in named} == named
    check_rules(rules)


@settings(max_examples=200)
@given(st.dictionaries(st.integers(-120, 120), st.sampled_from([1, 2, 4]), max_size=30))
def test_whole_numbers_get_their_numbers(numbers: dict[int, int]) -> None:
    named = {f"hour={hour}": number for hour, number in numbers.items()}
    rules = compact_rules(named)
    assert {path: number_of(rules, path) for path in named} == named


def test_growth_over_the_years_is_told_by_intervals() -> None:
    first = dt.date(2024, 1, 1)
    every = [str(first + dt.timedelta(days=n)) for n in range(900)]
    numbers = {f"dt={day}": 4 if day < "2025-03-17" else 8 for day in every}
    numbers |= {f"dt={day}": 16 for day in every if day >= "2026-02-09"}
    rules = compact_rules(numbers)
    assert [(rule.kind, rule.expression, rule.buckets) for rule in rules.rules] == [
        ("range", "[2024-01-01, 2025-03-16]", 4),
        ("range", "[2025-03-17, 2026-02-08]", 8),
    ]
    assert rules.default == 16  # days to come are like the newest


def test_days_to_come_are_like_the_newest_not_like_the_last_one() -> None:
    numbers = {f"dt=2026-11-{day:02d}": 8 for day in range(1, 15)} | {"dt=2026-11-15": 1}
    rules = compact_rules(numbers)
    assert rules.default == 8
    assert [(rule.expression, rule.buckets) for rule in rules.rules] == [("^dt=2026-11-15$", 1)]


def test_what_only_looks_like_days_or_numbers_is_named_by_patterns() -> None:
    for paths in (["h=1", "h=01", "h=2"], ["2026-13-01", "2026-12-01"], ["2026-12", "2026-12-01"]):
        numbers = {path: place + 1 for place, path in enumerate(paths)}
        rules = compact_rules(numbers)
        assert {path: number_of(rules, path) for path in paths} == numbers
        assert {rule.kind for rule in rules.rules} == {"regex"}
