import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.model.bucket_rules import compiled
from lakewright.model.bucket_rules.checking import refuse_runaway
from lakewright.model.bucket_rules.comparing import Effort, common_text, deciding
from lakewright.model.bucket_rules.compiled import (
    check_rules,
    compile_rules,
    register_rule,
    rule_of,
)
from lakewright.model.bucket_rules.java_pattern import JavaPattern
from lakewright.model.bucket_rules.rules import MOST_BUCKETS, BucketRule, BucketRules
from lakewright.model.errors import AlreadyExists, Invalid, InvalidExpression
from support.java_patterns import pattern_texts, texts

SEED = BucketRules((BucketRule(r"\d{4}-(06-(01|17|18)|11-(01|10|11))", 256),), 10)


def rules_of(*rules, default=8):
    return BucketRules(tuple(BucketRule(*rule) for rule in rules), default)


@pytest.fixture
def kinds(monkeypatch):
    monkeypatch.setattr(compiled, "_KINDS", dict(compiled._KINDS))
    compile_rules.cache_clear()
    yield
    compile_rules.cache_clear()


class EndsWith:
    def __init__(self, expression):
        if not expression:
            raise Invalid("nothing to end with")
        self.end = expression

    def matches(self, partition):
        return partition.endswith(self.end)

    def pattern(self):
        return rf"{self.end}\z"


@pytest.mark.parametrize(
    ("partition", "buckets"),
    [
        *(("2026-06-01", 256), ("2026-06-17", 256), ("2025-11-11", 256), ("dt=2026-11-10", 256)),
        *(("2026-06-02", 10), ("2026-12-11", 10), ("", 10), ("x", 10), ("2026-11-1", 10)),
    ],
)
def test_the_seeds_example(partition, buckets):
    assert compile_rules(SEED)(partition) == buckets


def test_the_first_rule_that_matches_decides():
    number_of = compile_rules(rules_of(("a", 1), ("b", 2), ("ab", 3)))
    assert [number_of(path) for path in ("a", "b", "ab", "c")] == [1, 2, 1, 8]


def test_rules_are_compiled_once_per_value():
    assert compile_rules(rules_of(("a", 1))) is compile_rules(rules_of(("a", 1)))
    assert compile_rules(BucketRules(default=3))("anything") == 3
    assert pickle.loads(pickle.dumps(SEED)) == SEED


def test_kinds_in_any_order(kinds):
    register_rule("ends", EndsWith)
    register_rule("ENDS", EndsWith)
    number_of = compile_rules(
        rules_of(
            ("5", 1),
            ("9", 2, "ends"),
            ("[10, 59]", 3, "range"),
            (r"\A(?:49|100)\z", 4),
            ("0", 5, "ends"),
        )
    )
    assert [number_of(path) for path in ("59", "49", "40", "60", "100", "7")] == [1, 2, 3, 5, 4, 8]


def test_a_kind_is_registered_once(kinds):
    register_rule("ends", EndsWith)
    with pytest.raises(AlreadyExists):
        register_rule("regex", EndsWith)
    with pytest.raises(AlreadyExists):
        register_rule("ends", lambda expression: EndsWith(expression))
    with pytest.raises(Invalid, match="nothing to end with"):
        check_rules(rules_of(("", 1, "ends")))


def test_an_unknown_kind_names_the_known():
    with pytest.raises(Invalid, match="hash") as caught:
        rule_of(BucketRule("a", 1, "hash"))
    assert "range, regex" in str(caught.value)


def test_a_hundred_thousand_named_paths_are_looked_up():
    paths = [f"dt={number}" for number in range(100_000)]
    listed = r"\A(?:" + "|".join(paths) + r")\z"
    rules = rules_of(("dt=5", 1), (listed, 2), ("dt", 1))
    number_of = compile_rules(rules)
    assert [number_of(path) for path in ("dt=50", "dt=7", "dt=100000", "x")] == [1, 2, 1, 8]
    assert check_rules(rules) == ()


@pytest.mark.parametrize("buckets", [0, -1, MOST_BUCKETS + 1, True, 1.5, "8", None])
def test_numbers_that_are_none_of_buckets(buckets):
    for rules in (rules_of(("a", buckets)), BucketRules(default=buckets)):
        with pytest.raises(Invalid) as caught:
            check_rules(rules)
        assert str(MOST_BUCKETS) in str(caught.value) and repr(buckets) in str(caught.value)


def test_what_runs_away_is_refused_when_set_and_read_when_there():
    rules = rules_of(("(a+)+$", 4))
    with pytest.raises(InvalidExpression, match="run away"):
        check_rules(rules)
    assert compile_rules(rules)("a" * 5000 + "b") == 8
    refuse_runaway(rules.rules[0], "a+$")


@pytest.mark.parametrize("expression", ["(", "(?=a)b", "[a"])
def test_patterns_that_cannot_be_read_are_refused(expression):
    with pytest.raises(InvalidExpression):
        check_rules(rules_of((expression, 4)))


