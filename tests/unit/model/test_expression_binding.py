"""Names and types are resolved once, and errors say what would have been right."""

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal as D
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.model.errors import InvalidExpression, UnknownColumn
from lakewright.model.expression.analyse import (
    conjuncts,
    equal_values,
    negated,
    partition_only,
    references,
)
from lakewright.model.expression.bind import bind
from lakewright.model.expression.bound import (
    BoundCast,
    BoundComparison,
    BoundIn,
    BoundLiteral,
    BoundReference,
    BoundTextMatch,
)
from lakewright.model.expression.build import col, function, lit, when
from lakewright.model.expression.nodes import Expression, TextTest
from lakewright.model.expression.parse import parse_expression
from lakewright.model.expression.render import to_sql
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    META_FIELDS,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    Fixed,
    List,
    Struct,
    Time,
    Timestamp,
    Unit,
)
from support.expression_strategies import SCHEMA, conditions, rows
from support.sql_semantics import matches, value_of

TABLE = Struct(
    (
        *META_FIELDS,
        Field("id", LONG, nullable=False),
        Field("Name", STRING),
        Field("i", INT),
        Field("f", FLOAT),
        Field("d", DOUBLE),
        Field("flag", BOOLEAN),
        Field("dt", DATE),
        Field("ts", TIMESTAMP),
        Field("ms", Timestamp(Unit.MILLIS)),
        Field("wall", Timestamp(Unit.MICROS, utc=False)),
        Field("clock", Time(Unit.MILLIS)),
        Field("raw", BINARY),
        Field("code", Fixed(2)),
        Field("amount", Decimal(10, 2)),
        Field("tags", List(STRING)),
        Field("a.b", INT),
        Field("inner", Struct((Field("x", INT, nullable=False), Field("X", INT)))),
    )
)


def bound_by(condition: Any) -> Any:
    return bind(condition, TABLE)


def test_names_are_found_exactly_or_in_any_case() -> None:
    assert references(bound_by(col("name") == "a")) == {("Name",)}
    assert references(bound_by(col("inner.x") == 1)) == {("inner", "x")}
    assert references(bound_by(col("inner")["X"] == 1)) == {("inner", "X")}
    assert references(bound_by(col("a.b") == 1)) == {("a.b",)}
    assert references(bound_by(col("_hoodie_commit_time") > "2026")) == {("_hoodie_commit_time",)}


def test_a_member_of_a_nullable_struct_is_nullable() -> None:
    assert bound_by(col("inner.x").is_null()).child.nullable
    assert not bound_by(col("id").is_null()).child.nullable


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownColumn, match=r"no column 'nmae'.*Known: .*id, Name, i") as caught:
        bound_by(col("nmae") == 1)
    assert caught.value.facts["column"] == "nmae"
    with pytest.raises(UnknownColumn, match=r"no column 'y' in inner.*Known: x, X"):
        bound_by(col("inner.y") == 1)
    with pytest.raises(InvalidExpression, match="has no member 'x'"):
        bound_by(col("id.x") == 1)


def test_a_name_that_fits_two_columns_is_refused() -> None:
    schema = Struct((Field("abc", INT), Field("ABC", INT)))
    assert references(bind(col("ABC") == 1, schema)) == {("ABC",)}
    with pytest.raises(UnknownColumn, match=r"only in case.*abc, ABC"):
        bind(col("Abc") == 1, schema)


EAST = timezone(timedelta(hours=2))

FITS = [
    ("id", "5", 5, None),
    ("id", 5.0, 5, None),
    ("id", D("5.0"), 5, None),
    ("id", 2.5, 2.5, DOUBLE),
    ("id", D("2.5"), D("2.5"), Decimal(20, 1)),
    ("id", math.inf, math.inf, DOUBLE),
    ("id", 2**70, D(2**70), Decimal(22, 0)),
    ("i", 2**40, 2**40, LONG),
    ("f", 1.5, 1.5, None),
    ("f", 0.1, 0.1, DOUBLE),
    ("f", "0.1", 0.10000000149011612, None),
    ("d", 1, 1.0, None),
    ("d", D("0.1"), 0.1, None),
    ("d", "nan", math.nan, None),
    ("amount", 5, D("5.00"), None),
    ("amount", 0.1, D("0.10"), None),
    ("amount", D("1.005"), D("1.005"), Decimal(11, 3)),
    ("amount", "1.005", D("1.01"), None),
    ("amount", 1e300, 1e300, DOUBLE),
    ("Name", "x", "x", None),
    ("Name", 5, 5, LONG),
    ("Name", D("1.5"), 1.5, DOUBLE),
    ("Name", date(2026, 11, 1), date(2026, 11, 1), DATE),
    ("dt", "2026-11-01", date(2026, 11, 1), None),
    ("dt", "2026-11-01 12:00:00", date(2026, 11, 1), None),
    ("dt", datetime(2026, 11, 1), date(2026, 11, 1), None),
    ("dt", datetime(2026, 11, 1, 2, tzinfo=EAST), date(2026, 11, 1), None),
    ("dt", datetime(2026, 11, 1, 12), datetime(2026, 11, 1, 12, tzinfo=UTC), TIMESTAMP),
    ("ts", "2026-11-01", datetime(2026, 11, 1, tzinfo=UTC), None),
    (
        "ts",
        "2026-11-01T05:06:07.123456789+02:00",
        datetime(2026, 11, 1, 3, 6, 7, 123456, UTC),
        None,
    ),
    ("ts", date(2026, 11, 1), datetime(2026, 11, 1, tzinfo=UTC), None),
    ("ts", datetime(2026, 11, 1), datetime(2026, 11, 1, tzinfo=UTC), None),
    ("ms", datetime(2026, 11, 1, 0, 0, 0, 1, UTC), datetime(2026, 11, 1, 0, 0, 0, 1, UTC), None),
    ("wall", datetime(2026, 11, 1, 2, tzinfo=EAST), datetime(2026, 11, 1), None),
    ("wall", "2026-11-01 05:06", datetime(2026, 11, 1, 5, 6), None),
    ("clock", "05:06:07", time(5, 6, 7), None),
    ("flag", "yes", True, None),
    ("raw", "é", "é".encode(), None),
    ("code", b"ab", b"ab", None),
]


