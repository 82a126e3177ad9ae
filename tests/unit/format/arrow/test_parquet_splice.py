"""Splicing parquet files: the same rows as the files had, read by more than one reader."""

import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.parquet_nan import KNOWS_NAN
from lakewright.format.arrow.parquet_splice import (
    OneValue,
    SpliceSource,
    copy_range,
    splice,
    why_apart,
)
from lakewright.model.errors import Corrupt

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("a", pa.int64(), nullable=False),
        pa.field("s", pa.string()),
        pa.field("l", pa.list_(pa.int32())),
        pa.field("t", pa.struct([("x", pa.decimal128(9, 2)), ("y", pa.timestamp("us"))])),
    ]
)
NEW = OneValue("name", "new")


def rows(count: int, seed: int) -> pa.Table:
    values = [
        {
            "name": f"old{seed}",
            "a": n * 7919 % 1000,
            "s": None if n % 5 == 0 else f"text {n * seed}",
            "l": None if n % 7 == 0 else list(range(n % 4)),
            "t": None if n % 3 == 0 else {"x": None, "y": None},
        }
        for n in range(count)
    ]
    return pa.Table.from_pylist(values, schema=SCHEMA)


def stored(table: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False, **how)
    return sink.getvalue()


def footer_of(data: bytes) -> bytes:
    return data[len(data) - 8 - int.from_bytes(data[-8:-4], "little") : -8]


def source(data: bytes, footer: bytes | None = None) -> SpliceSource:
    return SpliceSource("f", footer or footer_of(data), len(data), lambda: io.BytesIO(data))


def spliced(files: list[bytes], replaced: OneValue | None = NEW) -> bytes:
    sink = io.BytesIO()
    assert why_apart([source(data) for data in files], replaced) is None
    values = {"key": b"value", "näme": "wért".encode()}
    splice(sink, [source(data) for data in files], replaced, lambda: values)
    return sink.getvalue()


_HOW = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["snappy", "zstd", "none", "gzip"]),
        "row_group_size": st.integers(1, 300),
        "use_dictionary": st.booleans(),
        "write_page_index": st.booleans(),
        "data_page_size": st.sampled_from([64, 1 << 20]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
    }
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), _HOW), min_size=1, max_size=4))
def test_rows_are_those_of_the_files(parts: list[tuple[int, dict[str, Any]]]) -> None:
    tables = [rows(count, seed + 1) for seed, (count, _) in enumerate(parts)]
    pairs = zip(tables, parts, strict=True)
    data = spliced([stored(table, **how) for table, (_, how) in pairs])
    expected = pa.concat_tables(tables)
    found = pq.ParquetFile(io.BytesIO(data))
    assert found.read().drop(["name"]).equals(expected.drop(["name"]))
    assert set(found.read(columns=["name"])["name"].to_pylist()) <= {"new"}
    assert found.metadata.num_rows == expected.num_rows
    values = found.metadata.metadata
    key, value = (text.encode() for text in KNOWS_NAN)
    assert values == {b"key": b"value", "näme".encode(): "wért".encode(), key: value}


def test_another_reader_prunes_and_finds_the_same(tmp_path: Any) -> None:
    import duckdb

    tables = [rows(700, 1), rows(400, 2), rows(0, 3)]
    how = {"row_group_size": 200, "write_page_index": True}
    path = tmp_path / "x.parquet"
    path.write_bytes(spliced([stored(table, **how) for table in tables]))
    query = "select count(*), sum(a), min(s), max(name) from '{}' where a between 100 and 300"
    expected = pa.concat_tables(tables)
    (plain,) = duckdb.sql(query.format(path)).fetchall()
    inside = [row for row in expected.to_pylist() if 100 <= row["a"] <= 300]
    assert plain == (
        len(inside),
        sum(row["a"] for row in inside),
        min(row["s"] for row in inside if row["s"]),
        "new",
    )


