"""Rows of one schema under another: what Hudi promotes, what is refused."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.errors import Invalid
from support.schemas import rows, structs

ONE_DAY = dt.date(2026, 11, 1)


def promoted(values: list[Any], source: pa.DataType, target: pa.DataType) -> list[Any]:
    batch = pa.record_batch([pa.array(values, source)], ["c"])
    made = conform(batch, pa.schema([("c", target)]))
    made.validate(full=True)
    return made.column(0).to_pylist()


@settings(max_examples=30)
@given(st.data())
def test_a_schema_conforms_to_itself_without_a_copy(data: st.DataObject) -> None:
    struct = data.draw(structs)
    table = pa.Table.from_pylist(
        data.draw(st.lists(rows(struct), max_size=3)), to_arrow_schema(struct)
    )
    assert conform(table, table.schema) is table


@settings(max_examples=30)
@given(st.data())
def test_dropping_and_adding_keeps_the_rest(data: st.DataObject) -> None:
    struct = data.draw(structs)
    table = pa.Table.from_pylist(
        data.draw(st.lists(rows(struct), min_size=1, max_size=3)), to_arrow_schema(struct)
    )
    kept = data.draw(st.permutations(struct.names))[: len(struct) // 2 + 1]
    target = pa.schema([*(table.schema.field(n) for n in kept), pa.field("_new", pa.int32())])
    made = conform(table, target)
    assert made.select(kept).equals(table.select(kept))
    assert made.column("_new").null_count == table.num_rows


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1, None], pa.int32(), pa.int64(), [1, None]),
        ([3], pa.int32(), pa.float32(), [3.0]),
        ([2**53 + 1], pa.int64(), pa.float64(), [float(2**53)]),
        ([0.1, None, -1.5e-7], pa.float32(), pa.float64(), [0.1, None, -1.5e-7]),
        ([float("inf")], pa.float32(), pa.float64(), [float("inf")]),
        ([7, None], pa.int64(), pa.string(), ["7", None]),
        ([0.1], pa.float32(), pa.string(), ["0.1"]),
        ([1e10, 1e-4, 1.0, 0.0], pa.float64(), pa.string(), ["1.0E10", "1.0E-4", "1.0", "0.0"]),
        ([1e7, 9999999.0, 0.001], pa.float64(), pa.string(), ["1.0E7", "9999999.0", "0.001"]),
        ([-0.0, 123456.78], pa.float64(), pa.string(), ["-0.0", "123456.78"]),
        ([float("nan")], pa.float64(), pa.string(), ["NaN"]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.string(), ["1.50"]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.decimal128(9, 4), [Decimal("1.5000")]),
        ([5], pa.int32(), pa.decimal128(9, 2), [Decimal("5.00")]),
        ([0.125], pa.float64(), pa.decimal128(9, 2), [Decimal("0.13")]),
        (["2.5"], pa.string(), pa.decimal128(9, 2), [Decimal("2.50")]),
        ([ONE_DAY], pa.date32(), pa.string(), ["2026-11-01"]),
        (["2026-11-01"], pa.string(), pa.date32(), [ONE_DAY]),
        ([b"\xc3\xa9"], pa.binary(), pa.string(), ["é"]),
        (["é"], pa.string(), pa.binary(), [b"\xc3\xa9"]),
        ([[1], None], pa.list_(pa.int32()), pa.list_(pa.int64()), [[1], None]),
        (
            [[("k", 1)], None],
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.float64()),
            [[("k", 1.0)], None],
        ),
    ],
)
def test_promotions(
    values: list[Any], source: pa.DataType, target: pa.DataType, expected: list[Any]
) -> None:
    assert promoted(values, source, target) == expected


def test_times_change_unit_and_label() -> None:
    made = promoted([1, None], pa.timestamp("ms"), pa.timestamp("us", tz="UTC"))
    assert made == [dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC), None]


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        ([2**40], pa.int64(), pa.int32()),
        ([1.5], pa.float64(), pa.float32()),
        ([True], pa.bool_(), pa.int32()),
        ([1], pa.int32(), pa.date32()),
        (["x"], pa.string(), pa.date32()),
        (["x"], pa.string(), pa.decimal128(5, 2)),
        (["1"], pa.string(), pa.int32()),
        ([10**6], pa.int32(), pa.decimal128(5, 2)),
        ([float("nan")], pa.float64(), pa.decimal128(5, 2)),
        ([1001], pa.timestamp("us"), pa.timestamp("ms")),
        ([[1]], pa.list_(pa.int32()), pa.int32()),
        ([b"\xff"], pa.binary(), pa.string()),
    ],
)
def test_what_would_lose_a_value_is_refused_by_name(
    values: list[Any], source: pa.DataType, target: pa.DataType
) -> None:
    with pytest.raises(Invalid, match="column c cannot go from"):
        promoted(values, source, target)


def test_nested_fields_are_matched_renamed_added_and_dropped() -> None:
    source = pa.struct([("x", pa.int32()), ("gone", pa.string())])
    target = pa.struct([("new", pa.string()), ("y", pa.int64())])
    batch = pa.record_batch(
        [pa.array([[{"x": 1, "gone": "a"}], None, [None]], pa.list_(source))], ["old"]
    )
    schema = pa.schema([pa.field("c", pa.list_(pa.field("element", target)))])
    made = conform(batch, schema, {("c",): "old", ("c", "element", "y"): "x"})
    made.validate(full=True)
    assert made.to_pylist() == [{"c": [{"new": None, "y": 1}]}, {"c": None}, {"c": [None]}]


@pytest.mark.parametrize(("begin", "length"), [(0, 3), (1, 2), (2, 1), (1, 0)])
def test_slices_conform_like_their_rows(begin: int, length: int) -> None:
    kind = pa.struct([("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32()))])
    wide = pa.struct([("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64()))])
    values = [{"l": [1, 2], "m": [("a", 1)]}, None, {"l": None, "m": []}]
    batch = pa.record_batch([pa.array(values, kind)], ["c"]).slice(begin, length)
    made = conform(batch, pa.schema([("c", wide)]))
    made.validate(full=True)
    assert made.column(0).to_pylist() == values[begin : begin + length]


def test_an_absent_column_that_may_not_be_null_is_refused() -> None:
    target = pa.schema([pa.field("must", pa.int32(), nullable=False)])
    with pytest.raises(Invalid, match="column must is absent"):
        conform(pa.record_batch([pa.array([1])], ["c"]), target)


def test_rows_without_columns_keep_their_number() -> None:
    assert conform(pa.record_batch([pa.array([1, 2])], ["c"]), pa.schema([])).num_rows == 2


def test_nulls_where_none_may_be_are_counted() -> None:
    def needed(kind: pa.DataType) -> pa.Schema:
        return pa.schema([pa.field("a", kind, nullable=False)])

    with pytest.raises(Invalid, match=r"column a .* 2 of its values"):
        conform(pa.table({"a": pa.array([1, None, None], pa.int32())}), needed(pa.int64()))
    member = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    optional = pa.schema([("a", member)])
    fine = pa.table({"a": pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))})
    assert conform(fine, optional)["a"].to_pylist() == [{"x": 1}, None]
    torn = pa.table({"a": pa.array([{"x": 1}, {"x": None}], pa.struct([("x", pa.int32())]))})
    with pytest.raises(Invalid, match=r"a\.x .* 1 of"):
        conform(torn, optional)
    lists = pa.schema([("a", pa.list_(pa.field("element", pa.int64(), nullable=False)))])
    holes = pa.table({"a": pa.array([[1], [None], None], pa.list_(pa.int32()))})
    assert conform(holes.slice(0, 1), lists)["a"].to_pylist() == [[1]]
    with pytest.raises(Invalid, match=r"a\.element .* 1 of"):
        conform(holes, lists)


def test_dictionaries_of_views_are_read() -> None:
    coded = pa.DictionaryArray.from_arrays([1, None, 0], pa.array(["x", "y"], pa.string_view()))
    found = conform(pa.table({"a": coded}), pa.schema([("a", pa.string())]))
    assert found["a"].to_pylist() == ["y", None, "x"]
