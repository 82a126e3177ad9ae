"""The schema found inside a metadata file: checked against the shape expected, and rid of
everything that could cost more memory than the file has bytes."""

import json
from typing import Any

from lakewright.format.hudi.metadata.shapes import (
    REQUIRED,
    ListOf,
    MapOf,
    Nullable,
    Raw,
    RecordOf,
    Scalar,
    Shape,
)
from lakewright.model.errors import Corrupt

_MAX_NODES = 5_000
_MAX_DEPTH = 40
#: Records directly inside records add no bytes, so many levels of them would be a bomb.
_MAX_BARE_LEVELS = 3
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_FITS = {
    "string": frozenset({"string", "enum"}),
    "int": frozenset({"int"}),
    "long": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float", "double"}),
    "boolean": frozenset({"boolean"}),
}


def checked_schema(text: bytes, shape: RecordOf[Any]) -> Raw:
    """Return the schema as fastavro takes it; ``Corrupt`` where it does not fit or is unsafe.

    Logical types, aliases and defaults are left out: values arrive as they are stored.
    """
    cleaner = _Cleaner()
    schema = cleaner.clean(json.loads(text), "", 0)
    _fit(schema, shape, shape.name, cleaner.named)
    return schema


class _Cleaner:
    """Rebuilds a schema from the parts that matter, each named type once."""

    def __init__(self) -> None:
        self.named: dict[str, Raw] = {}
        self._open: set[str] = set()
        self._levels: dict[str, int] = {}
        self._nodes = 0

    def clean(self, schema: Raw, namespace: str, depth: int) -> Raw:
        """Return the schema with full names and nothing superfluous."""
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise Corrupt("the Avro schema is too large.")
        match schema:
            case str():
                return self._reference(schema, namespace)
            case list():
                return self._union(schema, namespace, depth)
            case {"type": str(kind)} if kind in _PRIMITIVES:
                return kind
            case {"type": "array", "items": items}:
                return {"type": "array", "items": self.clean(items, namespace, depth + 1)}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.clean(values, namespace, depth + 1)}
            case {"type": "record", "name": str(name), "fields": list(fields)}:
                return self._record(_full_name(name, schema, namespace), fields, depth)
            case {"type": "enum", "name": str(name), "symbols": list(symbols)}:
                return self._define(
                    _full_name(name, schema, namespace),
                    {"type": "enum", "symbols": [str(symbol) for symbol in symbols]},
                )
            case {"type": "fixed", "name": str(name), "size": int(size)} if size > 0:
                return self._define(
                    _full_name(name, schema, namespace), {"type": "fixed", "size": size}
                )
            case {"type": dict() | list() as inner}:
                return self.clean(inner, namespace, depth + 1)
            case _:
                raise Corrupt("the Avro schema holds a type that is not known or has no width.")

    def _union(self, branches: list[Raw], namespace: str, depth: int) -> list[Raw]:
        return [
            "null"
            if branch in ("null", {"type": "null"})
            else self.clean(branch, namespace, depth + 1)
            for branch in branches
        ]

    def _reference(self, name: str, namespace: str) -> str:
        if name in _PRIMITIVES:
            return name
        for full in (name, f"{namespace}.{name}"):
            if full in self._open:
                raise Corrupt(f"the Avro schema is recursive at {full}.")
            if full in self.named:
                return full
        raise Corrupt(f"the Avro schema names an unknown type {name[:100]!r}.")

    def _define(self, name: str, schema: dict[str, Raw]) -> dict[str, Raw]:
        if name in self.named:
            raise Corrupt(f"the Avro schema defines {name[:100]} twice.")
        self.named[name] = {**schema, "name": name}
        return {**schema, "name": name}

    def _record(self, name: str, fields: list[Raw], depth: int) -> dict[str, Raw]:
        if not fields:
            raise Corrupt(f"the Avro record {name[:100]} has no fields.")
        self._open.add(name)
        namespace = name.rpartition(".")[0]
        cleaned = []
        for field in fields:
            match field:
                case {"name": str(field_name), "type": kind}:
                    cleaned.append(
                        {"name": field_name, "type": self.clean(kind, namespace, depth + 1)}
                    )
                case _:
                    raise Corrupt(f"the Avro record {name[:100]} has a field without a name.")
        self._open.discard(name)
        self._levels[name] = 1 + max(self._bare_levels(field["type"]) for field in cleaned)
        if self._levels[name] > _MAX_BARE_LEVELS:
            raise Corrupt(f"the Avro record {name[:100]} nests records too deeply.")
        return self._define(name, {"type": "record", "fields": cleaned})

    def _bare_levels(self, schema: Raw) -> int:
        name = schema.get("name") if isinstance(schema, dict) else schema
        return self._levels.get(name, 0) if isinstance(name, str) else 0


def _full_name(name: str, schema: dict[str, Raw], namespace: str) -> str:
    space = schema.get("namespace", namespace)
    return f"{space}.{name}" if space and "." not in name else name


def _fit(schema: Raw, shape: Shape, where: str, named: dict[str, Raw]) -> None:
    """Check that every value of the schema is one that the shape can hold."""
    if isinstance(schema, list):
        _fit_union(schema, shape, where, named)
        return
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema if isinstance(schema, str) else schema["type"]
    match shape:
        case Nullable(inner):
            _fit(schema, inner, where, named)
        case Scalar(wanted) if kind in _FITS[wanted]:
            return
        case ListOf(items) if kind == "array":
            _fit(schema["items"], items, where, named)
        case MapOf(values) if kind == "map":
            _fit(schema["values"], values, where, named)
        case RecordOf() if kind == "record":
            _fit_record(schema, shape, named)
        case _:
            raise Corrupt(f"the Avro schema has {kind} for {where}.")


def _fit_union(branches: list[Raw], shape: Shape, where: str, named: dict[str, Raw]) -> None:
    for branch in branches:
        if branch != "null":
            _fit(branch, shape, where, named)
        elif not isinstance(shape, Nullable):
            raise Corrupt(f"the Avro schema has null for {where}.")


def _fit_record(schema: dict[str, Raw], shape: RecordOf[Any], named: dict[str, Raw]) -> None:
    fields = {field["name"]: field["type"] for field in schema["fields"]}
    for member in shape.members:
        if member.name in fields:
            _fit(fields[member.name], member.shape, f"{shape.name}.{member.name}", named)
        elif member.default is REQUIRED and not isinstance(member.shape, Nullable):
            raise Corrupt(f"the Avro schema lacks {shape.name}.{member.name}.")