@pytest.mark.parametrize(("name", "given_value", "value", "widened"), FITS)
def test_a_constant_takes_the_type_of_the_column(
    name: str, given_value: Any, value: Any, widened: Any
) -> None:
    for condition, swapped in ((col(name) <= given_value, 0), (lit(given_value) >= col(name), 1)):
        bound = bound_by(condition)
        column, constant = (bound.left, bound.right)[:: -1 if swapped else 1]
        assert isinstance(constant, BoundLiteral)
        assert constant.value == value or (math.isnan(value) and math.isnan(constant.value))
        assert type(constant.value) is type(value)
        if widened is None:
            assert column == BoundReference((name,), TABLE.field(name).type, column.nullable)
        else:
            assert isinstance(column, BoundCast) and column.type == widened == constant.type


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "five"),
        ("id", "2.5"),
        ("id", True),
        ("id", date(2026, 11, 1)),
        ("i", "99999999999"),
        ("dt", "yesterday"),
        ("dt", "2026-02-30"),
        ("dt", 20261101),
        ("ts", "soon"),
        ("ts", 5),
        ("flag", 1),
        ("flag", "maybe"),
        ("clock", "25:00:00"),
        ("raw", 5),
        ("amount", "much"),
        ("d", b"1"),
        ("wall", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))),
    ],
)
def test_a_constant_that_cannot_fit_names_column_type_and_value(name: str, value: Any) -> None:
    with pytest.raises(InvalidExpression) as caught:
        bound_by(col(name) == value)
    message = str(caught.value)
    assert name in message and str(TABLE.field(name).type) in message and repr(value) in message


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        (col("id"), "a filter takes a condition, not column id of type long"),
        (col("id") & col("flag"), "AND takes a condition"),
        (col("tags") == "x", "cannot be compared"),
        (col("inner") == 1, "cannot be compared"),
        (col("dt") == col("id"), "cannot be compared with column id of type long"),
        (col("id").like("a%"), "LIKE takes text"),
        (col("Name").like("a\\b"), "escapes something other"),
        (col("Name").like("a\\"), "escapes something other"),
        (col("id").startswith("a"), "startswith takes text"),
        (col("Name") + 1 > 2, r"\+ takes numbers"),
        (col("dt").cast("int") == 1, "cannot be converted to int"),
        (col("tags").cast("string") == "x", "cannot be converted"),
        (function("year", col("id")) == 1, "year takes a date"),
        (function("round", col("d"), -1) == 1, "digits from 0"),
        (function("round", col("d"), col("id")) == 1, "digits from 0"),
        (function("date_trunc", "era", col("ts")) == 1, "does not know the unit"),
        (function("substring", col("Name"), "a") == "x", "whole numbers"),
        (function("coalesce", col("id"), col("Name")) == 1, "coalesce mixes"),
        (when((col("flag"), 1), otherwise="x") == 1, "CASE mixes"),
        (when((col("id"), 1)) == 1, "CASE WHEN takes a condition"),
        (col("amount") == D(10) ** 37, "38 digits"),
    ],
)
def test_what_does_not_fit_is_refused(condition: Any, told: str) -> None:
    with pytest.raises(InvalidExpression, match=told):
        bound_by(condition)


def test_unknown_functions_and_wrong_counts_are_refused() -> None:
    with pytest.raises(InvalidExpression, match=r"unknown function sin.*Known: abs"):
        function("sin", col("d"))
    with pytest.raises(InvalidExpression, match="lower takes 1 argument"):
        bound_by(function("lower", "a", "b") == "a")


