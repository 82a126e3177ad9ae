"""Keys and paths of whole batches against the functions that make them value by value."""

import datetime as dt
import pickle
from collections.abc import Sequence
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.schema import to_arrow_schema, to_arrow_type
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.key_columns import KeyMaker
from lakewright.format.hudi.key_text import complex_key, simple_key
from lakewright.format.hudi.partition_paths import partition_path
from lakewright.model import schema as s
from lakewright.model.errors import Invalid, Unsupported


def table(keys: str, partitions: str = "", **more: str) -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.recordkey.fields": keys,
            "hoodie.table.partition.fields": partitions,
            **{key.replace("__", "."): value for key, value in more.items()},
        }
    )


def columns(**kinds: s.DataType) -> s.Struct:
    return s.Struct(tuple(s.Field(name, kind) for name, kind in kinds.items()))


TIMES = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.just(dt.UTC))
VALUES: dict[s.DataType, st.SearchStrategy[Any]] = {
    s.STRING: st.text(st.characters(codec="utf-8")),
    s.INT: st.integers(-(2**31), 2**31 - 1),
    s.LONG: st.integers(-(2**63), 2**63 - 1),
    s.BOOLEAN: st.booleans(),
    s.FLOAT: st.floats(width=32),
    s.DOUBLE: st.floats(),
    s.DATE: st.dates(),
    s.BINARY: st.binary(),
    s.Fixed(3): st.binary(min_size=3, max_size=3),
    s.Decimal(10, 3): st.decimals(-9_999_999, 9_999_999, places=3),
    s.Decimal(20, 12): st.decimals(-(10**7), 10**7, places=12),
    s.Decimal(38, 0): st.integers(-(10**37), 10**37).map(Number),
    s.TIMESTAMP: TIMES,
    s.Timestamp(s.Unit.MILLIS): TIMES.map(
        lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
    ),
    s.Timestamp(s.Unit.MICROS, utc=False): TIMES.map(lambda t: t.replace(tzinfo=None)),
}


def scalar(value: Any, kind: s.DataType) -> Any:
    """Return the value as the scalar functions are given it: as Arrow hands it out."""
    return pa.array([value], to_arrow_type(kind)).to_pylist()[0]


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=15)
@given(data=st.data())
def test_keys_of_one_column_are_the_texts_of_its_values(kind: s.DataType, data: Any) -> None:
    given = data.draw(st.lists(VALUES[kind], max_size=8))
    maker = KeyMaker.of(table("a"), columns(a=kind))
    rows = pa.table({"a": pa.array(given, to_arrow_type(kind))})
    try:
        expected = [simple_key("a", scalar(v, kind), kind) for v in given]
    except Invalid:
        with pytest.raises(Invalid, match="no record key"):
            maker.keys(rows)
        return
    keys = maker.keys(rows)
    assert keys.type == pa.string()
    assert keys.to_pylist() == expected


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=15)
@given(data=st.data())
def test_composite_keys_name_their_parts(kind: s.DataType, data: Any) -> None:
    parts = st.tuples(st.none() | VALUES[kind], st.none() | VALUES[s.STRING])
    given = data.draw(st.lists(parts, max_size=8))
    maker = pickle.loads(pickle.dumps(KeyMaker.of(table("b,n.a"), nested(kind))))
    rows = rows_of(given, kind)
    try:
        expected = [
            complex_key(["b", "n.a"], [b, None if a is None else scalar(a, kind)], {"n.a": kind})
            for a, b in given
        ]
    except Invalid:
        with pytest.raises(Invalid, match="no record key"):
            maker.keys(rows)
        return
    assert maker.keys(rows).to_pylist() == expected
    assert maker.keys(rows.slice(1)).to_pylist() == expected[1:]


def nested(kind: s.DataType) -> s.Struct:
    return columns(n=columns(a=kind), b=s.STRING)


def rows_of(given: Sequence[tuple[Any, Any]], kind: s.DataType) -> pa.Table:
    rows = [{"n": {"a": a} if a is not None else None, "b": b} for a, b in given]
    return pa.Table.from_pylist(rows, to_arrow_schema(nested(kind)))


