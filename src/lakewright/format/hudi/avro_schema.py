"""Avro schemas of Hudi tables: text to table schemas and back.

``parse_avro`` keeps what the binary form depends on (the order of union branches, enum symbols,
the bytes under a decimal); ``parse_avro_schema`` keeps what a table depends on.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from lakewright.model.errors import Corrupt, Unsupported
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    Field,
    Fixed,
    Kind,
    List,
    Map,
    Primitive,
    Struct,
    Time,
    Timestamp,
    Unit,
)

#: Deeper schemas are refused, so that no hostile file can exhaust the stack.
MAX_DEPTH = 64
_MAX_FIELDS = 100_000
_MAX_FIXED = 1 << 20


@dataclass(frozen=True, slots=True)
class AvroPrimitive:
    """``name`` is the Avro type on the wire, ``type`` what it means in the table."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class AvroFixed:
    """``size`` bytes, which are a decimal or just bytes."""

    size: int
    type: DataType


@dataclass(frozen=True, slots=True)
class AvroEnum:
    """One of the symbols, by its number."""

    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AvroUnion:
    """A value that may be null: ``null_at`` is the branch of null (None: no such branch)."""

    value: "AvroNode"
    null_at: int | None
    value_at: int


@dataclass(frozen=True, slots=True)
class AvroArray:
    """A list."""

    items: "AvroNode"


@dataclass(frozen=True, slots=True)
class AvroMap:
    """A map with string keys."""

    values: "AvroNode"


@dataclass(frozen=True, slots=True)
class AvroRecord:
    """Named fields, in the order of their bytes."""

    names: tuple[str, ...]
    nodes: tuple["AvroNode", ...]
    docs: tuple[str | None, ...]


AvroNode: TypeAlias = (
    AvroPrimitive | AvroFixed | AvroEnum | AvroUnion | AvroArray | AvroMap | AvroRecord
)

_PRIMITIVES = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BINARY,
}
_LOGICAL: Mapping[tuple[str, str], DataType] = {
    ("int", "date"): DATE,
    ("int", "time-millis"): Time(Unit.MILLIS),
    ("long", "time-micros"): Time(Unit.MICROS),
    ("long", "timestamp-millis"): Timestamp(Unit.MILLIS),
    ("long", "timestamp-micros"): Timestamp(Unit.MICROS),
    ("long", "local-timestamp-millis"): Timestamp(Unit.MILLIS, utc=False),
    ("long", "local-timestamp-micros"): Timestamp(Unit.MICROS, utc=False),
}


def parse_avro_schema(text: str, path: str = "") -> Struct:
    """Return the table schema that an Avro record schema describes.

    ``Corrupt`` where the text is no Avro record schema, ``Unsupported`` where it uses unions
    of several types or refers to itself. ``path`` is the file it came from, for the message.
    """
    record = parse_avro(text, path)
    return _struct(record)


