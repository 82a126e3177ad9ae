"""Values of partition paths: exact whatever characters they hold, and in the order of types."""

import datetime as dt
from decimal import Decimal as Number

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION, partition_path
from lakewright.lifecycle.ttl.levels import Level, Levels
from lakewright.model.errors import Invalid
from lakewright.model.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    Field,
    Struct,
    Timestamp,
    Unit,
)

NULL = DEFAULT_PARTITION


def config(*fields: str, hive: bool = True, encode: bool = False, **more: str) -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.table.partition.fields": ",".join(fields),
            "hoodie.datasource.write.hive_style_partitioning": str(hive).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": str(encode).lower(),
            "hoodie.table.timeline.timezone": "UTC",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
    )


def struct(**kinds: DataType) -> Struct:
    return Struct(tuple(Field(name, kind) for name, kind in kinds.items()))


def levels(table: TableConfig, **kinds: DataType) -> Levels:
    return Levels.of(table, struct(**kinds))


# What a file system takes: no NUL, no ":" (unescaped), no leading dot, short enough.
TEXTS = st.text(min_size=1, max_size=20).filter(lambda text: text.strip(".") and text[0] != ".")


@given(first=TEXTS, second=TEXTS, other=TEXTS, hive=st.booleans())
def test_encoded_values_are_told_from_each_other(
    first: str, second: str, other: str, hive: bool
) -> None:
    table = config("a", "b", hive=hive, encode=True)
    found = levels(table, a=STRING, b=STRING)
    path = partition_path({"a": first, "b": second}, table)
    assert found.texts(path) == (first, second)
    spec = found.spec_of(path)
    assert spec is not None and found.parse(str(spec)) == spec
    if other != first:
        assert found.texts(partition_path({"a": other, "b": second}, table)) != (first, second)


@pytest.mark.parametrize("value", ["a,b", "a=b", "50%", "50%25", "ü😀", "a b", "*", "b=c", "%2F"])
@pytest.mark.parametrize("hive", [True, False])
def test_values_that_are_not_encoded_stand_for_themselves(value: str, hive: bool) -> None:
    table = config("a", "b", hive=hive)
    found = levels(table, a=STRING, b=STRING)
    assert found.texts(partition_path({"a": value, "b": "x"}, table)) == (value, "x")


def test_a_slash_of_a_value_is_kept_where_the_levels_show_it() -> None:
    hive = levels(config("a", "b"), a=STRING, b=STRING)
    assert hive.texts("a=x/y/b=z") == ("x/y", "z")
    assert hive.texts("a=x/b=y/z") == ("x", "y/z")
    one = levels(config("a", hive=False), a=STRING)
    assert one.texts("x/y") == ("x/y",)
    mixed = levels(config("a", "b", hive=False), a=LONG, b=STRING)
    assert mixed.texts("1/x/y") == ("1", "x/y")
    unclear = levels(config("a", "b", hive=False), a=STRING, b=STRING)
    assert unclear.texts("x/y/z") is None
    assert levels(config("a", "b"), a=LONG, b=LONG).texts("a=1/2/b=3") is None


@pytest.mark.parametrize("path", ["", "x", "a=1", "b=1/a=2", "a=1/c=2", "a/b", "aa=1/b=2"])
def test_a_path_with_other_levels_has_none(path: str) -> None:
    assert levels(config("a", "b"), a=LONG, b=LONG).texts(path) is None
    assert levels(config("a", "b"), a=LONG, b=LONG).spec_of(path) is None


def test_formatted_times_take_several_segments() -> None:
    settings = {
        "hoodie__table__keygenerator__type": "TIMESTAMP",
        "hoodie__keygen__timebased__output__dateformat": "yyyy/MM/dd",
    }
    plain = levels(config("t:TIMESTAMP", "b:SIMPLE", hive=False, **settings), t=LONG, b=STRING)
    assert plain.texts("2026/11/01/x") == ("2026/11/01", "x")
    assert plain.texts(f"{NULL}/x") == (NULL, "x")
    assert plain.texts("2026/11/x") is None
    hive = levels(config("t:TIMESTAMP", "b:SIMPLE", **settings), t=LONG, b=STRING)
    assert hive.texts("t=2026/11/01/b=x") == ("2026/11/01", "x")
    assert str(hive.parse("t=2026/11/01/b=x/")) == "t=2026/11/01/b=x/"
    first, last = (hive.levels[0].key(text) for text in ("2026/02/01", "2026/11/01"))
    assert first < last


