"""Which schema a write leaves: what may change, what is refused by name."""

import pyarrow as pa
import pytest

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.config import TableConfig
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import Invalid
from lakewright.model.schema import INT, LONG, Field, Fixed, Map, Struct, Timestamp, Unit
from lakewright.table.evolution import stored_schema, written_schema
from lakewright.table.state import open_state
from support.tiny_tables import TinyTable


def table(key: str = "k", **more: str) -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.recordkey.fields": key,
            **{name.replace("__", "."): value for name, value in more.items()},
        }
    )


def written(stored: str, incoming: str, config: TableConfig | None = None) -> Struct:
    return written_schema(parse_ddl(stored), parse_ddl(incoming), config or table())


@pytest.mark.parametrize(
    ("stored", "incoming", "expected"),
    [
        ("k int, a int", "a int, k int", "k int, a int"),
        ("k int, a int", "k int", "k int, a int"),
        ("k int", "b string, k int", "k int, b string"),
        ("k int", "k int, b string not null", "k int, b string"),
        ("k int, a int not null", "k int, a int", "k int, a int not null"),
        ("k int, a int", "k int, a bigint", "k int, a bigint"),
        ("k int, a bigint", "k int, a int", "k int, a bigint"),
        ("k int, a int", "k int, a double", "k int, a double"),
        ("k int, a float", "k int, a bigint", "k int, a float"),
        ("k int, a bigint", "k int, a string", "k int, a string"),
        ("k int, a float", "k int, a double", "k int, a double"),
        ("k int, a double", "k int, a string", "k int, a string"),
        ("k int, a string", "k int, a bigint", "k int, a string"),
        ("k int, a decimal(10,2)", "k int, a decimal(12,3)", "k int, a decimal(12,3)"),
        ("k int, a decimal(12,3)", "k int, a decimal(10,2)", "k int, a decimal(12,3)"),
        (
            "k int, s struct<x:int,y:string>",
            "k int, s struct<z:date,x:int>",
            "k int, s struct<x:int,y:string,z:date>",
        ),
        ("k int, s struct<x:bigint>", "k int, s struct<x:int>", "k int, s struct<x:bigint>"),
        ("k int, l array<bigint>", "k int, l array<int>", "k int, l array<bigint>"),
        (
            "k int, m map<string,struct<x:int>>",
            "k int, m map<string,struct<x:int,y:int>>",
            "k int, m map<string,struct<x:int,y:int>>",
        ),
        ("k int, a timestamp", "k int, a timestamp_ntz", "k int, a timestamp"),
    ],
)
def test_what_is_accepted(stored: str, incoming: str, expected: str) -> None:
    schema = written(stored, incoming)
    assert schema == parse_ddl(expected)
    # Both what is stored and what comes can be brought into the new form.
    for form in (stored, incoming):
        rows = pa.Table.from_pylist([], to_arrow_schema(parse_ddl(form).nullable()))
        target = to_arrow_schema(schema.nullable())
        assert conform(rows, target).schema == target


