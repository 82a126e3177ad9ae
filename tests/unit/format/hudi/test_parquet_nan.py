"""NaN and bounds: a chunk that holds a NaN tells none, every other chunk keeps its own."""

import io
import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.format.arrow.parquet_nan import columns_with_nan
from lakewright.format.arrow.parquet_splice import SpliceSource, splice
from lakewright.format.hudi.base_footer import BaseFooter, parse_footer
from lakewright.format.hudi.base_pruning import file_ranges, group_ranges
from lakewright.format.hudi.base_write import BaseFileSpec, write_base
from lakewright.format.hudi.log.blocks import HeaderKey
from lakewright.format.hudi.log.write import data_header, parquet_block
from lakewright.format.hudi.parquet_writing import ParquetFile
from lakewright.model.expression.prune import ColumnRange
from lakewright.model.schema import DOUBLE, STRING, Field, Struct

NAN = math.nan
NESTED = pa.schema(
    [
        ("plain", pa.float64()),
        ("number", pa.int64()),
        ("inner", pa.struct([("x", pa.float32()), ("y", pa.float64())])),
        ("items", pa.list_(pa.float64())),
        ("named", pa.map_(pa.string(), pa.struct([("v", pa.float64())]))),
        ("last", pa.float64()),
    ]
)
CLEAN: dict[str, Any] = {
    "plain": 1.0,
    "number": 7,
    "inner": {"x": 1.0, "y": 2.0},
    "items": [1.0, 2.0],
    "named": [("k", {"v": 3.0})],
    "last": 4.0,
}
WITH_NAN: dict[str, dict[str, Any]] = {
    "plain": {"plain": NAN},
    "inner.x": {"inner": {"x": NAN, "y": 1.0}},
    "inner.y": {"inner": {"x": 1.0, "y": NAN}},
    "items.list.element": {"items": [1.0, NAN]},
    "named.key_value.value.v": {"named": [("k", {"v": NAN})]},
    "last": {"last": NAN},
}