# Warnings


def test_no_warning_without_a_reason():
    assert check_rules(SEED) == ()
    assert check_rules(rules_of(("2026-11", 1), ("2026-12", 2), ("^x$", 3))) == ()
    assert check_rules(BucketRules()) == ()


@pytest.mark.parametrize(
    ("rules", "number"),
    [
        (rules_of(("2026", 1), ("2026-11", 2)), 2),
        (rules_of(("a", 1), ("b", 2), ("^[ab]+$", 3)), 3),
        (rules_of(("", 1), ("x", 2)), 2),
        (rules_of(("[1, 50]", 1, "range"), ("[20, 30]", 2, "range")), 2),
        (rules_of(("[1, 50]", 1, "range"), ("(50, 60]", 2, "range"), ("^5[0-9]$", 3)), 3),
    ],
)
def test_a_rule_that_never_decides(rules, number):
    (warning,) = [text for text in check_rules(rules) if "never decides" in text]
    assert warning.startswith(f"Rule {number}, {rules.rules[number - 1].expression!r},")


def test_a_rule_that_matches_nothing():
    assert "matches no path." in check_rules(rules_of((r"a\Ab", 1)))[0]


def test_rules_that_meet():
    (warning,) = check_rules(rules_of(("2026-.*-01", 1), ("2026-11-.*", 2)))
    assert "'2026-11-01'" in warning and "its number is 1" in warning
    assert check_rules(rules_of(("2026-.*-01", 2), ("2026-11-.*", 2))) == ()


def test_many_that_meet_are_told_in_short():
    warnings = check_rules(rules_of(*((f"^a*b{{{count}}}", count) for count in range(8, 1, -1))))
    assert len(warnings) == 11 and warnings[-1] == "11 more pairs of rules match the same paths."


def test_partitions_show_what_meets():
    rules = rules_of(("eu", 1), ("2026-11", 2))
    assert check_rules(rules) == ()
    (meeting, hidden) = check_rules(rules, partitions=["us/2026-10", "eu/2026-11"])
    assert "'eu/2026-11'" in meeting
    assert hidden.startswith("Rule 2") and "decides for none" in hidden
    assert len(check_rules(rules, partitions=["us/2026-11", "eu/2026-11"])) == 1


@pytest.mark.parametrize(
    ("expression", "paths", "warned"),
    [
        ("dt: [1, 5]", ["eu/1", "us/2"], True),
        ("dt: [1, 5]", ["region=eu/dt=9"], False),
        ("dt: [1, 5]", ["9"], False),
        ("dt: [1, 5]", ["day=9"], True),
        ("[1, 5]", ["eu/1"], True),
        ("[1, 5]", ["day=9"], False),
        ("level 2: [1, 5]", ["9"], True),
        ("level 2: [1, 5]", ["9/9"], False),
        ("dt: [1, 5]", [], False),
    ],
)
def test_a_range_whose_value_no_partition_has(expression, paths, warned):
    warnings = check_rules(rules_of((expression, 1, "range")), partitions=paths)
    assert any("finds its value in none" in warning for warning in warnings) is warned


def test_word_edges_beside_other_scripts():
    rules = rules_of((r"\bab\b", 1))
    assert check_rules(rules, partitions=["ab"]) == ()
    assert "Java 19" in check_rules(rules, partitions=["ab", "é"])[0]


def test_a_comparison_that_is_too_large_claims_nothing():
    rules = rules_of((".*[ab].{12}x", 1), (".*[bc].{12}y", 2), ("[a-c].{12}[xy]", 3))
    assert not any("never" in warning for warning in check_rules(rules))


def _graphs(given_patterns):
    found = []
    for text in given_patterns:
        try:
            found.append(JavaPattern(text))
        except InvalidExpression:
            continue
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(pattern_texts, min_size=1, max_size=3), st.lists(texts, max_size=20))
def test_what_never_decides_is_never_the_first_in_any_text(given_patterns, given_texts):
    patterns = _graphs(given_patterns)
    found = deciding([pattern.graph for pattern in patterns], Effort(3_000))
    if found is None:
        return
    for index, text in found.items():
        assert [pattern.find(text) for pattern in patterns[: index + 1]] == [False] * index + [True]
    for text in given_texts:
        if set(text) & set("\n\r\x85"):
            continue
        first = next((at for at, pattern in enumerate(patterns) if pattern.find(text)), None)
        assert first is None or first in found


@settings(max_examples=100, deadline=None)
@given(pattern_texts, pattern_texts)
def test_a_common_text_holds_both(one, other):
    patterns = _graphs([one, other])
    if len(patterns) == 2:
        text = common_text(patterns[0].graph, patterns[1].graph, Effort(2_000))
        assert text is None or all(pattern.find(text) for pattern in patterns)
