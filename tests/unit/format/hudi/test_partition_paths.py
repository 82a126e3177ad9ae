"""Partition paths: Hive's escaping, the path of a row, the values of a path."""

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.partition_paths import (
    DEFAULT_PARTITION,
    escape_segment,
    leads_back,
    partition_path,
    partition_values,
    unescape_segment,
)
from lakewright.model import schema as s
from lakewright.model.errors import Invalid

UTC = dt.UTC


def table(fields: str, *, hive: bool = False, encode: bool = False, **more: str) -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": fields,
            "hoodie.datasource.write.hive_style_partitioning": str(hive),
            "hoodie.datasource.write.partitionpath.urlencode": str(encode),
            **more,
        }
    )


CUSTOM = {"hoodie.table.keygenerator.type": "CUSTOM"}


def columns(**kinds: s.DataType) -> s.Struct:
    return s.Struct(tuple(s.Field(name, kind) for name, kind in kinds.items()))


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("a=b", "a%3Db"),
        ("x/y", "x%2Fy"),
        ("co:lon", "co%3Alon"),
        ("q?#[]", "q%3F%23%5B%5D"),
        ("plus+{}", "plus+%7B}"),
        ("50%", "50%25"),
        ("sp ace,c", "sp ace,c"),
        ("Zürich 東京", "Zürich 東京"),
        ("\x00\x1f\x7f", "%00%1F%7F"),
        ("\"'*\\^", "%22%27%2A%5C%5E"),
        ("", ""),
    ],
)
def test_hives_escaping(value: str, escaped: str) -> None:
    assert escape_segment(value) == escaped
    assert unescape_segment(escaped) == value


@given(st.text())
def test_escaping_loses_nothing(value: str) -> None:
    escaped = escape_segment(value)
    assert unescape_segment(escaped) == value
    assert "/" not in escaped
    assert "=" not in escaped


def test_a_stray_percent_sign_stays() -> None:
    assert unescape_segment("50% of%2F %zz%") == "50% of/ %zz%"


@pytest.mark.parametrize(
    ("config", "values", "path"),
    [
        (table("p"), {"p": "a"}, "a"),
        (table("p", hive=True), {"p": "a"}, "p=a"),
        (table("p,q", hive=True), {"q": 1, "p": "a"}, "p=a/q=1"),
        (table("p"), {"p": None}, DEFAULT_PARTITION),
        (table("p", hive=True, encode=True), {"p": ""}, f"p={DEFAULT_PARTITION}"),
        (table("p", hive=True, encode=True), {"p": "a=b/c"}, "p=a%3Db%2Fc"),
        (table("p"), {"p": "x/y"}, "x/y"),
        (table("p"), {"p": dt.date(2024, 2, 29)}, "2024-02-29"),
        (table("p"), {"p": 1e10}, "1.0E10"),
        (table("p"), {"p": True}, "true"),
        (table("p"), {"p": Decimal("12.500")}, "12.500"),
        (table(""), {"p": "a"}, ""),
        (
            table("p", **{"hoodie.datasource.write.slash.separated.date.partitioning": "true"}),
            {"p": dt.date(2024, 2, 29)},
            "2024/02/29",
        ),
    ],
)
def test_the_path_of_a_row(config: TableConfig, values: dict[str, object], path: str) -> None:
    assert partition_path(values, config) == path


def test_the_schema_refines_the_text() -> None:
    kinds = columns(p=s.Decimal(10, 3))
    assert partition_path({"p": Decimal("1.5")}, table("p"), kinds) == "1.500"
    assert partition_path({"p": 0.10000000149011612}, table("p"), columns(p=s.FLOAT)) == "0.1"


def test_a_missing_value_is_named() -> None:
    with pytest.raises(Invalid, match="'p'"):
        partition_path({"q": 1}, table("p"))


@pytest.mark.parametrize("value", ["..", "a/../b"])
def test_a_path_does_not_climb(value: str) -> None:
    with pytest.raises(Invalid, match="partition path"):
        partition_path({"p": value}, table("p"))


def test_times_are_formatted() -> None:
    timed = table(
        "p:SIMPLE,at:TIMESTAMP",
        hive=True,
        **{
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
        },
    )
    assert partition_path({"p": "x", "at": 1704434828000}, timed) == "p=x/at=2024/01"