STYLES = {"plain": {}, "hive": {"hive_style_partitioning": "true"}}
STYLES["encoded"] = {"hive_style_partitioning": "true", "partitionpath.urlencode": "true"}


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=15)
@given(data=st.data())
def test_partition_paths_are_those_of_single_rows(kind: s.DataType, data: Any) -> None:
    style = data.draw(st.sampled_from(sorted(STYLES)))
    styled = {f"hoodie.datasource.write.{k}": v for k, v in STYLES[style].items()}
    config = table("k", "n.a,b", **styled)
    parts = st.tuples(st.none() | VALUES[kind], st.none() | VALUES[s.STRING])
    given = data.draw(st.lists(parts, max_size=8))
    schema = s.Struct((*nested(kind), s.Field("k", s.STRING)))
    maker = KeyMaker.of(config, schema)
    rows = rows_of(given, kind)
    try:
        expected = [
            partition_path({"n.a": None if a is None else scalar(a, kind), "b": b}, config, schema)
            for a, b in given
        ]
    except Invalid as refusal:
        with pytest.raises(Invalid, match="partition path"):
            maker.partitions(rows)
        assert "partition path" in str(refusal)
        return
    paths = maker.partitions(rows)
    assert paths.type == pa.dictionary(pa.int32(), pa.string())
    assert paths.to_pylist() == expected
    assert len(set(paths.dictionary.to_pylist())) == len(paths.dictionary)


def test_a_table_without_partitions_has_one_path() -> None:
    maker = KeyMaker.of(table("a"), columns(a=s.INT))
    rows = pa.table({"a": pa.array([1, 2], pa.int32())})
    assert maker.partitions(rows).to_pylist() == ["", ""]
    assert maker.partitions(rows.slice(2)).to_pylist() == []


def test_many_partitions_of_two_columns() -> None:
    maker = KeyMaker.of(table("a", "a,b"), columns(a=s.INT, b=s.INT))
    numbers = list(range(3000))
    rows = pa.table({"a": pa.array(numbers, pa.int32()), "b": pa.array(numbers, pa.int32())})
    assert maker.partitions(rows).to_pylist() == [f"{n}/{n}" for n in numbers]


def test_rows_of_other_types_are_taken_as_the_table_has_them() -> None:
    schema = columns(a=s.DOUBLE, p=s.LONG)
    maker = KeyMaker.of(table("a", "p"), schema)
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "p": pa.array([7, 8], pa.int8())})
    assert maker.keys(rows).to_pylist() == ["1.0", "2.0"]
    assert maker.partitions(rows).to_pylist() == ["7", "8"]
    texts = pa.chunked_array([["x"], ["y"]]).dictionary_encode()
    assert KeyMaker.of(table("a"), columns(a=s.STRING)).keys(
        pa.table({"a": texts})
    ).to_pylist() == ["x", "y"]


@pytest.mark.parametrize(
    ("version", "generator", "plain", "expected"),
    [
        ("9", "COMPLEX", None, "a:1"),
        ("9", "COMPLEX", "true", "a:1"),
        ("6", "COMPLEX", None, "a:1"),
        ("6", "COMPLEX", "true", "1"),
        ("9", "SIMPLE", None, "1"),
        ("9", "CUSTOM", None, "1"),
        ("9", "NON_PARTITION", None, "1"),
    ],
)
def test_one_key_column(version: str, generator: str, plain: str | None, expected: str) -> None:
    more = {"hoodie.table.keygenerator.type": generator, "hoodie.table.version": version}
    more["hoodie.timeline.layout.version"] = "1" if version == "6" else "2"
    if plain:
        more["hoodie.write.complex.keygen.new.encoding"] = plain
    maker = KeyMaker.of(table("a", **more), columns(a=s.INT))
    assert maker.keys(pa.table({"a": pa.array([1], pa.int32())})).to_pylist() == [expected]


