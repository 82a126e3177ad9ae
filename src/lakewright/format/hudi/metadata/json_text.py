"""The JSON bodies of layout 1: the same records as in Avro, pretty-printed."""

import functools
import json
from collections.abc import Iterable
from typing import Any, TypeVar

from lakewright.format.hudi.metadata.shapes import (
    ListOf,
    MapOf,
    Member,
    Nullable,
    Raw,
    RecordOf,
    Scalar,
    Shape,
    reader,
    writer,
)
from lakewright.model.errors import Corrupt

T = TypeVar("T")

_TYPES: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "int": frozenset({int}),
    "long": frozenset({int}),
    "double": frozenset({int, float}),
    "boolean": frozenset({bool}),
}


def decode_json(data: bytes, path: str, shape: RecordOf[T]) -> T:
    """Return the value that ``shape`` builds from JSON text; unknown keys are ignored."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as cause:
        raise Corrupt(
            f"{path}: neither Avro nor JSON ({cause}).",
            next_step="The file is damaged or was cut off; restore it from a copy.",
            path=path,
            offset=getattr(cause, "pos", 0),
        ) from cause
    fault = _fault(fields, shape, shape.name)
    if fault:
        raise Corrupt(
            f"{path}: {fault}.",
            next_step="The file is damaged or was written by something else.",
            path=path,
        )
    value: T = reader(shape)(fields)
    return value


def _fault(value: Raw, shape: Shape, where: str) -> str | None:
    """Return what is wrong with a value, or None."""
    match shape:
        case Scalar(avro):
            return None if type(value) in _TYPES[avro] else f"{where} is no {avro}"
        case Nullable(inner):
            return None if value is None else _fault(value, inner, where)
        case ListOf(items):
            if type(value) is not list:
                return f"{where} is no list"
            return _first(_fault(item, items, where) for item in value)
        case MapOf(values):
            if type(value) is not dict:
                return f"{where} is no object"
            return _first(_fault(item, values, where) for item in value.values())
        case RecordOf():
            return _record_fault(value, shape, where)


def _first(faults: Iterable[str | None]) -> str | None:
    return next((fault for fault in faults if fault), None)


def _record_fault(value: Raw, shape: RecordOf[Any], where: str) -> str | None:
    if type(value) is not dict:
        return f"{where} is no object"
    names, allowed, nested = _expected(shape)
    # One pass in C over the types; commits hold a hundred thousand of these records.
    if all(map(frozenset.__contains__, allowed, map(type, map(value.get, names)))):
        return _first(_fault(value.get(m.name), m.shape, m.name) for m in nested)
    return _first(_fault(value.get(m.name), m.shape, m.name) for m in shape.members)


@functools.cache
def _expected(
    shape: RecordOf[Any],
) -> tuple[list[str], list[frozenset[type]], list[Member]]:
    """Return the names and types of the plain members, and the members that have parts."""
    names, allowed, nested = [], [], []
    for member in shape.members:
        bare, null = member.shape, frozenset[type]()
        if isinstance(bare, Nullable):
            bare, null = bare.shape, frozenset({type(None)})
        if isinstance(bare, Scalar):
            names.append(member.name)
            allowed.append(_TYPES[bare.avro] | null)
        else:
            nested.append(member)
    return names, allowed, nested


def encode_json(
    value: object, shape: RecordOf[Any], *, omit: frozenset[str] = frozenset()
) -> bytes:
    """Write a value as pretty-printed JSON, ``"key" : value``, two spaces per level."""
    fields = writer(shape)(value)
    kept = {key: field for key, field in fields.items() if key not in omit}
    return json.dumps(kept, ensure_ascii=False, indent=2, separators=(",", " : ")).encode()