@pytest.mark.parametrize(
    ("config", "path", "kinds", "values"),
    [
        (table("p"), "a", columns(p=s.STRING), {"p": "a"}),
        (table("p", hive=True), "p=a", columns(p=s.STRING), {"p": "a"}),
        # Real Hudi on Spark shows these, whatever was written: see the table of odd partitions.
        (table("p"), "a=b", columns(p=s.STRING), {"p": "b"}),
        (table("p"), "p=x", columns(p=s.STRING), {"p": "x"}),
        (table("p"), "a%2Fb", columns(p=s.STRING), {"p": "a/b"}),
        (table("p", hive=True), "p=%41", columns(p=s.STRING), {"p": "A"}),
        (table("p", hive=True), "p=a=b", columns(p=s.STRING), {"p": "a=b"}),
        (table("p", hive=True, encode=True), "p=a%3Db", columns(p=s.STRING), {"p": "a=b"}),
        (table("p", encode=True), "a%3Db", columns(p=s.STRING), {"p": "a=b"}),
        (table("p", **CUSTOM), "a=b", columns(p=s.STRING), {}),
        (table("p:SIMPLE", **CUSTOM), "a=b", columns(p=s.STRING), {"p": "b"}),
        (table("p"), "x/y", columns(p=s.STRING), {"p": "x/y"}),
        (table("p", hive=True), "p=x/y", columns(p=s.STRING), {"p": "x/y"}),
        (table("p"), DEFAULT_PARTITION, columns(p=s.STRING), {"p": None}),
        (table("p", hive=True), f"p={DEFAULT_PARTITION}", columns(p=s.INT), {"p": None}),
        (table("p,q"), "a/1", columns(p=s.STRING, q=s.INT), {"p": "a", "q": 1}),
        (table("p,q"), "a/b/c", columns(p=s.STRING, q=s.STRING), {}),
        (table("p,q"), "a", columns(p=s.STRING, q=s.STRING), {}),
        (table(""), "", columns(p=s.STRING), {}),
        (table("p"), "unknown column", columns(q=s.STRING), {"p": "unknown column"}),
        (table("a.b", hive=True), "a.b=7", columns(a=columns(b=s.INT)), {"a.b": 7}),
        (table("p:TIMESTAMP"), "2024", columns(p=s.LONG), {}),
        (table("p:SIMPLE,q:TIMESTAMP"), "7/2024", columns(p=s.INT, q=s.LONG), {"p": 7}),
        (
            table("p", **{"hoodie.datasource.write.slash.separated.date.partitioning": "true"}),
            "2024/02/29",
            columns(p=s.DATE),
            {"p": dt.date(2024, 2, 29)},
        ),
    ],
)
def test_the_values_of_a_path(
    config: TableConfig, path: str, kinds: s.Struct, values: dict[str, object]
) -> None:
    assert partition_values(path, config, kinds) == values


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (s.INT, "-5", -5),
        (s.LONG, "9223372036854775807", 2**63 - 1),
        (s.BOOLEAN, "TRUE", True),
        (s.BOOLEAN, "false", False),
        (s.DOUBLE, "1.0E10", 1e10),
        (s.DOUBLE, "-Infinity", float("-inf")),
        (s.FLOAT, "0.1", 0.10000000149011612),
        (s.DATE, "2024-02-29", dt.date(2024, 2, 29)),
        (s.DATE, "2024-2-9", dt.date(2024, 2, 9)),
        (s.DATE, "nonsense", None),
        (s.DATE, "2024-02-31", None),
        (s.Decimal(10, 3), "12.5", Decimal("12.500")),
        (s.Decimal(10, 3), "-0.001", Decimal("-0.001")),
        (s.TIMESTAMP, "1709212455123456", None),
        (s.TIMESTAMP, "0", None),
        (s.TIMESTAMP, "2024-02-29 13:14:15.5", dt.datetime(2024, 2, 29, 13, 14, 15, 500000, UTC)),
        (s.TIMESTAMP, "2024-02-29 13:14:15", dt.datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)),
        (s.TIMESTAMP, "2024-02-29", dt.datetime(2024, 2, 29, tzinfo=UTC)),
        (s.TIMESTAMP, "2024-02-29 25:00:00", None),
        (s.Timestamp(s.Unit.MICROS, utc=False), "2024-02-29", dt.datetime(2024, 2, 29)),
    ],
)
def test_values_have_the_columns_type(kind: s.DataType, text: str, value: object) -> None:
    found = partition_values(f"p={text}", table("p", hive=True), columns(p=kind))
    assert found == {"p": value}
    assert type(found["p"]) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (s.INT, "2147483648"),
        (s.INT, "1_0"),
        (s.INT, "x"),
        (s.LONG, "9" * 19),
        (s.LONG, "9" * 5000),
        (s.DOUBLE, "nan"),
        (s.DOUBLE, "1_0"),
        (s.FLOAT, "1e300"),
        (s.BOOLEAN, "yes"),
        (s.Decimal(3, 1), "1000.0"),
        (s.Decimal(3, 1), "x"),
        (s.Decimal(3, 1), "9" * 99),
        (s.BINARY, "01ff"),
        (s.List(s.INT), "1"),
    ],
)
def test_what_does_not_fit_the_type_is_left_out(kind: s.DataType, text: str) -> None:
    assert partition_values(f"p={text}", table("p", hive=True), columns(p=kind)) == {}


