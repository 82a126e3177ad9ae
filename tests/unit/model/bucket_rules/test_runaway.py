import pytest
from hypothesis import given, settings

from lakewright.model.bucket_rules.java_pattern import JavaPattern
from lakewright.model.bucket_rules.pattern_text import write
from lakewright.model.bucket_rules.runaway import _LATER, _START, _ways_of, runs_away
from lakewright.model.errors import InvalidExpression
from support.java_patterns import pattern_texts

LOOPS = [
    *(r"^(a+)+$", "(a|a)*b", "(a|aa)+$", r"(\d+)*-x", "(a*)*b", "([a-z]+)*=", "(x+x+)+y"),
    *(r"(\d{2,4}-?)*z", "(?:a|b|ab)*c", "(?:.*,)*x", r"(\w+\s?)*$", "(?:a|[ab])*c", "(?:a*b?)*c"),
    *("^(([a-z])+.)+[A-Z]([a-z])+$", r"(?:\w|\d)+=", "(?i)(?:a|A)*b", "((a|b)*|c*)*d"),
]
HARMLESS = [
    *(r"\d{4}-(06-(01|17|18)|11-(01|10|11))", r"^dt=\d+$", "(a|b)*c", r"(?:\d{2}-?)*z", "2026"),
    *(".*foo.*bar$", "^.*/.*/.*/.*/.*$", "^[^/]*/[^/]*/[^/]*$", r"(?:\d+-)*x", "(?:a?){40}b"),
    *("(?:[a-z]+=[a-z0-9]+/)*x", "(?:a|b){1,200}$", "(?i)dt=(?:mon|tue|wed)+$", ".{1,1000}x", ""),
    *("(?:ab|cd|ae)*x", r"^(?:[^/]+/)*dt=2026-1[12]", r"(\w+-)*\w+$", r"(?:^a|b)*$"),
    # these can read a text in many ways, and are found at the first of them
    *("(a*)*", "(a|a)*", "(a|aa)+", "(?:.*)*", ".*" * 20, "(?:a|a)*b?"),
]


@pytest.mark.parametrize("pattern", LOOPS)
def test_a_loop_with_two_ways_around_runs_away(pattern):
    why = runs_away(pattern)
    assert why is not None and "in two ways" in why


@pytest.mark.parametrize(
    "pattern",
    [
        *("a?" * 30 + "a" * 30, "(.*a){12}x", ".*" * 8 + "x", "(?:a|a){40}b"),
        *("((a{1,9}){1,9}){1,9}b", r"x?(?:(?:(?:b){0,8}){0,8}[^b]){0,8}c\z"),
    ],
)
def test_what_grows_without_such_a_loop_runs_away_too(pattern):
    why = runs_away(pattern)
    assert why is not None and "on a path such as" in why


@pytest.mark.parametrize("pattern", HARMLESS)
def test_harmless_patterns_are_not_accused(pattern):
    assert runs_away(pattern) is None


def test_the_work_is_counted_as_java_counts_it():
    """The numbers are of Java 17, which asked for so many characters of the text."""
    counted = [
        ("a+(?:a+){1,3}b*ba?a$", 40, 2_697_595),
        ("a+(?:a+){1,3}b*ba?a$", 60, 20_082_542),
        (r"x?(?:(?:a+|(?:a?){0,8})(?:a[ab]|ba)){1,3}c\z", 40, 4_044_953),
        (r"x?(?:(?:a+|(?:a?){0,8})(?:a[ab]|ba)){1,3}c\z", 100, 68_081_118),
    ]
    for pattern, length, asked in counted:
        assert _ways(JavaPattern(pattern), "a" * length + "!") == asked


def test_a_long_list_of_words_is_harmless():
    assert runs_away(r"\A(?:" + "|".join(f"p{i}" for i in range(1500)) + r")\z") is None


@pytest.mark.parametrize("pattern", LOOPS)
def test_the_example_doubles_the_ways(pattern):
    """The words of a verdict are true: the example can be read in two ways, and again."""
    word = runs_away(pattern).split("'")[1]
    ways = [_ways(JavaPattern(pattern), word * count) for count in (2, 4, 8)]
    assert ways[1] >= 2 * ways[0] and ways[2] >= 4 * ways[1]


def _ways(pattern, text):
    """Count the ways in which a backtracker can read a text, from any place to any place."""
    ways = _ways_of(pattern.graph)
    counts = dict(ways.next[_START])
    total = 0
    for char in text:
        after = dict(ways.next[_LATER])
        for state, many in counts.items():
            if any(low <= ord(char) <= high for low, high in ways.chars[state]):
                for target, times in ways.next[state].items():
                    after[target] = after.get(target, 0) + many * times
        counts = after
        total += sum(counts.values())
    return total


@settings(max_examples=200, deadline=None)
@given(pattern_texts)
def test_writing_a_pattern_without_commas_lets_nothing_run_away(text):
    try:
        pattern = JavaPattern(text)
    except InvalidExpression:
        return
    if runs_away(text) is None:
        assert runs_away(write(pattern.tree)) is None
