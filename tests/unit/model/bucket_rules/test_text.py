import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lakewright.model.bucket_rules.compiled import compile_rules, rule_of
from lakewright.model.bucket_rules.pins import pin_pattern, pinned_by
from lakewright.model.bucket_rules.rules import DEFAULT_BUCKETS, BucketRule, BucketRules
from lakewright.model.bucket_rules.text import (
    parse_rules,
    parse_shipped,
    rules_json,
    shipped_text,
)
from lakewright.model.errors import Invalid, InvalidExpression
from support.java_patterns import pattern_texts, texts
from support.range_expressions import paths, ranges

SEED = (
    r'{"expressions":[{"expression":"\\d{4}-(06-(01|17|18)|11-(01|10|11))","bucketNumber":256,'
    r'"rule":"regex"}],"defaultBucketNumber":10}'
)
SEED_RULES = BucketRules((BucketRule(r"\d{4}-(06-(01|17|18)|11-(01|10|11))", 256),), 10)


def test_the_seeds_json():
    assert parse_rules(SEED) == SEED_RULES
    assert parse_rules(json.loads(SEED)) == SEED_RULES
    assert json.loads(rules_json(SEED_RULES)) == json.loads(SEED)


def test_what_json_may_leave_out():
    assert parse_rules("{}") == BucketRules((), DEFAULT_BUCKETS)
    assert parse_rules('{"expressions": null}', 7) == BucketRules((), 7)
    assert parse_rules('{"defaultBucketNumber": 9}', 7) == BucketRules((), 9)
    rule = {"expression": "a", "bucketNumber": 2}
    assert parse_rules({"expressions": [rule]}) == BucketRules((BucketRule("a", 2),))
    ranged = {"expressions": [{**rule, "expression": "[1, 2]", "rule": " RANGE"}]}
    assert parse_rules(ranged).rules[0].kind == "range"


def test_upstreams_text():
    expected = BucketRules((BucketRule(r"\d{4}-(11-(24|27)|12-25)", 128), BucketRule("x", 3)), 8)
    assert parse_rules(r" \d{4}-(11-(24|27)|12-25) , 128 ; x,3; ".rstrip(), 8) == expected
    assert parse_rules("a,1").default == DEFAULT_BUCKETS
    assert parse_rules(r"a,1;\A,4") == parse_rules(r"a,1;\A,4", 4) == parse_rules("a,1", 4)
    assert parse_rules(r"a,1;\A,4", 5).rules[-1] == BucketRule(r"\A", 4)


def test_a_number():
    assert parse_rules(16) == parse_rules(" 16 ") == BucketRules((), 16)
    assert parse_rules(16, 3).default == 16


@pytest.mark.parametrize(
    "given_rules",
    [
        *(
            "",
            "  ",
            ";",
            "a",
            "a,b",
            "a,1;b",
            "a,1;;b,2",
            "a{1,2},3",
            "a,0",
            "a,-1",
            "0",
            "a,1.5",
            "{",
        ),
        *('{"expressions": [}', "[1]", '{"expressions": 5}', '{"expressions": "a,1"}', '{"x": 1}'),
        *('{"expressions": [5]}', '{"expressions": [{"expression": "a"}]}', "{" * 100_000),
        *('{"expressions": [{"expression": 5, "bucketNumber": 1}]}', '{"defaultBucketNumber": 0}'),
        '{"expressions": [{"expression": "a", "bucketNumber": 1, "rule": 5}]}',
        '{"expressions": [{"expression": "a", "bucketNumber": "1"}]}',
        '{"expressions": [{"expression": "a", "bucketNumber": 1, "buckets": 1}]}',
        '{"defaultBucketNumber": true}',
        *(0, -1, 10**9, True, 1.5, None, ["a"]),
    ],
)
def test_what_holds_no_rules_is_refused(given_rules):
    with pytest.raises(Invalid) as caught:
        parse_rules(given_rules)
    assert caught.value.next_step


def test_a_default_that_is_no_number_of_buckets_is_refused():
    with pytest.raises(Invalid):
        parse_rules("a,1", 0)


@given(
    st.lists(st.builds(BucketRule, st.text(), st.integers(1, 10**8 - 1), st.just("range"))),
    st.integers(1, 10**8 - 1),
)
def test_json_is_read_as_written(rules, default):
    given_rules = BucketRules(tuple(rules), default)
    assert parse_rules(rules_json(given_rules)) == given_rules


# What shipped Hudi reads


def test_the_text_of_rules_and_pins():
    text = shipped_text(SEED_RULES, {"dt=2026-11-01": 8, "eu/x": 8, "é": 4, "😀;": 4})
    assert text.split(";") == [
        r"\A(?:\xe9|\x{1f600}\x3b)\z,4",
        r"\A(?:dt=2026-11-01|eu\x2fx)\z,8",
        r"\d{4}-(06-(01|17|18)|11-(01|10|11)),256",
        r"\A,10",
    ]
    assert parse_shipped(text, 10) == (
        SEED_RULES,
        {"dt=2026-11-01": 8, "eu/x": 8, "é": 4, "😀;": 4},
    )