#: A character takes up to four bytes, of which every one may be escaped by three.
FITTING = 255 // 12 - 1
SIMPLE = st.one_of(
    st.none(),
    st.text(min_size=1, max_size=FITTING).filter(
        lambda t: t != DEFAULT_PARTITION and t not in (".", "..")
    ),
)


@given(SIMPLE, SIMPLE)
def test_encoded_text_comes_back(first: str | None, second: str | None) -> None:
    config = table("p,q", hive=True, encode=True)
    kinds = columns(p=s.STRING, q=s.STRING)
    path = partition_path({"p": first, "q": second}, config)
    assert partition_values(path, config, kinds) == {"p": first, "q": second}


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.booleans(),
    st.floats(allow_nan=False),
    st.dates(min_value=dt.date(1000, 1, 1)),
    st.decimals(-999, 999, places=2),
)
def test_typed_values_come_back(
    number: int, flag: bool, real: float, day: dt.date, exact: Decimal
) -> None:
    config = table("a,b,c,d,e", hive=True, encode=True)
    kinds = columns(a=s.INT, b=s.BOOLEAN, c=s.DOUBLE, d=s.DATE, e=s.Decimal(5, 2))
    values = {"a": number, "b": flag, "c": real, "d": day, "e": exact}
    path = partition_path(values, config, kinds)
    assert partition_values(path, config, kinds) == values


@given(st.text())
def test_any_path_has_values_or_none(path: str) -> None:
    kinds = columns(p=s.Decimal(5, 2), q=s.TIMESTAMP)
    found = partition_values(path, table("p,q"), kinds)
    assert set(found) <= {"p", "q"}


@pytest.mark.parametrize(
    ("config", "path", "kinds", "same"),
    [
        (table("p"), "a", columns(p=s.STRING), True),
        (table("p"), "x/y", columns(p=s.STRING), True),
        (table("p"), DEFAULT_PARTITION, columns(p=s.STRING), True),
        (table("p", hive=True), "p=a=b", columns(p=s.STRING), True),
        (table("p", encode=True), "a%3Db", columns(p=s.STRING), True),
        (table("p,q", hive=True), "p=a/q=7", columns(p=s.STRING, q=s.INT), True),
        (table("p"), "a=b", columns(p=s.STRING), False),
        (table("p"), "a%2Fb", columns(p=s.STRING), False),
        (table("p", hive=True), "p=%41", columns(p=s.STRING), False),
        (table("p,q", hive=True), "p=a/q=07", columns(p=s.STRING, q=s.INT), False),
        (table("p", hive=True), "p=no date", columns(p=s.DATE), False),
        (table("p"), "%2E", columns(p=s.STRING), False),  # shown as what cannot be written
        (table("p:TIMESTAMP"), "2024", columns(p=s.LONG), True),  # the files tell it
        (table("p,q"), "a/b/c", columns(p=s.STRING, q=s.STRING), True),
    ],
)
def test_whether_what_a_path_shows_leads_back_to_it(
    config: TableConfig, path: str, kinds: s.Struct, same: bool
) -> None:
    values = partition_values(path, config, kinds)
    assert leads_back(path, values, config, kinds) is same