def test_rows_without_a_key_are_counted_and_shown() -> None:
    maker = KeyMaker.of(table("a"), columns(a=s.STRING, b=s.INT))
    rows = pa.table({"a": ["x", None, "", *[None] * 9], "b": list(range(12))})
    with pytest.raises(Invalid, match="11 of 12 rows have no record key") as refusal:
        maker.keys(rows)
    assert refusal.value.facts["count"] == 11
    sample = refusal.value.facts["sample"]
    assert isinstance(sample, list)
    assert len(sample) == 5
    assert sample[1] == {"a": "", "b": 2}


def test_a_part_of_a_composite_key_may_be_absent_but_not_all() -> None:
    maker = KeyMaker.of(table("a,b"), columns(a=s.STRING, b=s.INT))
    rows = pa.table({"a": ["", None], "b": pa.array([None, 1], pa.int32())})
    assert maker.keys(rows.slice(1)).to_pylist() == ["a:__null__,b:1"]
    with pytest.raises(Invalid, match="1 of 2 rows"):
        maker.keys(rows)


def test_generated_keys_are_numbered() -> None:
    maker = KeyMaker.of(table(""), columns(a=s.STRING))
    assert maker.generated
    assert maker.generated_keys("2026", 3, 9, 2).to_pylist() == ["2026_3_9", "2026_3_10"]
    assert len(maker.generated_keys("2026", 3, 9, 0)) == 0
    with pytest.raises(Invalid, match="generated"):
        maker.keys(pa.table({"a": ["x"]}))


@pytest.mark.parametrize(
    ("value", "style", "why"),
    [
        ("..", "encoded", "leads out"),
        ("a/../b", "plain", "leads"),
        (".", "plain", "another folder"),
        ("/x", "plain", "without a name"),
        ("a//b", "hive", "without a name"),
        ("10:30", "hive", "':'"),
        (".hoodie", "plain", "begins with '.'"),
        (".x", "plain", "begins with '.'"),
        ("a/..b", "hive", "begins with '.'"),
        ("\0", "plain", "NUL"),
        ("x" * 300, "encoded", "255 bytes"),
    ],
)
def test_impossible_partition_values(value: str, style: str, why: str) -> None:
    styled = {f"hoodie.datasource.write.{k}": v for k, v in STYLES[style].items()}
    maker = KeyMaker.of(table("a", "p", **styled), columns(a=s.INT, p=s.STRING))
    with pytest.raises(Invalid, match="partition path") as refusal:
        maker.partitions(pa.table({"p": ["fine", value]}))
    assert why in refusal.value.message
    assert refusal.value.facts["column"] == "p"


def test_times_are_formatted_once_per_value() -> None:
    config = table(
        "a",
        "p:SIMPLE,at:TIMESTAMP",
        **{
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
        },
    )
    maker = KeyMaker.of(config, columns(a=s.INT, p=s.STRING, at=s.LONG))
    rows = pa.table({"p": ["x", "x", None], "at": [1704434828000, 1704434829000, None]})
    null = "__HIVE_DEFAULT_PARTITION__"
    paths = maker.partitions(rows)
    assert paths.to_pylist() == ["x/2024/01", "x/2024/01", f"{null}/1970/01"]
    assert len(paths.dictionary) == 2


ZONES = ["UTC", "Asia/Kathmandu", "America/St_Johns", "Europe/Lisbon"]
PATTERNS = ["yyyy", "yyyy-MM-dd", "yyyyMMddHH", "hh_mm", "ss", "SSS", "yyyy Z"]