def test_the_default_is_a_rule_of_its_own():
    """Hudi keeps one default per text for all tables of a process."""
    assert shipped_text(BucketRules(default=4), {}) == r"\A,4"
    assert parse_shipped(r"\A,4", 4) == (BucketRules(default=4), {})
    assert parse_shipped(r"\A,4", 5) == (BucketRules((BucketRule(r"\A", 4),), 5), {})


@pytest.mark.parametrize(
    ("pattern", "shipped"),
    [
        ("a{2,3}", "a{2}a?"),
        ("a{2,}", "a{2}a*"),
        ("[,;]", r"[\x2c\x3b]"),
        ("a,b;c", r"a\x2cb\x3bc"),
        (r"\Q,\E", r"\x2c"),
        (" a ", r"\x20a\x20"),
        ("", "(?:)"),
        (r"\d{4}", r"\d{4}"),
        ("(?i)ab,", r"[Aa][Bb]\x2c"),
    ],
)
def test_patterns_without_commas(pattern, shipped):
    assert rule_of(BucketRule(pattern, 1)).pattern() == shipped
    assert shipped_text(BucketRules((BucketRule(pattern, 5),), 1), {}) == rf"{shipped},5;\A,1"


def test_a_kind_whose_pattern_would_be_split_is_refused(monkeypatch):
    class Splitting:
        def matches(self, partition):
            return True

        def pattern(self):
            return "a,b"

    monkeypatch.setattr(
        "lakewright.model.bucket_rules.compiled._KINDS", {"split": lambda text: Splitting()}
    )
    with pytest.raises(Invalid, match="split at its comma"):
        shipped_text(BucketRules((BucketRule("x", 1, "split"),), 1), {})


def test_a_pattern_that_grows_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("lakewright.model.bucket_rules.regex_rule.LONGEST", 20_000)
    words = "|".join(f"中文{number}" for number in range(300))
    rule = rule_of(BucketRule(f"(?:{words}){{1,11}},", 1))
    with pytest.raises(InvalidExpression, match="without its commas") as caught:
        rule.pattern()
    assert len(caught.value.message) < 400


def test_a_hashing_config_is_read_as_hudi_splits_it():
    assert parse_shipped(" a , 5 ;\tb,+6,;", 1)[0].rules == (BucketRule("a", 5), BucketRule("b", 6))
    assert parse_shipped("", 3) == (BucketRules(default=3), {})
    assert parse_shipped("(a+)+$,2", -1) == (BucketRules((BucketRule("(a+)+$", 2),), -1), {})
    for text in ("a", "a,b", ",", "a,1;;b,2", "a,1,2"):
        with pytest.raises(Invalid):
            parse_shipped(text, 1)


def test_pins_behind_a_rule_stay_in_their_place():
    """Hudi's procedure puts rules in front, and so before the pins."""
    rules, pins = parse_shipped(r"dt,5;\A(?:dt=1|x)\z,7;\A,2", 2)
    assert pins == {}
    assert [compile_rules(rules)(path) for path in ("dt=1", "x", "y")] == [5, 7, 2]


def test_a_path_pinned_twice_has_its_first_number():
    assert parse_shipped(r"\A(?:a|b)\z,2;\A(?:a)\z,3", 1)[1] == {"a": 2, "b": 2}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_pins_are_recognised(partitions):
    pattern = pin_pattern(partitions)
    assert pinned_by(pattern) == partitions
    assert "," not in pattern and ";" not in pattern
    assert all(rule_of(BucketRule(pattern, 1)).matches(path) for path in partitions)


@pytest.mark.parametrize(
    "pattern", [r"\A(?:a)", r"(?:a)\z", r"\A(?:a.)\z", r"\A(?:a*)\z", r"\A(a)\z", r"\A(?:\d)\z", ""]
)
def test_other_patterns_are_no_pins(pattern):
    assert pinned_by(pattern) is None


@st.composite
def rule_sets(draw):
    """Return rules, pins, and paths to try them on."""
    rules, tried = [], [draw(st.lists(texts, max_size=6))]
    for number in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            rules.append(BucketRule(draw(pattern_texts), number + 1))
        else:
            expression, values = draw(ranges())
            rules.append(BucketRule(expression, number + 1, "range"))
            tried.append(draw(st.lists(paths(values), max_size=4)))
    pins = draw(st.dictionaries(texts, st.integers(10, 13), max_size=4))
    return BucketRules(tuple(rules), 99), pins, [path for some in tried for path in some]


@settings(max_examples=150, deadline=None)
@given(rule_sets())
def test_what_hudi_reads_gives_every_partition_the_same_number(made):
    rules, pins, tried = made
    try:
        ours = compile_rules(rules)
    except InvalidExpression:
        assume(False)
    text = shipped_text(rules, pins)
    again, read_pins = parse_shipped(text, rules.default)
    theirs = compile_rules(again)
    as_hudi = compile_rules(_as_hudi_splits(text))
    for path in [*tried, *pins]:
        number = pins.get(path, ours(path))
        assert read_pins.get(path, theirs(path)) == number
        assert as_hudi(path) == number


def _as_hudi_splits(text):
    pairs = (rule.split(",") for rule in text.split(";"))
    return BucketRules(tuple(BucketRule(pattern, int(count)) for pattern, count in pairs), -1)
