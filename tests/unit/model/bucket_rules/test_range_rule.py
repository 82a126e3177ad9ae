import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.model.bucket_rules.java_pattern import JavaPattern
from lakewright.model.bucket_rules.range_rule import RangeRule
from lakewright.model.bucket_rules.runaway import runs_away
from lakewright.model.errors import InvalidExpression
from support.range_expressions import escaped, paths, ranges

EXAMPLES = [
    # expression, inside, outside
    ("[2026-11-01, 2026-12-01)", ["2026-11-01", "2026-11-30", "dt=2026-11-09"], ["2026-12-01"]),
    ("dt: [2026-11-01, 2026-12-01)", ["dt=2026-11-01", "x=1/dt=2026-11-02/h=3", "2026-11-03"], []),
    ("dt: [2026-11-01, 2026-12-01)", [], ["xdt=2026-11-01", "day=2026-11-01", "x/2026-11-01"]),
    ("[2026-01, 2026-03]", ["2026-01", "m=2026-03"], ["2026-04", "2026-01-05", "2025-12"]),
    ("[2026-11-01-05, 2026-11-02-00)", ["2026-11-01-23"], ["2026-11-01-04", "2026-11-02-00"]),
    ("[1, 100]", ["1", "n=100", "007", "n=99"], ["0", "101", "-1", "1a", "", "n=", "x/5", "1.5"]),
    ("n: (1, 100)", ["n=2", "n=99", "a/n=50/b"], ["n=1", "n=100", "m=50"]),
    (
        "(-inf, 5)",
        ["-99999999999999999999", "4", "-0", "x=-3"],
        ["5", "50", "99999999999999999999"],
    ),
    ("[5, inf)", ["5", "50", "0006", "99999999999999999999"], ["4", "-5", "0"]),
    ("[-10, -3]", ["-10", "-3", "-07", "x=-5"], ["-2", "-11", "5", "3"]),
    ("[-5, 5]", ["-5", "0", "-0", "00", "5"], ["-6", "6"]),
    ("[a, n)", ["a", "b", "mzz", "c=de"], ["A", "n", "nz", "", "c="]),
    ("level 2: [0, 6]", ["x/3", "x=1/h=06", "a/b=2/c"], ["3", "h=3", "x/7", "x/y/3", "x/y=z/h=3"]),
    ('[ "a:b" , "a:d" )', ["a%3Ac", "a:b", "a:czz", "t=a%3Ab"], ["a%3ad", "a%3Ad", "a%41"]),
    ('["5", "6"]', ["5", "50", "6", "5%2Fx"], ["60", "05", "4"]),
    ('["a""", "b"]', ['a"', "a%22", "b"], ["a", "a!"]),
    ("[A, z)", ["Region", "__a"], ["__HIVE_DEFAULT_PARTITION__", "r=__HIVE_DEFAULT_PARTITION__"]),
    ("[20261101, 20261130]", ["20261105", "ds=20261130"], ["20261201", "2026-11-05"]),
]


@pytest.mark.parametrize(("expression", "inside", "outside"), EXAMPLES)
def test_examples(expression, inside, outside):
    rule = RangeRule(expression)
    pattern = JavaPattern(rule.pattern())
    for path in inside:
        assert rule.matches(path), path
        assert pattern.find(path), path
    for path in outside:
        assert not rule.matches(path), path
        assert not pattern.find(path), path


@pytest.mark.parametrize(
    "expression",
    [
        *("", "5", "[1]", "[1, 2", "1, 2", "[1; 2]", "[1, 2, 3]", "[, 2]", "(-inf, inf)", "[5, 4]"),
        *("(5, 6)", "[5, 5)", "[b, a]", "(a, a]", "[2026-11-31, 2026-12-01)", "[2026-13, 2027-01]"),
        *("[2026-11, 2026-11-30]", "[2026-11-01-24, inf)", "level 0: [1, 2]", "a/b: [1, 2]"),
        *("a=b: [1, 2]", "[a b, c]", "[inf, 5]x", f"[a, {'b' * 101}]", '["a, b]', "[9, -9]"),
    ],
)
def test_what_is_no_interval_is_refused(expression):
    with pytest.raises(InvalidExpression) as caught:
        RangeRule(expression)
    assert repr(expression) in caught.value.message
    assert "such as" in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(ranges(), st.data())
def test_a_range_is_its_pattern(made, data):
    expression, values = made
    try:
        rule = RangeRule(expression)
    except InvalidExpression as error:
        assert "lies in it" in error.message  # ends that meet, and leave each other out
        return
    text = rule.pattern()
    assert "," not in text and ";" not in text
    pattern = JavaPattern(text)
    for path in data.draw(st.lists(paths(values), min_size=1, max_size=12)):
        assert pattern.find(path) is rule.matches(path), path


@settings(max_examples=60, deadline=None)
@given(ranges())
def test_a_range_does_not_run_away(made):
    try:
        rule = RangeRule(made[0])
    except InvalidExpression:
        return
    assert runs_away(rule.pattern()) is None


@given(st.integers(-300, 300), st.integers(0, 300), st.integers(-700, 700))
def test_numbers_are_compared_as_numbers(low, more, value):
    assert RangeRule(f"[{low}, {low + more}]").matches(str(value)) is (low <= value <= low + more)


@given(st.dates(), st.dates(), st.dates())
def test_dates_are_compared_as_dates(low, high, value):
    low, high = min(low, high), max(low, high)
    assert RangeRule(f"[{low}, {high}]").matches(f"dt={value}") is (low <= value <= high)


@given(
    st.text(max_size=5),
    st.text(min_size=1, max_size=5),
    st.text("ab\"#%'*/:=?[\\]^{\x7f\n", max_size=5),
)
def test_texts_are_compared_as_hudi_would_escape_them(one, other, value):
    low, high = sorted((one, other))
    quoted = [f'"{end.replace(chr(34), chr(34) * 2)}"' for end in (low, high)]
    rule = RangeRule(f"c: [{quoted[0]}, {quoted[1]}]")
    assert rule.matches(f"c={escaped(value)}") is (low <= value <= high)