def test_a_list_with_values_that_do_not_fit_meets_them_in_a_wider_type() -> None:
    bound = bound_by(col("id").is_in([1, 2.0, 2.5, None]))
    assert {type(part) for part in (bound.left, bound.right)} == {BoundIn}
    assert bound.left.values == (1, 2) and bound.right.values == (2.5,)
    assert bound.left.or_null and bound.right.or_null
    assert bound_by(col("id").is_in([])) == BoundLiteral(False, BOOLEAN)


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [("abc%", TextTest.PREFIX), ("%abc", TextTest.SUFFIX), ("%a!%c%", TextTest.INFIX)],
)
def test_plain_patterns_become_plain_tests(pattern: str, kind: TextTest) -> None:
    bound = bound_by(col("Name").like(pattern, "!"))
    assert isinstance(bound, BoundTextMatch) and bound.test is kind
    assert isinstance(bound_by(col("Name").like("abc")), BoundComparison)


def test_conjuncts_are_the_parts_that_must_all_hold() -> None:
    bound = bound_by(
        (col("id") > 1) & ((col("i") > 2) & (col("d") > 3) | col("flag")) & col("flag")
    )
    assert [to_sql(part) for part in conjuncts(bound)] == [
        "id > 1",
        "(i > 2 AND d > 3.0E0) OR flag",
        "flag",
    ]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("id = 5", {5}),
        ("5 = id AND Name = 'a'", {5}),
        ("id IN (1, 2) AND id IN (2, 3)", {2}),
        ("id = 1 OR id = 2", {1, 2}),
        ("id = 1 OR Name = 'a'", None),
        ("id <=> 7", {7}),
        ("id <=> NULL", None),
        ("id = NULL", set()),
        ("id = 1 AND id = 2", set()),
        ("id > 1", None),
        ("NOT id = 1", None),
        ("id = 1 AND FALSE", set()),
        ("id = 1 OR FALSE", {1}),
    ],
)
def test_the_values_a_column_must_have(sql: str, values: set[int] | None) -> None:
    found = equal_values(bound_by(parse_expression(sql)), ("id",))
    assert found == (None if values is None else frozenset(values))


@pytest.mark.parametrize("value", [0.0, math.nan])
def test_numbers_with_several_bit_patterns_are_no_keys(value: float) -> None:
    assert equal_values(bound_by(col("d") == value), ("d",)) is None
    assert equal_values(bound_by(col("d") == 1.5), ("d",)) == {1.5}


@settings(max_examples=100)
@given(condition=conditions(), row=rows)
def test_matching_rows_have_one_of_the_equal_values(condition: Expression, row: Any) -> None:
    bound = bind(condition, SCHEMA)
    for name in ("big", "name", "money"):
        values = equal_values(bound, (name,))
        if values is not None and matches(bound, row):
            assert row[name] in values, to_sql(condition)


@pytest.mark.parametrize(
    ("sql", "weaker"),
    [
        ("dt = '2026-11-01' AND id = 5", "dt = DATE '2026-11-01'"),
        ("id = 5", None),
        ("dt = '2026-11-01' OR id = 5", None),
        (
            "(dt = '2026-11-01' AND id = 5) OR dt = '2026-11-02'",
            "dt = DATE '2026-11-01' OR dt = DATE '2026-11-02'",
        ),
        ("NOT (dt = '2026-11-01' OR id = 5)", "dt != DATE '2026-11-01'"),
        ("NOT (dt = '2026-11-01' AND id = 5)", None),
        ("NOT (dt IN ('2026-11-01'))", "dt NOT IN (DATE '2026-11-01')"),
    ],
)
def test_what_a_condition_says_of_partition_columns_alone(sql: str, weaker: str | None) -> None:
    found = partition_only(bound_by(parse_expression(sql)), ["dt"])
    assert (None if found is None else to_sql(found)) == weaker


@settings(max_examples=100)
@given(condition=conditions(), row=rows)
def test_the_weaker_condition_holds_for_every_matching_row(condition: Expression, row: Any) -> None:
    bound = bind(condition, SCHEMA)
    fields = {"day", "name", "flag", "inner"}
    weaker = partition_only(bound, fields)
    if weaker is not None:
        assert {path[0] for path in references(weaker)} <= fields
        assert matches(weaker, row) or not matches(bound, row), to_sql(condition)


@settings(max_examples=100)
@given(condition=conditions(), row=rows)
def test_moving_not_inwards_changes_nothing(condition: Expression, row: Any) -> None:
    bound = bind(condition, SCHEMA)
    value = value_of(bound, row)
    assert value_of(negated(bound), row) == (None if value is None else not value)


@given(condition=conditions())
def test_binding_is_stable(condition: Expression) -> None:
    """A bound condition is a value: bound twice it is equal, and it can be a key."""
    one, other = bind(condition, SCHEMA), bind(condition, SCHEMA)
    assert one == other and hash(one) == hash(other)


@given(value=st.one_of(st.integers(-(2**62), 2**62), st.decimals(-999, 999, places=2)))
def test_references_of_both_forms_agree(value: Any) -> None:
    condition = (col("id") == value) & (col("inner.x") > col("i"))
    assert references(condition) == references(bound_by(condition))