@pytest.mark.parametrize(
    ("stored", "incoming", "words"),
    [
        ("k int, a date", "k int, a string", ("column a", "date", "string")),
        ("k int, a string", "k int, a date", ("column a", "string", "date")),
        ("k int, a int", "k int, a boolean", ("column a", "int", "boolean")),
        ("k int, a timestamp_ntz", "k int, a timestamp", ("local_timestamp_micros",)),
        ("k int, a decimal(10,2)", "k int, a decimal(10,3)", ("decimal(10,2)", "decimal(10,3)")),
        ("k int, a decimal(10,2)", "k int, a double", ("decimal(10,2)", "double")),
        ("k int, s struct<x:int>", "k int, s struct<x:boolean>", ("s.x", "int", "boolean")),
        ("k int, a int", "k int, a float", ("a is int", "float", "widen_column")),
        ("k int, a bigint", "k int, a float", ("a is long", "float", "widen_column")),
        ("k int, a bigint", "k int, a double", ("a is long", "double", "widen_column")),
        ("k int, l array<int>", "k int, l array<bigint>", ("l.element", "int", "long")),
        ("k int, s struct<x:int>", "k int, s struct<x:bigint>", ("s.x", "int", "long")),
        ("k int, l array<int>", "k int, l array<date>", ("l.element", "int", "date")),
        ("k int, l array<int>", "k int, l int", ("column l", "list<int>", "int")),
        ("k int, a int not null", "k int", ("a", "may not be null")),
        ("k int, s struct<x:int,y:int not null>", "k int, s struct<x:int>", ("s.y",)),
        ("k int, a int", "k int, A int", ("'a'", "'A'", "case")),
        ("k int, s struct<x:int>", "k int, s struct<X:int>", ("'s.x'", "'s.X'")),
        ("k int", "k int, b int, B int", ("'b'", "'B'")),
        ("k int", "k int, `b c` int", ("b c",)),
    ],
)
def test_what_is_refused(stored: str, incoming: str, words: tuple[str, ...]) -> None:
    with pytest.raises(Invalid) as refusal:
        written(stored, incoming)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("stored", "incoming", "accepted"),
    [
        ("int", "bigint", True),
        ("int", "string", True),
        ("float", "double", True),
        ("int", "double", False),
        ("bigint", "float", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,3)", False),
        ("double", "int", True),
    ],
)
def test_a_key_keeps_its_text(stored: str, incoming: str, accepted: bool) -> None:
    if accepted:
        written(f"k {stored}", f"k {incoming}")
        return
    with pytest.raises(Invalid, match="column k"):
        written(f"k {stored}", f"k {incoming}")


def test_an_ordering_column_keeps_its_order() -> None:
    ordered = table(hoodie__table__ordering__fields="ts")
    assert written("k int, ts int", "k int, ts double", ordered) == parse_ddl("k int, ts double")
    with pytest.raises(Invalid, match="column ts"):
        written("k int, ts int", "k int, ts string", ordered)


def test_columns_that_the_table_lives_by_must_come() -> None:
    with pytest.raises(Invalid, match="'k'"):
        written_schema(None, parse_ddl("a int"), table())
    partitioned = table(hoodie__table__partition__fields="p")
    with pytest.raises(Invalid, match="'p'"):
        written_schema(None, parse_ddl("k int"), partitioned)


def test_own_columns_of_hudi_are_left_out() -> None:
    incoming = parse_ddl("_hoodie_commit_time string, k int, _hoodie_record_key string")
    assert written_schema(None, incoming, table()) == parse_ddl("k int")


def test_the_first_write_brings_the_columns() -> None:
    incoming = parse_ddl("k int not null, a string")
    assert written_schema(None, incoming, table()) == incoming


def test_types_that_only_arrow_has() -> None:
    def one(kind: object) -> Struct:
        return Struct((Field("k", INT), Field("a", kind)))  # type: ignore[arg-type]

    millis, micros = Timestamp(Unit.MILLIS), Timestamp(Unit.MICROS)
    assert written_schema(one(millis), one(micros), table()) == one(millis)
    assert written_schema(one(micros), one(millis), table()) == one(micros)
    binary = parse_ddl("k int, a binary")
    assert written_schema(one(Fixed(3)), binary, table()) == one(Fixed(3))
    assert written_schema(binary, one(Fixed(3)), table()) == binary
    with pytest.raises(Invalid, match="fixed"):
        written_schema(one(Fixed(3)), one(Fixed(4)), table())
    with pytest.raises(Invalid, match="string keys"):
        written_schema(None, one(Map(INT, key=LONG)), table())


def test_stored_columns_keep_their_type_under_the_timestamp_generator() -> None:
    tiny = TinyTable(hoodie__table__keygenerator__type="TIMESTAMP", partition_by="n")
    assert stored_schema(open_state(tiny.storage)) is None
    tiny.commit(1, {}, completed=2)
    found = stored_schema(open_state(tiny.storage))
    assert found is not None
    assert found.field("n").type == LONG
