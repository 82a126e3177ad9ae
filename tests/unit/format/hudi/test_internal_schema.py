"""Schemas with ids: both directions, history files, and what ids say about old files."""

import json
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.hudi.internal_schema import (
    FOLDER,
    InternalSchema,
    history_path,
    load_history,
    numbered,
    parse_history,
    parse_internal_schema,
    renames,
    render_history,
    render_internal_schema,
    schema_at,
)
from lakewright.model.errors import Corrupt, LakewrightError, Unsupported
from lakewright.model.schema import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
)
from lakewright.storage.open import open_storage
from support.schemas import structs

#: The form in which Hudi writes a schema into a commit.
TEXT = json.dumps(
    {
        "max_column_id": 8,
        "version_id": 20260101000000000,
        "type": "record",
        "fields": [
            {"id": 0, "name": "id", "optional": False, "type": "string", "doc": "the key"},
            {"id": 1, "name": "amount", "optional": True, "type": "decimal(10, 2)"},
            {"id": 2, "name": "day", "optional": True, "type": "date"},
            {"id": 3, "name": "raw", "optional": True, "type": "fixed[4]"},
            {
                "id": 4,
                "name": "tags",
                "optional": True,
                "type": {
                    "type": "array",
                    "element_id": 5,
                    "element": "string",
                    "element_optional": True,
                },
            },
            {
                "id": 6,
                "name": "attrs",
                "optional": True,
                "type": {
                    "type": "map",
                    "key_id": 7,
                    "key": "string",
                    "value_id": 8,
                    "value": "timestamp",
                    "value_optional": False,
                },
            },
        ],
    },
    separators=(",", ":"),
)


def test_the_form_that_hudi_writes() -> None:
    schema = parse_internal_schema(TEXT)
    assert schema.version == 20260101000000000
    assert schema.max_id == 8
    assert schema.struct == Struct(
        (
            Field("id", STRING, nullable=False, doc="the key", id=0),
            Field("amount", Decimal(10, 2), id=1),
            Field("day", DATE, id=2),
            Field("raw", Fixed(4), id=3),
            Field("tags", List(STRING), id=4),
            Field("attrs", Map(TIMESTAMP, value_nullable=False), id=6),
        )
    )
    assert schema.ids["tags", "element"] == 5
    assert schema.ids["attrs", "value"] == 8
    assert render_internal_schema(schema) == TEXT


@settings(max_examples=60)
@given(structs, st.integers(0, 10**17))
def test_schemas_survive_their_text(struct: Struct, version: int) -> None:
    schema = numbered(struct, version)
    assert parse_internal_schema(render_internal_schema(schema)) == schema
    assert parse_history(render_history([schema])) == (schema,)


def test_first_ids_go_level_by_level() -> None:
    schema = numbered(
        Struct((Field("a", List(Struct((Field("x", INT),)))), Field("b", Map(INT)))), 1
    )
    assert schema.ids == {
        ("a",): 0,
        ("b",): 1,
        ("a", "element"): 2,
        ("a", "element", "x"): 3,
        ("b", "key"): 4,
        ("b", "value"): 5,
    }


def version(number: int, *fields: Field) -> InternalSchema:
    ids = {(f.name,): f.id for f in fields if f.id is not None}
    return InternalSchema(number, Struct(fields), ids, max(ids.values()))


def test_ids_tell_renames_from_new_columns() -> None:
    old = version(1, Field("a", INT, id=0), Field("b", INT, id=1), Field("c", INT, id=2))
    new = version(
        2,
        Field("A", LONG, id=0),  # renamed and widened
        Field("b", STRING, id=3),  # dropped, then added again under the same name
        Field("c", INT, id=2),  # untouched
        Field("d", DOUBLE, id=4),  # new
    )
    assert renames(new, old) == {("A",): "a", ("b",): ""}
    assert renames(new, new) == {}


def test_renames_inside_lists_and_structs() -> None:
    old = numbered(Struct((Field("l", List(Struct((Field("x", INT),)))),)), 1)
    path, inner = ("l", "element", "x"), ("m", "element", "y")
    ids = {("m",): old.ids["l",], ("m", "element"): old.ids["l", "element"], inner: old.ids[path]}
    new = InternalSchema(2, Struct((Field("m", List(Struct((Field("y", INT),)))),)), ids, 2)
    assert renames(new, old) == {("m",): "l", inner: "x"}


def test_the_schema_of_a_file_is_the_newest_that_is_not_younger() -> None:
    history = [version(n, Field("a", INT, id=0)) for n in (20, 10, 30)]
    assert schema_at(history, "9") is None
    assert [schema_at(history, t) for t in ("10", "29", "99")] == [
        history[1],
        history[0],
        history[2],
    ]


def test_the_newest_committed_history_counts() -> None:
    storage = open_storage(f"memory://{uuid.uuid4()}")
    assert load_history(storage, lambda _: True) == ()
    one, two = (version(n, Field("a", INT, id=0)) for n in (1, 2))
    storage.write(history_path("100"), render_history([one]))
    storage.write(history_path("200"), render_history([one, two]))
    storage.write(f"{FOLDER}/.200.schemacommit.crc", b"junk")
    storage.write(f"{FOLDER}/300.schemacommit.inflight", b"junk")
    assert load_history(storage, lambda _: True) == (one, two)
    assert load_history(storage, lambda t: t == "100") == (one,)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"type":"array","element_id":1,"element":"int"}', '{"type":"record"}']
    + [
        json.dumps({"type": "record", "fields": [entry]})
        for entry in (
            {"name": "c", "type": "int"},
            {"id": "x", "name": "c", "type": "int"},
            {"id": 1, "type": "int"},
            {"id": 1, "name": "c", "type": "decimal(50, 2)"},
            {"id": 1, "name": "c", "type": "complex"},
            {"id": 1, "name": "c", "type": {"type": "map"}},
            {"id": 1, "name": "c"},
        )
    ],
)
def test_text_that_is_no_schema_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        parse_internal_schema(text)


@pytest.mark.parametrize("data", [b"", b"\xff", b"{}", b'{"schemas":{}}', b'{"schemas":[1]}'])
def test_files_that_are_no_history_are_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        parse_history(data)


def test_bottomless_schemas_are_refused() -> None:
    kind: object = "int"
    for _ in range(200):
        kind = {"type": "array", "element_id": 1, "element": kind}
    text = json.dumps({"type": "record", "fields": [{"id": 1, "name": "c", "type": kind}]})
    with pytest.raises(Unsupported):
        parse_internal_schema(text)
    with pytest.raises(LakewrightError):
        parse_internal_schema('{"type":' * 100_000)