def parse_avro(text: str, path: str = "") -> AvroRecord:
    """Return the schema as the tree that the binary codec follows."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise Corrupt(f"the Avro schema is not JSON: {cause}.", path=path) from cause
    node = _Parser(path).node(document, "", "", 0)
    if isinstance(node, AvroUnion):
        # Some commits carry the table's record as ["null", record].
        node = node.value
    if not isinstance(node, AvroRecord):
        raise Corrupt("the Avro schema of a table must be a record.", path=path)
    return node


@dataclass(frozen=True, slots=True)
class _Named:
    """A named type with what using it again costs: levels below it and fields inside it."""

    node: AvroNode
    height: int = 0
    fields: int = 0


class _Parser:
    """One pass over a schema document; remembers the named types that it met.

    Depth and fields are counted as if every reference were written out: a short text can name
    types inside types until the tree it stands for fits in no memory.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._named: dict[str, _Named | None] = {}
        self._fields = 0
        self._deepest = 0

    def node(self, spec: object, space: str, where: str, depth: int) -> AvroNode:
        self._reach(depth)
        if isinstance(spec, str):
            return self._by_name(spec, space, where, depth)
        if isinstance(spec, list):
            return self._union(spec, space, where, depth)
        if isinstance(spec, dict):
            return self._complex(spec, space, where, depth)
        raise self._corrupt(where, f"{spec!r} is no type")

    def _reach(self, depth: int, fields: int = 0) -> None:
        self._deepest = max(self._deepest, depth)
        self._fields += fields
        if depth > MAX_DEPTH:
            raise Unsupported(
                f"the Avro schema nests deeper than {MAX_DEPTH} levels.",
                next_step="Flatten it.",
                path=self._path,
            )
        if self._fields > _MAX_FIELDS:
            raise Unsupported(
                f"the Avro schema has more than {_MAX_FIELDS} fields.",
                next_step="Divide it into several tables.",
                path=self._path,
            )

    def _by_name(self, name: str, space: str, where: str, depth: int) -> AvroNode:
        if name in _PRIMITIVES:
            return AvroPrimitive(name, _PRIMITIVES[name])
        for full in (f"{space}.{name}", name) if space and "." not in name else (name,):
            if full in self._named:
                known = self._named[full]
                if known is None:
                    raise Unsupported(
                        f"the Avro type {full} contains itself; tables cannot hold such types.",
                        next_step="Write out as many levels as there are, or keep it as a string.",
                        path=self._path,
                    )
                self._reach(depth + known.height, known.fields)
                return known.node
        if name == "null":
            raise Unsupported(
                f"column {where or '(root)'} has the Avro type null alone.",
                next_step="Give the column a type beside null.",
                path=self._path,
            )
        raise self._corrupt(where, f"unknown type {name!r}")

    def _union(self, branches: list[Any], space: str, where: str, depth: int) -> AvroNode:
        values = [
            i for i, branch in enumerate(branches) if branch not in ("null", {"type": "null"})
        ]
        if len(values) != 1 or len(branches) > 2:
            raise Unsupported(
                f"column {where or '(root)'} is a union of {len(branches)} Avro types; "
                "only unions of null and one type are tables' types.",
                next_step="Give the column one type, or a struct with a field for each.",
                path=self._path,
            )
        at = values[0]
        value = self.node(branches[at], space, where, depth + 1)
        if isinstance(value, AvroUnion):
            raise self._corrupt(where, "a union directly inside a union")
        return AvroUnion(value, 1 - at if len(branches) == 2 else None, at)

    def _complex(self, spec: dict[str, Any], space: str, where: str, depth: int) -> AvroNode:
        kind = spec.get("type")
        match kind:
            case "record" | "error":
                return self._record(spec, space, where, depth)
            case "array":
                return AvroArray(self.node(spec.get("items"), space, f"{where}.element", depth + 1))
            case "map":
                return AvroMap(self.node(spec.get("values"), space, f"{where}.value", depth + 1))
            case "fixed":
                return self._fixed(spec, space, where)
            case "enum":
                return self._enum(spec, space, where)
            case str() if kind in _PRIMITIVES:
                return self._primitive(kind, spec, where)
            case None:
                raise self._corrupt(where, "a type without 'type'")
            case _:
                return self.node(kind, space, where, depth + 1)

    def _record(self, spec: dict[str, Any], space: str, where: str, depth: int) -> AvroNode:
        full, space = self._name(spec, space, where)
        fields = spec.get("fields")
        if not isinstance(fields, list) or not fields:
            raise self._corrupt(where, "a record without fields")
        counted, outer = self._fields, self._deepest
        self._deepest = depth
        self._reach(depth, len(fields))
        self._named[full] = None
        names: list[str] = []
        nodes: list[AvroNode] = []
        docs: list[str | None] = []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise self._corrupt(where, "a field without a name")
            name = field["name"]
            inner = f"{where}.{name}" if where else name
            names.append(name)
            nodes.append(self.node(field.get("type"), space, inner, depth + 1))
            doc = field.get("doc")
            docs.append(doc if isinstance(doc, str) else None)
        if len(set(names)) != len(names):
            raise self._corrupt(where, "a field name occurs twice")
        node = AvroRecord(tuple(names), tuple(nodes), tuple(docs))
        self._named[full] = _Named(node, self._deepest - depth, self._fields - counted)
        self._deepest = max(outer, self._deepest)
        return node

    def _fixed(self, spec: dict[str, Any], space: str, where: str) -> AvroNode:
        full, _ = self._name(spec, space, where)
        size = spec.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= _MAX_FIXED:
            raise self._corrupt(where, f"a fixed type of size {size!r}")
        node = AvroFixed(size, self._decimal(spec, where) or Fixed(size))
        self._named[full] = _Named(node)
        return node

    def _enum(self, spec: dict[str, Any], space: str, where: str) -> AvroNode:
        full, _ = self._name(spec, space, where)
        symbols = spec.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
            raise self._corrupt(where, "an enum without symbols")
        node = AvroEnum(tuple(symbols))
        self._named[full] = _Named(node)
        return node

    def _primitive(self, name: str, spec: dict[str, Any], where: str) -> AvroNode:
        logical = spec.get("logicalType")
        if isinstance(logical, str) and (name, logical) in _LOGICAL:
            return AvroPrimitive(name, _LOGICAL[name, logical])
        if name == "bytes":
            return AvroPrimitive(name, self._decimal(spec, where) or BINARY)
        # Unknown logical types are ignored, as the Avro specification asks.
        return AvroPrimitive(name, _PRIMITIVES[name])

    def _decimal(self, spec: dict[str, Any], where: str) -> DataType | None:
        if spec.get("logicalType") != "decimal":
            return None
        precision, scale = spec.get("precision"), spec.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int):
            raise self._corrupt(where, "a decimal without precision")
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise Unsupported(
                f"column {where} is decimal({precision},{scale}); tables hold up to 38 digits.",
                next_step="Use fewer digits, or a string.",
                path=self._path,
            )
        return Decimal(precision, scale)

    def _name(self, spec: dict[str, Any], space: str, where: str) -> tuple[str, str]:
        name = spec.get("name")
        if not isinstance(name, str) or not name:
            raise self._corrupt(where, "a named type without a name")
        if "." in name:
            return name, name.rsplit(".", 1)[0]
        given = spec.get("namespace")
        space = given if isinstance(given, str) else space
        return (f"{space}.{name}" if space else name), space

    def _corrupt(self, where: str, what: str) -> Corrupt:
        return Corrupt(f"bad Avro schema at {where or '(root)'}: {what}.", path=self._path)


