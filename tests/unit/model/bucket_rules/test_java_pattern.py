"""Java patterns: the same answers as Java, recorded by tests/golden/make_java_finds.py."""

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.model.bucket_rules import automaton
from lakewright.model.bucket_rules.automaton import Finder
from lakewright.model.bucket_rules.java_pattern import JavaPattern
from lakewright.model.bucket_rules.pattern_text import divides, write
from lakewright.model.errors import InvalidExpression
from support.java_patterns import pattern_texts, texts

RECORDED = json.loads(Path(__file__).with_name("java_finds.json").read_text(encoding="ascii"))

#: Java compiles these; we refuse them by name, with something to write instead.
REFUSED = {
    "(?=a)": "look-ahead",
    "(?!a)": "look-ahead",
    "(?<=a)b": "look-behind",
    "(?<!a)": "look-behind",
    "(?>a)": "atomic group",
    "a*+": "possessive",
    "a{2}+": "possessive",
    r"(a)\1": "back reference",
    r"(?<n>a)\k<n>": "back reference",
    r"\p{L}": r"\p{L}",
    r"\pL": r"\p{L}",
    r"\p{IsAlphabetic}": "IsAlphabetic",
    "(?x) a": "flag 'x'",
    "(?u)é": "flag 'u'",
    "(?U)a": "flag 'U'",
    r"\R": r"\R",
    r"\B": r"\B",
    r"\X": r"\X",
    r"\G": r"\G",
    "[^a[b]]": "differs between releases",
    "[^a&&[b]]": "differs between releases",
    "[a-c&&b]": "&&",
    "[]a]": "empty",
    r"[\d-z]": "begins a range",
    r"(?i)\p{Upper}": "differs between releases",
    "a{2}{2}": "quantifier",
    "^*": "anchor",
    r"(?:\b|a){2}": "anchor",
    "[\u4e00-\uffff]": "beyond U+FFFF",
    r"\uD83D": "beyond U+FFFF",
    "[^😀]": "beyond U+FFFF",
    "(?:a{1000}){1000}": "20000",
    "(" * 200 + ")" * 200: "nested",
}


def test_every_recorded_answer_of_java():
    asked = 0
    for pattern, found in RECORDED.items():
        try:
            ours = JavaPattern(pattern)
        except InvalidExpression:
            continue
        assert found is not None, f"Java does not compile {pattern!r}"
        for wish, in_texts in zip((True, False), found, strict=True):
            for text in in_texts:
                assert ours.find(text) is wish, (pattern, text)
                asked += 1
    assert asked > 9_000


def test_what_is_refused_of_the_recorded_is_known():
    refused = []
    for pattern, found in RECORDED.items():
        try:
            JavaPattern(pattern)
        except InvalidExpression as error:
            assert error.next_step
            if found is not None:
                refused.append(pattern)
    assert len(refused) < 45


@pytest.mark.parametrize(("pattern", "named"), REFUSED.items(), ids=range(len(REFUSED)))
def test_constructs_that_we_cannot_follow_are_refused_by_name(pattern, named):
    with pytest.raises(InvalidExpression) as caught:
        JavaPattern(pattern)
    assert named in caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "[a", "a{", "a{1", "a{,2}", "a{3,2}", "*a", "a**", "\\", r"\y", r"\x1", r"\p{"),
        *(
            r"\x{110000}",
            r"\u12",
            r"\0",
            r"\08",
            "[b-a]",
            "(?i",
            "(?<n",
            "(?<1>a)",
            "(?<n>a)(?<n>b)",
        ),
    ],
)
def test_what_java_does_not_compile_is_refused(pattern):
    with pytest.raises(InvalidExpression):
        JavaPattern(pattern)


def test_the_time_is_linear_in_the_text():
    # Java would need longer than the universe is old.
    for pattern in ("(a*)*b", "(a|aa)+$", "(.*a){12}x", "(?:a?){50}a{50}b"):
        assert not JavaPattern(pattern).find("a" * 20_000 + "c")


def test_a_pattern_pickles():
    pattern = pickle.loads(pickle.dumps(JavaPattern(r"^\d+$")))
    assert pattern.find("12") and not pattern.find("x")
    assert repr(pattern) == r"JavaPattern('^\\d+$')"


def _patterns(given_texts):
    found = []
    for text in given_texts:
        try:
            found.append(JavaPattern(text))
        except InvalidExpression:
            continue
    return found


@settings(max_examples=300, deadline=None)
@given(st.lists(pattern_texts, max_size=5), st.lists(texts, max_size=8))
def test_many_patterns_at_once_find_what_each_finds_alone(given_patterns, given_texts):
    patterns = _patterns(given_patterns)
    finder = Finder([pattern.graph for pattern in patterns])
    for text in given_texts:
        alone = [index for index, pattern in enumerate(patterns) if pattern.find(text)]
        assert finder.first_in(text) == (alone[0] if alone else -1)


@settings(max_examples=100, deadline=None)
@given(pattern_texts, st.lists(texts, min_size=1, max_size=8))
def test_forgetting_changes_no_answer(given_pattern, given_texts):
    for pattern in _patterns([given_pattern]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(automaton, "MOST_STEPS", 3)
            forgetful = Finder([pattern.graph])
            for text in given_texts:
                assert (forgetful.first_in(text) == 0) is pattern.find(text)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(automaton, "MOST_STEPS", 100)
    finder = Finder([JavaPattern("a.{6}b").graph])
    for number in range(2_000):
        finder.first_in(f"{number:016b}".replace("0", "a").replace("1", "b"))
        assert len(finder._known) <= 102


@settings(max_examples=400, deadline=None)
@given(pattern_texts, st.lists(texts, max_size=8))
def test_a_pattern_without_commas_finds_the_same(given_pattern, given_texts):
    for pattern in _patterns([given_pattern]):
        text = write(pattern.tree)
        assert not divides(text)
        again = JavaPattern(text)
        for one in given_texts:
            assert again.find(one) is pattern.find(one)


@pytest.mark.parametrize("least", [0, 1, 2, 5])
@pytest.mark.parametrize("more", [0, 1, 2, 3, 4, 6, 7, 9, 25])
def test_bounded_repetitions_without_commas(least, more):
    pattern = JavaPattern(write(JavaPattern(f"^(?:ab){{{least},{least + more}}}$").tree))
    for count in range(40):
        assert pattern.find("ab" * count) is (least <= count <= least + more)


def test_a_large_repetition_stays_short():
    assert len(write(JavaPattern("a{3,4000}").tree)) < 1_000
