"""Table schemas as Arrow schemas and back."""

import pyarrow as pa
import pytest
from hypothesis import given

from lakewright.format.arrow.schema import (
    from_arrow_schema,
    from_arrow_type,
    normalised,
    to_arrow_schema,
)
from lakewright.model.errors import Unsupported
from lakewright.model.schema import INT, LONG, STRING, Decimal, Fixed, List, Struct, Timestamp, Unit
from support.schemas import structs


@given(structs)
def test_a_schema_survives_arrow(struct: Struct) -> None:
    assert from_arrow_schema(to_arrow_schema(struct)) == struct


@given(structs)
def test_our_arrow_schemas_are_normal(struct: Struct) -> None:
    assert normalised(to_arrow_schema(struct)) == to_arrow_schema(struct)


@pytest.mark.parametrize(
    ("arrow", "ours"),
    [
        (pa.int8(), INT),
        (pa.uint16(), INT),
        (pa.uint32(), LONG),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.dictionary(pa.int8(), pa.string()), STRING),
        (pa.run_end_encoded(pa.int32(), pa.int64()), LONG),
        (pa.decimal256(20, 3), Decimal(20, 3)),
        (pa.binary(7), Fixed(7)),
        (pa.timestamp("ns"), Timestamp(Unit.MICROS, utc=False)),
        (pa.timestamp("s", tz="Asia/Tokyo"), Timestamp(Unit.MILLIS)),
        (pa.large_list(pa.int32()), List(INT)),
        (pa.list_(pa.int32(), 3), List(INT)),
    ],
)
def test_foreign_types_find_their_home(arrow: pa.DataType, ours: object) -> None:
    assert from_arrow_type(arrow) == ours


@pytest.mark.parametrize(
    "arrow", [pa.uint64(), pa.null(), pa.duration("s"), pa.decimal256(50, 0), pa.decimal128(5, -2)]
)
def test_types_without_a_home_are_refused_by_name(arrow: pa.DataType) -> None:
    with pytest.raises(Unsupported, match=r"column c\.x has the Arrow type"):
        from_arrow_schema(pa.schema([("c", pa.struct([("x", arrow)]))]))


def test_bottomless_types_are_refused() -> None:
    kind = pa.int32()
    for _ in range(100):
        kind = pa.list_(kind)
    with pytest.raises(Unsupported, match="nested deeper"):
        from_arrow_schema(pa.schema([("c", kind)]))


def test_files_that_differ_in_their_metadata_share_a_normal_schema() -> None:
    schema = pa.schema([("a", pa.large_string()), ("b", pa.uint8())])
    first, second = (normalised(schema.with_metadata({"filter": text})) for text in "xy")
    assert first is second
    assert first.metadata is None