def _struct(record: AvroRecord) -> Struct:
    return Struct(
        tuple(
            Field(name, table_type(node), isinstance(node, AvroUnion), doc)
            for name, node, doc in zip(record.names, record.nodes, record.docs, strict=True)
        )
    )


def table_type(node: AvroNode) -> DataType:
    """Return what an Avro type is in a table; enums are strings."""
    match node:
        case AvroPrimitive() | AvroFixed():
            return node.type
        case AvroEnum():
            return STRING
        case AvroUnion():
            return table_type(node.value)
        case AvroArray():
            return List(table_type(node.items), isinstance(node.items, AvroUnion))
        case AvroMap():
            return Map(table_type(node.values), STRING, isinstance(node.values, AvroUnion))
        case AvroRecord():
            return _struct(node)


_NAMES: Mapping[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "int",
    Kind.LONG: "long",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.STRING: "string",
    Kind.BINARY: "bytes",
}
_BAD_LETTER = re.compile(r"[^A-Za-z0-9_]")


def to_avro_schema(struct: Struct, name: str, namespace: str = "") -> str:
    """Return a table schema as Avro JSON text, in the form that Hudi's Spark writer gives it.

    Nullable fields are ``["null", T]`` with default null; nested records and fixed types get
    namespaces from the path of their field, so that no two share a name.
    """
    document: dict[str, Any] = {"type": "record", "name": _avro_name(name)}
    if namespace:
        document["namespace"] = namespace
    document["fields"] = _fields(struct, f"{namespace}.{_avro_name(name)}".lstrip("."))
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def table_avro_schema(struct: Struct, table: str) -> str:
    """Return the Avro text of a table's columns, under the names that Hudi gives its records."""
    name = _avro_name(table)
    return to_avro_schema(struct, f"{name}_record", f"hoodie.{name}")


def _fields(struct: Struct, space: str) -> list[dict[str, Any]]:
    made = []
    for field in struct:
        entry: dict[str, Any] = {"name": field.name}
        kind = _avro_type(field.type, field.name, space)
        entry["type"] = ["null", kind] if field.nullable else kind
        if field.doc is not None:
            entry["doc"] = field.doc
        if field.nullable:
            entry["default"] = None
        made.append(entry)
    return made


def _avro_type(kind: DataType, name: str, space: str) -> object:
    match kind:
        case Primitive(Kind.DATE):
            return {"type": "int", "logicalType": "date"}
        case Primitive():
            return _NAMES[kind.kind]
        case Decimal():
            return {
                "type": "fixed",
                "name": "fixed",
                "namespace": f"{space}.{_avro_name(name)}",
                "size": decimal_size(kind.precision),
                "logicalType": "decimal",
                "precision": kind.precision,
                "scale": kind.scale,
            }
        case Fixed():
            inner = f"{space}.{_avro_name(name)}"
            return {"type": "fixed", "name": "fixed", "namespace": inner, "size": kind.size}
        case Time():
            base = "int" if kind.unit is Unit.MILLIS else "long"
            return {"type": base, "logicalType": f"time-{kind.unit}"}
        case Timestamp():
            local = "" if kind.utc else "local-"
            return {"type": "long", "logicalType": f"{local}timestamp-{kind.unit}"}
        case List():
            items = _avro_type(kind.element, name, space)
            return {"type": "array", "items": ["null", items] if kind.element_nullable else items}
        case Map():
            if kind.key != STRING:
                raise Unsupported(
                    f"column {name}: map keys of type {kind.key} have no Avro form.",
                    next_step="Use string keys.",
                )
            values = _avro_type(kind.value, name, space)
            return {"type": "map", "values": ["null", values] if kind.value_nullable else values}
        case Struct():
            return {
                "type": "record",
                "name": _avro_name(name),
                "namespace": space,
                "fields": _fields(kind, f"{space}.{_avro_name(name)}"),
            }


def decimal_size(precision: int) -> int:
    """Return the least number of bytes that hold every decimal of ``precision`` digits."""
    size = 1
    while 2 ** (8 * size - 1) - 1 < 10**precision - 1:
        size += 1
    return size


def _avro_name(name: str) -> str:
    """Return a legal Avro name for record ``name``; columns keep theirs."""
    cleaned = _BAD_LETTER.sub("_", name) or "_"
    return f"_{cleaned}" if cleaned[0].isdigit() else cleaned
