"""How the records of metadata files look: declared once, used to check, read and write them.

A shape stands for an Avro type and for the Python value it becomes: lists become tuples,
maps dicts, records frozen dataclasses.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")

#: A value as JSON or Avro hold it; the shapes say what it may be.
Raw: TypeAlias = Any
Converter: TypeAlias = Callable[[Raw], Raw]

NAMESPACE = "org.apache.hudi.avro.model"


class _Required:
    """The default of a member that has none."""


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without parts, by its Avro name."""

    avro: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """An Avro array."""

    items: "Shape"


@dataclass(frozen=True, slots=True)
class MapOf:
    """An Avro map; its keys are text."""

    values: "Shape"


@dataclass(frozen=True, slots=True)
class Nullable:
    """A value or null.

    ``null_is`` is the Python value that stands for null (a counter's 0, an empty map);
    ``writes_null`` says whether that value is written as null again.
    """

    shape: "Shape"
    null_first: bool = True
    null_is: Raw = None
    writes_null: bool = True


@dataclass(frozen=True, slots=True)
class Member:
    """One field of a record; its place among the members is the dataclass field it fills."""

    name: str
    shape: "Shape"
    default: Raw = REQUIRED


@dataclass(frozen=True, slots=True)
class RecordOf(Generic[T]):
    """An Avro record that becomes a slotted dataclass, whose first fields are the members."""

    name: str
    build: Callable[..., T]
    members: tuple[Member, ...]

    def __hash__(self) -> int:
        return hash(self.name)


Shape: TypeAlias = Scalar | ListOf | MapOf | Nullable | RecordOf[Any]

STRING = Scalar("string")
LONG = Scalar("long")
INT = Scalar("int")
BOOLEAN = Scalar("boolean")
DOUBLE = Scalar("double")


def optional(name: str, shape: Shape) -> Member:
    """Declare ``[null, T]`` with the default null, where null is None."""
    return Member(name, Nullable(shape), None)


def versioned(default: int = 1) -> Member:
    """Declare the ``version`` that every record of Hudi carries: ``[int, null]``."""
    return Member("version", Nullable(INT, null_first=False), default)


def counter(name: str) -> Member:
    """Declare a nullable long that counts: null is 0, and 0 is written as 0."""
    return Member(name, Nullable(LONG, null_is=0, writes_null=False), None)


def mapped(name: str, values: Shape, *, writes_null: bool = False) -> Member:
    """Declare a nullable map whose null is the empty one."""
    return Member(name, Nullable(MapOf(values), null_is={}, writes_null=writes_null), None)


def listed(name: str, items: Shape, *, writes_null: bool = False) -> Member:
    """Declare a nullable list whose null is the empty one."""
    return Member(name, Nullable(ListOf(items), null_is=(), writes_null=writes_null), None)


def avro_schema(shape: Shape) -> Raw:
    """Return the Avro schema of a shape as JSON values, named as real Hudi names it."""
    return _schema(shape, set())


def _schema(shape: Shape, seen: set[str]) -> Raw:
    match shape:
        case Scalar("string"):
            return {"type": "string", "avro.java.string": "String"}
        case Scalar(name):
            return name
        case ListOf(items):
            return {"type": "array", "items": _schema(items, seen)}
        case MapOf(values):
            return {"type": "map", "values": _schema(values, seen), "avro.java.string": "String"}
        case Nullable(inner, null_first):
            schema = _schema(inner, seen)
            return ["null", schema] if null_first else [schema, "null"]
        case RecordOf(name=name, members=members):
            if name in seen:
                return name
            top = {} if seen else {"namespace": NAMESPACE}
            seen.add(name)
            fields = [_field(member, seen) for member in members]
            return {"type": "record", "name": name, **top, "fields": fields}


def _field(member: Member, seen: set[str]) -> dict[str, Raw]:
    field = {"name": member.name, "type": _schema(member.shape, seen)}
    return field if member.default is REQUIRED else {**field, "default": member.default}


def _same(value: Raw) -> Raw:
    return value


def reader(shape: Shape) -> Converter:
    """Return the function that makes the Python value of a decoded Avro value."""
    match shape:
        case Scalar():
            return _same
        case ListOf(items):
            read = reader(items)
            if read is _same:
                return tuple
            return lambda values: tuple([read(value) for value in values])
        case MapOf(values):
            read = reader(values)
            if read is _same:
                return _same
            return lambda pairs: {key: read(value) for key, value in pairs.items()}
        case Nullable(inner, _, null_is):
            read = reader(inner)
            if read is _same and null_is is None:
                return _same
            return lambda value: null_is if value is None or value is null_is else read(value)
        case RecordOf():
            return _record_reader(shape)


@functools.cache
def _record_reader(shape: RecordOf[Any]) -> Converter:
    names = [member.name for member in shape.members]
    nulls = [_null_of(member.shape) for member in shape.members]
    absent = {m.name: m.default for m in shape.members if m.default not in (REQUIRED, None)}
    # Of the 31 members of a write stat four need work beyond the nulls; touching no other
    # keeps commits of 100,000 files quick to read.
    changed = [
        (i, reader(member.shape))
        for i, member in enumerate(shape.members)
        if not isinstance(_bare(member.shape), Scalar)
    ]
    build = shape.build

    def read_record(fields: Mapping[str, Raw]) -> Raw:
        if absent:
            fields = {**absent, **fields}
        values = [
            null if value is None else value
            for value, null in zip(map(fields.get, names), nulls, strict=True)
        ]
        for i, read in changed:
            values[i] = read(values[i])
        return build(*values)

    return read_record


def _bare(shape: Shape) -> Shape:
    return shape.shape if isinstance(shape, Nullable) else shape


def _null_of(shape: Shape) -> Raw:
    return shape.null_is if isinstance(shape, Nullable) else None


def writer(shape: Shape) -> Converter:
    """Return the function that makes the Avro value of a Python value."""
    match shape:
        case Scalar():
            return _same
        case ListOf(items):
            write = writer(items)
            return lambda values: [write(value) for value in values]
        case MapOf(values):
            write = writer(values)
            return lambda pairs: {key: write(value) for key, value in pairs.items()}
        case Nullable(inner, _, null_is, writes_null):
            write = writer(inner)
            if writes_null:
                return lambda value: None if value is None or value == null_is else write(value)
            return lambda value: None if value is None else write(value)
        case RecordOf():
            return _record_writer(shape)


@functools.cache
def _record_writer(shape: RecordOf[Any]) -> Converter:
    writers = [(member.name, writer(member.shape)) for member in shape.members]

    def write_record(value: Raw) -> dict[str, Raw]:
        # A plain commit has no place for the last field of its value, the replaced files.
        return {
            name: write(getattr(value, slot))
            for slot, (name, write) in zip(value.__slots__, writers, strict=False)
        }

    return write_record