@settings(max_examples=60)
@given(
    st.lists(st.none() | st.integers(-(10**11), 10**11), max_size=6),
    st.sampled_from(["UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "moment"]),
    st.sampled_from(ZONES),
    st.sampled_from(PATTERNS),
)
def test_formatted_times_are_those_of_single_rows(
    given: list[int | None], unit: str, zone: str, pattern: str
) -> None:
    config = table(
        "a",
        "at:TIMESTAMP",
        **{
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP"
            if unit == "moment"
            else unit,
            "hoodie.keygen.timebased.output.dateformat": pattern,
            "hoodie.keygen.timebased.timezone": zone,
        },
    )
    kind = s.Timestamp(s.Unit.MILLIS) if unit == "moment" else s.LONG
    schema = columns(a=s.INT, at=kind)
    step = {"UNIX_TIMESTAMP": 100, "EPOCHMICROSECONDS": 10_000}.get(unit, 1)
    numbers = [None if n is None else n // 100 if step == 100 else n * step for n in given]
    values = pa.array(numbers, pa.int64())
    rows = pa.table({"at": values if kind == s.LONG else values.view(to_arrow_type(kind))})
    expected = [partition_path({"at": value}, config, schema) for value in rows["at"].to_pylist()]
    assert KeyMaker.of(config, schema).partitions(rows).to_pylist() == expected


def test_columns_that_make_no_keys_are_named() -> None:
    with pytest.raises(Unsupported, match="'a'"):
        KeyMaker.of(table("a"), columns(a=s.List(s.INT)))
    with pytest.raises(Invalid, match="'a'"):
        KeyMaker.of(table("a"), columns(b=s.INT))
    with pytest.raises(Invalid, match="no column 'a'"):
        KeyMaker.of(table("a"), columns(a=s.INT)).keys(pa.table({"b": [1]}))
    with pytest.raises(Unsupported, match="generator"):
        mine = table("a", hoodie__table__keygenerator__class="com.example.MyKeyGenerator")
        KeyMaker.of(mine, columns(a=s.INT))
    with pytest.raises(Invalid, match="9999"):
        days = pa.array([3_000_000], pa.int32()).cast(pa.date32())
        KeyMaker.of(table("a"), columns(a=s.DATE)).keys(pa.table({"a": days}))


CLASHES: list[tuple[tuple[str | None, str | None], tuple[str | None, str | None]]] = [
    ((None, "1"), ("__null__", "1")),
    (("1", None), ("1", "__null__")),
    (("", "1"), ("__empty__", "1")),
    (("1,b:2", "3"), ("1", "2,b:3")),
    ((None, "1,b:2"), ("__null__,b:1", "2")),
]


@pytest.mark.parametrize(("one", "other"), CLASHES)
def test_different_rows_with_one_key_are_refused(
    one: tuple[str | None, str | None], other: tuple[str | None, str | None]
) -> None:
    assert complex_key(("a", "b"), one) == complex_key(("a", "b"), other)
    maker = KeyMaker.of(table("a,b"), columns(a=s.STRING, b=s.STRING))
    rows = [("x", "y"), one, ("x", "z"), other, (None, "w"), ("", "w")]
    given_rows = pa.table({name: [row[i] for row in rows] for i, name in enumerate("ab")})
    with pytest.raises(Invalid, match="one record key") as caught:
        maker.keys(given_rows)
    for value in (*one, *other):
        assert repr(value) in str(caught.value)
    # Each alone is a key like any other, as often as it comes.
    for alone in (one, other):
        same = pa.table({"a": [alone[0]] * 2, "b": [alone[1]] * 2})
        assert maker.keys(same).to_pylist() == [complex_key(("a", "b"), alone)] * 2


PARTS = st.sampled_from([None, "", "1", "__null__", "__empty__", ",b:", "1,b:", ",b:1", ":", ",c:"])


@given(st.lists(st.tuples(PARTS, PARTS, PARTS), max_size=4))
def test_keys_are_refused_where_rows_cannot_be_told_apart(
    rows: list[tuple[str | None, str | None, str | None]],
) -> None:
    rows = [row for row in rows if any(row)]
    maker = KeyMaker.of(table("a,b,c"), columns(a=s.STRING, b=s.STRING, c=s.STRING))
    kinds = pa.schema([(name, pa.string()) for name in "abc"])
    batch = pa.table([[row[i] for row in rows] for i in range(3)], schema=kinds)
    keys = [complex_key(("a", "b", "c"), row) for row in rows]
    if len(set(keys)) == len(set(rows)):
        assert maker.keys(batch).to_pylist() == keys
    else:
        with pytest.raises(Invalid, match="one record key"):
            maker.keys(batch)
