"""Avro schemas: both directions, and schemas that lie about their size."""

import json
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from lakewright.format.hudi.avro_schema import decimal_size, parse_avro_schema, to_avro_schema
from lakewright.model.errors import Corrupt, LakewrightError, Unsupported
from lakewright.model.schema import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
    Timestamp,
    Unit,
)
from support.schemas import structs


def record(*fields: Any, name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(kind: Any, name: str = "c") -> dict[str, Any]:
    return {"name": name, "type": kind}


def parsed(kind: Any) -> Field:
    return parse_avro_schema(json.dumps(record(field(kind)))).field("c")


@settings(max_examples=60)
@given(structs)
def test_a_schema_survives_avro_and_fastavro_takes_it(struct: Struct) -> None:
    text = to_avro_schema(struct, "t_record", "hoodie.t")
    assert parse_avro_schema(text) == struct
    fastavro.parse_schema(json.loads(text))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("string", STRING),
        ({"type": "string", "avro.java.string": "String"}, STRING),
        ({"type": {"type": "string"}}, STRING),
        ({"type": "int", "logicalType": "date"}, DATE),
        ({"type": "long", "logicalType": "nonsense"}, LONG),
        ({"type": "int", "logicalType": "timestamp-millis"}, INT),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, Timestamp(Unit.MICROS, False)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, Decimal(5, 2)),
        ({"type": "bytes"}, BINARY),
        ({"type": "fixed", "name": "f", "size": 4}, Fixed(4)),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, STRING),
        ({"type": "array", "items": ["null", "int"]}, List(INT)),
        ({"type": "array", "items": "int"}, List(INT, element_nullable=False)),
        ({"type": "map", "values": ["int", "null"]}, Map(INT)),
    ],
)
def test_types(kind: Any, expected: DataType) -> None:
    assert parsed(kind) == Field("c", expected, nullable=False)
    assert parsed(["null", kind]) == Field("c", expected, nullable=True)
    assert parsed([kind, "null"]) == Field("c", expected, nullable=True)


def test_named_types_are_found_again() -> None:
    inner = record(field("int", "x"), name="a.b.In")
    text = json.dumps(
        {**record(field(inner, "c"), field("a.b.In", "d"), name="Out"), "namespace": "z"}
    )
    struct = parse_avro_schema(text)
    assert struct.field("c").type == struct.field("d").type


@pytest.mark.parametrize(
    "text",
    ["", "{", "1", '"string"', '{"type":"record","name":"r"}', '{"type":"enum","name":"e"}']
    + [
        json.dumps(record(*fields))
        for fields in (
            [{"name": "c"}],
            [{"type": "int"}],
            [field("missing.Type")],
            [field("int"), field("int")],
            [field({"type": "fixed", "name": "f", "size": -1})],
            [field({"type": "bytes", "logicalType": "decimal"})],
            [field(["null", ["null", "int"]])],
            [field(record(name="empty"))],
        )
    ],
)
def test_text_that_is_no_schema_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        parse_avro_schema(text, "file")


@pytest.mark.parametrize(
    "kind",
    [
        ["int", "string"],
        ["null", "int", "string"],
        "null",
        {"type": "array", "items": "r"},
        {"type": "bytes", "logicalType": "decimal", "precision": 60},
    ],
)
def test_types_that_tables_cannot_hold_are_refused(kind: Any) -> None:
    with pytest.raises(Unsupported):
        parsed(kind)


def test_a_short_text_cannot_stand_for_a_huge_tree() -> None:
    fields = [field(record(field("int", "x"), name="t0"), "c0")]
    for i in range(1, 40):
        twice = record(field(f"t{i - 1}", "a"), field(f"t{i - 1}", "b"), name=f"t{i}")
        fields.append(field(twice, f"c{i}"))
    with pytest.raises(Unsupported, match="more than"):
        parse_avro_schema(json.dumps(record(*fields)))


def test_references_cannot_hide_depth() -> None:
    fields = [field(record(field("int", "x"), name="t0"), "c0")]
    for i in range(1, 200):
        fields.append(field(record(field(f"t{i - 1}", "a"), name=f"t{i}"), f"c{i}"))
    with pytest.raises(Unsupported, match="nests deeper"):
        parse_avro_schema(json.dumps(record(*fields)))


def test_deep_json_is_no_crash() -> None:
    with pytest.raises(LakewrightError):
        parse_avro_schema('{"type":"array","items":' * 100_000)


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (20, 9), (38, 16)])
def test_decimals_take_the_least_bytes(precision: int, size: int) -> None:
    assert decimal_size(precision) == size


def test_maps_need_string_keys_in_avro() -> None:
    with pytest.raises(Unsupported, match="map keys"):
        to_avro_schema(Struct((Field("m", Map(INT, key=INT)),)), "r", "")