def stored(*groups: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    file = ParquetFile(sink, NESTED, (), ())
    for group in groups:
        file.write(pa.Table.from_pylist(group, NESTED))
    file.close({"key": "value"})
    return sink.getvalue()


def bounded(data: bytes, group: int = 0) -> set[str]:
    found = pq.read_metadata(io.BytesIO(data)).row_group(group)
    columns = [found.column(i) for i in range(found.num_columns)]
    return {c.path_in_schema for c in columns if c.statistics.has_min_max}


ALL = {
    "plain",
    "number",
    "inner.x",
    "inner.y",
    "items.list.element",
    "named.key_value.key",
    "named.key_value.value.v",
    "last",
}


@pytest.mark.parametrize("path", sorted(WITH_NAN))
def test_the_chunk_that_holds_it_loses_its_bounds(path: str) -> None:
    data = stored([CLEAN, CLEAN | WITH_NAN[path]])
    assert bounded(data) == ALL - {path}
    assert bounded(stored([CLEAN, CLEAN])) == ALL
    found = pq.read_table(io.BytesIO(data))
    assert str(found.to_pylist()) == str(
        pa.Table.from_pylist([CLEAN, CLEAN | WITH_NAN[path]], NESTED).to_pylist()
    )


def test_each_row_group_has_bounds_of_its_own() -> None:
    data = stored([CLEAN], [CLEAN | {"plain": NAN}], [CLEAN | {"plain": None}])
    assert [bounded(data, group) for group in range(2)] == [ALL, ALL - {"plain"}]
    found = pq.read_metadata(io.BytesIO(data))
    # What is said of nulls stays.
    assert found.row_group(1).column(0).statistics.null_count == 0
    assert found.row_group(2).column(0).statistics.null_count == 1
    assert found.metadata[b"key"] == b"value"


def test_slices_and_nulls() -> None:
    rows = pa.Table.from_pylist([CLEAN | WITH_NAN["items.list.element"], CLEAN], NESTED)
    assert columns_with_nan(rows) == {4}
    assert columns_with_nan(rows.slice(1)) == frozenset()
    nulls = pa.Table.from_pylist([dict.fromkeys(NESTED.names)], NESTED)
    assert columns_with_nan(nulls) == columns_with_nan(NESTED.empty_table()) == frozenset()


def test_zeros_have_bounds_on_both_sides() -> None:
    data = stored([CLEAN | {"plain": 0.0, "last": -0.0}])
    found = pq.read_metadata(io.BytesIO(data)).row_group(0)
    for column in (0, 7):
        told = found.column(column).statistics
        assert (math.copysign(1, told.min), math.copysign(1, told.max)) == (-1, 1)


def footer_of(data: bytes) -> BaseFooter:
    size = struct.unpack("<i", data[-8:-4])[0]
    return parse_footer(data[-8 - size :], len(data), "f")


def base(values: list[float], **how: Any) -> bytes:
    sink = io.BytesIO()
    schema = Struct((Field("id", STRING), Field("d", DOUBLE)))
    keys = [f"k{n}" for n in range(len(values))]
    batches = [
        pa.RecordBatch.from_pydict({"id": [k], "d": [v], "_hoodie_record_key": [k]})
        for k, v in zip(keys, values, strict=True)
    ]
    write_base(sink, batches, BaseFileSpec(schema, "t", "h", "f", "", "20260101000000000", **how))
    return sink.getvalue()


def test_pruning_trusts_the_bounds_of_base_files() -> None:
    data = base([1.0, NAN, 2.0], row_group_bytes=1)
    footer = footer_of(data)
    assert group_ranges(footer, 0, [("d",)]) == {("d",): ColumnRange(1.0, 1.0, 0, 1, 0)}
    assert group_ranges(footer, 1, [("d",)]) == {("d",): ColumnRange(nulls=0, rows=1)}
    assert file_ranges(footer, [("d",)])["d",].high is None
    clean = base([1.0, 2.0])
    assert file_ranges(footer_of(clean), [("d",)]) == {("d",): ColumnRange(1.0, 2.0, 0, 2, 0)}


def test_blocks_of_log_files() -> None:
    schema = (
        '{"type":"record","name":"r","fields":[{"name":"_hoodie_record_key","type":"string"},'
        '{"name":"d","type":"double"}]}'
    )
    header = data_header("20260101000000000", schema)
    assert header[HeaderKey.SCHEMA] == schema
    for values, expected in (([1.0, NAN], False), ([1.0, 2.0], True)):
        rows = pa.table({"_hoodie_record_key": ["a", "b"], "d": values})
        block = parquet_block(rows, header)
        data = block[block.index(b"PAR1") : block.rindex(b"PAR1") + 4]
        found = pq.read_metadata(io.BytesIO(data)).row_group(0)
        assert found.column(1).statistics.has_min_max is expected


def foreign(values: list[float]) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": list(range(len(values))), "d": values})
    pq.write_table(table, sink, store_schema=False, write_page_index=True)
    return sink.getvalue()


@pytest.mark.parametrize("trusted", [False, True])
def test_copied_row_groups_carry_no_doubtful_bounds(trusted: bool) -> None:
    data = foreign([1.0, NAN])
    sink = io.BytesIO()
    source = SpliceSource("f", footer_of(data).raw, len(data), lambda: io.BytesIO(data), trusted)
    splice(sink, [source, source], None, dict)
    made = sink.getvalue()
    found = pq.read_metadata(io.BytesIO(made))
    for group in (found.row_group(0), found.row_group(1)):
        assert group.column(0).statistics.has_min_max
        assert group.column(1).statistics.has_min_max is trusted
        assert group.column(0).has_column_index
        assert group.column(1).has_column_index is trusted
    assert footer_of(made).bounds_rule_out_nan
    assert not footer_of(data).bounds_rule_out_nan
    assert pq.read_table(io.BytesIO(made))["n"].to_pylist() == [0, 1, 0, 1]