def test_statistics_and_indexes_go_along() -> None:
    tables = [rows(100, 1), rows(50, 2)]
    data = spliced([stored(t, write_page_index=True) for t in tables])
    found = pq.ParquetFile(io.BytesIO(data)).metadata
    for group in range(2):
        held = tables[group]["a"].to_pylist()
        column = found.row_group(group).column(1)
        assert (column.statistics.min, column.statistics.max) == (min(held), max(held))
        assert column.has_offset_index and column.has_column_index
        name = found.row_group(group).column(0)
        assert (name.statistics.min, name.has_offset_index) == ("new", True)


def test_without_a_column_to_replace_all_bytes_stay() -> None:
    table = rows(500, 1)
    found = pq.read_table(io.BytesIO(spliced([stored(table), stored(table)], None)))
    assert found.equals(pa.concat_tables([table, table]))


def test_a_row_group_of_many_rows() -> None:
    count = (1 << 20) + 5
    table = pa.table({"name": pa.array(["old"] * count), "a": pa.array([1] * count)})
    found = pq.ParquetFile(io.BytesIO(spliced([stored(table, row_group_size=count)])))
    assert (found.num_row_groups, found.metadata.num_rows) == (1, count)
    assert set(found.read(columns=["name"])["name"].unique().to_pylist()) == {"new"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (rows(5, 1).drop(["s"]), "differ in their columns"),
        (rows(5, 1).set_column(1, "a", pa.array([1] * 5, pa.int32())), "differ in their columns"),
        (rows(5, 1).select(["a", "name", "s", "l", "t"]), "differ in their columns"),
    ],
)
def test_other_columns_are_not_spliced(other: pa.Table, why: str) -> None:
    sources = [source(stored(rows(5, 1))), source(stored(other))]
    assert why in (why_apart(sources, NEW) or "")


def test_a_column_that_is_no_text_is_not_replaced() -> None:
    file = source(stored(rows(5, 1)))
    for column in ("a", "l", "absent"):
        assert "no plain column" in (why_apart([file], OneValue(column, "")) or "")


def test_damaged_footers_are_told() -> None:
    data = stored(rows(5, 1))
    footer = footer_of(data)
    with pytest.raises(Corrupt):
        why_apart([source(data, footer[: len(footer) // 2])], NEW)
    with pytest.raises(Corrupt):
        splice(io.BytesIO(), [source(data[:40], footer)], NEW, dict)


@pytest.mark.parametrize("room", [1, 7, 100, 1000])
@pytest.mark.parametrize("kind", ["file", "arrow", "memory"])
@pytest.mark.parametrize("to_file", [True, False], ids=["to-file", "to-memory"])
def test_a_range_is_copied_piece_by_piece(
    tmp_path: Path, room: int, kind: str, to_file: bool
) -> None:
    data = os.urandom(300)
    (tmp_path / "source").write_bytes(data)
    sink: Any = (tmp_path / "sink").open("w+b") if to_file else io.BytesIO()
    with sink, opened(tmp_path / "source", kind) as source:
        sink.write(b"before")
        copy_range(source, 20, 250, sink, "source", bytearray(room))
        sink.write(b"after")
        sink.seek(0)
        assert sink.read() == b"before" + data[20:270] + b"after"


@pytest.mark.parametrize("kind", ["file", "arrow", "memory"])
def test_a_range_past_the_end_is_told(tmp_path: Path, kind: str) -> None:
    (tmp_path / "source").write_bytes(bytes(100))
    with (
        opened(tmp_path / "source", kind) as source,
        (tmp_path / "sink").open("wb") as sink,
        pytest.raises(Corrupt, match="ends within a column"),
    ):
        copy_range(source, 20, 100, sink, "source", bytearray(64))


def opened(path: Path, kind: str) -> Any:
    if kind == "memory":
        return io.BytesIO(path.read_bytes())
    return path.open("rb") if kind == "file" else pa.OSFile(str(path), "r")
