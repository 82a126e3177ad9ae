"""What users hand over as rows."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from lakewright.api.rows import arrow_rows, is_spark_frame
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import Invalid

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

ROWS = [{"a": 1, "s": "x"}, {"a": 2, "s": None}]
TABLE = pa.Table.from_pylist(ROWS)


class _Stream:
    """Any object that knows Arrow's stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class _Array:
    """Any object that knows Arrow's array protocol."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


FORMS: dict[str, Any] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "dataset": lambda: ds.dataset(TABLE),
    "stream": _Stream,
    "array": _Array,
    "pandas": lambda: pd.DataFrame({"a": [1, 2], "s": pd.Series(["x", None], dtype=object)}),
    "pandas with an index": lambda: pd.DataFrame(ROWS, index=[7, 8]),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars lazy": lambda: pl.DataFrame(ROWS).lazy(),
    "duckdb": lambda: duckdb.sql("select * from (values (1::bigint, 'x'), (2, null)) t(a, s)"),
    "dicts": lambda: ROWS,
    "tuple of dicts": lambda: tuple(ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_many_forms(form: str) -> None:
    rows = arrow_rows(FORMS[form]())
    for _ in range(2):
        made = pa.Table.from_batches(rows.batches(), rows.schema)
        assert made.schema.types == [pa.int64(), pa.string()]
        assert made.to_pylist() == ROWS
    assert arrow_rows(rows) is rows


@pytest.mark.parametrize("value", [3, "x", {"a": 1}, None, [1], [{1: 2}], [ROWS]])
def test_what_is_no_rows_is_named(value: object) -> None:
    with pytest.raises(Invalid, match=r"rows|row 0"):
        arrow_rows(value)


def test_dicts_take_the_types_of_the_table() -> None:
    like = parse_ddl("a int, d decimal(9,2), day date, f float, at timestamp")
    at = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    rows = arrow_rows([{"a": 1, "d": Decimal("1.5"), "at": at}, {"f": 1, "new": 2}], like)
    assert dict(zip(rows.schema.names, rows.schema.types, strict=True)) == {
        "a": pa.int32(),
        "d": pa.decimal128(9, 2),
        "at": pa.timestamp("us", "UTC"),
        "f": pa.float32(),
        "new": pa.int64(),
    }
    assert arrow_rows([], like).schema.names == list(like.names)


@pytest.mark.parametrize(
    "bad",
    [
        {"a": "x"},
        {"a": 2**40},
        {"a": 1.5},
        {"l": [1, 1.5]},
        {"n": {"x": 1.5}},
        {"m": {"k": 1.5}},
        {"d": Decimal("1.234")},
        {"s": object()},
    ],
)
def test_values_of_another_type_are_named(bad: dict[str, object]) -> None:
    like = parse_ddl(
        "a int, d decimal(9,2), s string, l array<int>, n struct<x:int>, m map<string,int>"
    )
    with pytest.raises(Invalid, match=f"column '{next(iter(bad))}'"):
        arrow_rows([bad], like)


def test_mixed_values_are_named() -> None:
    with pytest.raises(Invalid, match="column 'a'"):
        arrow_rows([{"a": 1}, {"a": "x"}])
    with pytest.raises(Invalid, match="pandas"):
        arrow_rows(pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}))


def test_frames_of_spark_are_known_by_their_name() -> None:
    class DataFrame:
        __module__ = "pyspark.sql.connect.dataframe"

    assert is_spark_frame(DataFrame())
    assert not is_spark_frame(pd.DataFrame())