def test_dates_with_slashes() -> None:
    flag = {"hoodie__datasource__write__slash__separated__date__partitioning": "true"}
    found = levels(config("a", "d", hive=False, **flag), a=LONG, d=DATE)
    assert found.texts("7/2026/11/01") == ("7", "2026/11/01")
    assert found.texts(f"7/{NULL}") == ("7", NULL)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (INT, [NULL, "-10", "-9", "2", "9", "10", "100", "abc", "x"]),
        (LONG, [NULL, "-9223372036854775808", "9", "9223372036854775807", "9223372036854775808"]),
        (DOUBLE, [NULL, "-Infinity", "-1.5", "1.0E-7", "2.0", "1.0E10", "Infinity", "NaN", "x"]),
        (Decimal(10, 2), [NULL, "-1.50", "2.00", "10.00", "ten"]),
        (DATE, [NULL, "1999-12-31", "2026-02-01", "2026-11-01", "someday"]),
        (BOOLEAN, [NULL, "false", "true", "maybe"]),
        (STRING, [NULL, "", "10", "9", "Z", "a", "ü", "😀"]),
        (
            Timestamp(Unit.MICROS),
            [NULL, "-1000000", "1709212455123456", "2024-02-29 13:14:16.5", "x"],
        ),
    ],
)
def test_values_stand_in_the_order_of_their_type(kind: DataType, texts: list[str]) -> None:
    level = Level("c", kind)
    turned = list(reversed(texts))
    assert sorted(turned, key=level.key) == texts
    assert len({level.key(text) for text in texts}) == len(texts)


def test_equal_values_are_equal_however_they_are_written() -> None:
    assert Level("c", INT).key("07") == Level("c", INT).key("7") == (1, 7)
    assert Level("c", Decimal(5, 2)).key("1.5") == (1, Number("1.50"))
    assert Level("c", STRING).key("07") != Level("c", STRING).key("7")
    assert Level("c", None).key("07") == (1, "07")
    assert Level("c", DATE).key("2026-11-01") == (1, dt.date(2026, 11, 1))


def test_a_slash_in_a_spec_is_taken_for_a_level_where_values_hold_none() -> None:
    found = levels(config("user", "ts"), user=LONG, ts=STRING)
    with pytest.raises(Invalid, match="ts= is expected at 'tz=5'"):
        found.parse("user=1/tz=5/")
    encoded = levels(config("user", "ts", encode=True), user=STRING, ts=STRING)
    with pytest.raises(Invalid, match="ts= is expected"):
        encoded.parse("user=a/b/")
    assert encoded.parse("user=a%2Fb/").levels[0].text == "a%2Fb"


@pytest.mark.parametrize(
    ("found", "path"),
    [
        (levels(config("a", "b"), a=STRING, b=STRING), "a=x/b=y/b=z"),
        (levels(config("a", "b", hive=False), a=STRING, b=STRING), "x/y/z"),
        (levels(config("a", "b", "c"), a=STRING, b=STRING, c=INT), "a=x/b=y/b=z/c=1"),
    ],
)
def test_a_path_that_can_be_cut_in_two_ways_is_not_cut(found: Levels, path: str) -> None:
    assert found.cut(path) is None and found.is_unsure(path)
    assert found.order(path) == () and found.spec_of(path) is None


def test_a_path_is_cut_where_types_leave_one_way() -> None:
    found = levels(config("a", "b"), a=STRING, b=INT)
    assert found.cut("a=x/b=y/b=1") == ["x/b=y", "1"] and not found.is_unsure("a=x/b=y/b=1")
    first = levels(config("a", "b"), a=INT, b=STRING)
    assert first.cut("a=1/b=x/b=y") == ["1", "x/b=y"]
    assert not first.is_unsure("a=1/2/b=x")


#: Texts in which a path is easily cut at the wrong place.
CUTS = st.lists(st.sampled_from(["x", "a=", "b=", "/b=", "/", "/a=x/b="]), min_size=1, max_size=6)


@given(first=CUTS.map("".join), second=CUTS.map("".join), hive=st.booleans())
def test_what_is_cut_at_all_is_cut_rightly(first: str, second: str, hive: bool) -> None:
    table = config("a", "b", hive=hive)
    try:
        path = partition_path({"a": first, "b": second}, table)
    except Invalid:
        return
    assert levels(table, a=STRING, b=STRING).texts(path) in ((first, second), None)
