"""Avro records: our column-wise decoder against our encoder and against fastavro."""

import contextlib
import io
import json
import struct
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_encoding import encode_framed, encode_records
from lakewright.format.hudi.avro_records import decode_framed, decode_records
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.model.errors import Corrupt, Invalid, LakewrightError
from lakewright.model.schema import INT, STRING, Field, List, Struct
from support.schemas import rows, structs

LISTS = Struct(
    (
        Field("key", STRING),
        Field("tags", List(STRING)),
        Field("deep", List(List(Struct((Field("a", INT), Field("b", STRING)))))),
        Field("last", INT),
    )
)


def table_of(data: st.DataObject, most: int = 6) -> tuple[Struct, pa.Table]:
    schema = data.draw(structs)
    made = data.draw(st.lists(rows(schema), max_size=most))
    return schema, pa.Table.from_pylist(made, to_arrow_schema(schema))


def datum(schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), value)
    return sink.getvalue()


@settings(max_examples=60)
@given(st.data())
def test_rows_survive_their_bytes(data: st.DataObject) -> None:
    schema, table = table_of(data)
    text = to_avro_schema(schema, "t", "n")
    made = decode_records(text, encode_records(table, text))
    made.validate(full=True)
    assert made.to_pylist() == table.to_pylist()


@settings(max_examples=60)
@given(st.data())
def test_bytes_are_those_of_fastavro(data: st.DataObject) -> None:
    schema, table = table_of(data)
    text = to_avro_schema(schema, "t", "n")
    first = data.draw(st.integers(0, table.num_rows))
    records = encode_records(table.slice(first), text)
    wire = fastavro.parse_schema(json.loads(text))
    for record in records:
        # What fastavro reads it writes again, byte for byte.
        value: Any = fastavro.schemaless_reader(io.BytesIO(record), wire, None)
        assert datum(json.loads(text), value) == record
    framed = b"".join(struct.pack(">i", len(record)) + record for record in records)
    assert encode_framed(table.slice(first), text) == framed


@settings(max_examples=40)
@given(st.data())
def test_projection_is_a_selection(data: st.DataObject) -> None:
    schema, table = table_of(data)
    text = to_avro_schema(schema, "t", "n")
    wanted = data.draw(st.permutations(schema.names))[: data.draw(st.integers(0, len(schema)))]
    made = decode_records(text, encode_records(table, text), [*wanted, "absent"])
    assert made.schema.names == wanted
    assert made.equals(table.select(wanted)) or not wanted


@settings(max_examples=30)
@given(st.data())
def test_every_cut_is_found(data: st.DataObject) -> None:
    schema, table = table_of(data, most=2)
    text = to_avro_schema(schema, "t", "n")
    for raw in encode_records(table, text):
        cut = data.draw(st.integers(0, len(raw) - 1))
        with pytest.raises(Corrupt):
            decode_records(text, [raw[:cut]])
        with pytest.raises(Corrupt):
            decode_records(text, [raw + b"\0"])


@settings(max_examples=60)
@given(st.data(), st.binary(max_size=60))
def test_noise_raises_our_errors_alone(data: st.DataObject, noise: bytes) -> None:
    text = to_avro_schema(data.draw(structs), "t", "n")
    with contextlib.suppress(LakewrightError):
        decode_records(text, [noise, noise]).validate(full=True)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_lists_of_many_lengths(count: int) -> None:
    values = [
        {
            "key": f"k{i}",
            "tags": None if i % 5 == 4 else [f"t{j}" if j % 3 else None for j in range(i % 30)],
            "deep": [[{"a": j, "b": "é" * j}] * (j % 4) for j in range(i % 4)],
            "last": i,
        }
        for i in range(count)
    ]
    table = pa.Table.from_pylist(values, to_arrow_schema(LISTS))
    text = to_avro_schema(LISTS, "t", "n")
    made = decode_records(text, encode_records(table, text))
    assert made.to_pylist() == values


def test_blocks_of_a_list_may_state_their_size() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "l", "type": {"type": "array", "items": "int"}}],
        }
    )
    # Two blocks: count -2 with its size in bytes, then count 1, then the end.
    raw = bytes([3, 4, 2, 4, 2, 6, 0])
    assert decode_records(text, [raw]).to_pylist() == [{"l": [1, 2, 3]}]


@pytest.mark.parametrize("order", [["null", "int"], ["int", "null"], ["int"]])
def test_the_order_of_branches_is_the_schemas(order: list[str]) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": order}]}
    values = [{"c": 7}, {"c": -1}] + ([{"c": None}] if "null" in order else [])
    raw = [datum(schema, value) for value in values]
    assert decode_records(json.dumps(schema), raw).to_pylist() == values


def test_enums_are_strings() -> None:
    kind = {"type": "enum", "name": "e", "symbols": ["RED", "BLUE"]}
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": ["null", kind]}]}
    values: list[dict[str, Any]] = [{"c": "BLUE"}, {"c": None}, {"c": "RED"}]
    raw = [datum(schema, value) for value in values]
    text = json.dumps(schema)
    made = decode_records(text, raw)
    assert made.to_pylist() == values
    assert encode_records(made, text) == raw
    with pytest.raises(Corrupt, match="no such symbol"):
        decode_records(text, [bytes([2, 4])])
    with pytest.raises(Invalid, match="none of the symbols"):
        encode_records(pa.table({"c": ["GREEN"]}), text)


def test_decimals_as_bytes_have_any_length() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]})
    numbers = [0, 1, -1, 127, 128, -128, -129, 10**37, -(10**37)]
    table = pa.table({"c": pa.array(numbers, pa.decimal128(38, 0))})
    assert decode_records(schema, encode_records(table, schema)).to_pydict() == table.to_pydict()
    padded = [bytes([2 * 16]) + (5).to_bytes(16, "big")]
    assert decode_records(schema, padded)["c"].to_pylist() == [5]


def test_names_that_avro_forbids_are_kept() -> None:
    schema = Struct((Field("größe-1", INT), Field("a b", STRING)))
    table = pa.table({"größe-1": pa.array([1], pa.int32()), "a b": ["x"]})
    text = to_avro_schema(schema, "my-table", "hoodie.my-table")
    assert decode_records(text, encode_records(table, text)).equals(table)


@pytest.mark.parametrize("count", [-1, 1, 3, 2**31 - 1])
def test_a_wrong_count_is_found(count: int) -> None:
    text = to_avro_schema(Struct((Field("c", INT, nullable=False),)), "t", "n")
    framed = b"".join(struct.pack(">i", 1) + b"\2" for _ in range(2))
    assert decode_framed(text, framed, 2).num_rows == 2
    with pytest.raises(Corrupt):
        decode_framed(text, framed, count)


def test_a_list_cannot_claim_more_than_there_is() -> None:
    text = to_avro_schema(Struct((Field("l", List(INT)),)), "t", "n")
    huge = bytes([2, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1])
    with pytest.raises(Corrupt, match="more elements than"):
        decode_records(text, [huge])


def test_absent_and_forbidden_nulls_are_refused_when_writing() -> None:
    text = to_avro_schema(Struct((Field("c", INT, nullable=False),)), "t", "n")
    with pytest.raises(Invalid, match="may not be null"):
        encode_records(pa.table({"c": pa.array([None], pa.int32())}), text)
    with pytest.raises(Invalid, match="is missing"):
        encode_records(pa.table({"d": [1]}), text)
