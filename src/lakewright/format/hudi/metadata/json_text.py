"""The JSON bodies of layout 1: the same records as in Avro, pretty-printed as Jackson does."""

import json
from typing import Any, TypeVar

from lakewright.format.hudi.metadata.shapes import (
    ListOf,
    MapOf,
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

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "long": (int,),
    "double": (int, float),
    "boolean": (bool,),
}
_LIMITS = {"int": 1 << 31, "long": 1 << 63}


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
            return _scalar_fault(value, avro, where)
        case Nullable(inner):
            return None if value is None else _fault(value, inner, where)
        case ListOf(items):
            if type(value) is not list:
                return f"{where} is no list"
            return _first(items, value, where)
        case MapOf(values):
            if type(value) is not dict:
                return f"{where} is no object"
            return _first(values, value.values(), where)
        case RecordOf(members=members):
            if type(value) is not dict:
                return f"{where} is no object"
            for member in members:
                found = value.get(member.name)
                if found is None and isinstance(member.shape, Nullable):
                    continue
                fault = _fault(found, member.shape, member.name)
                if fault:
                    return fault
            return None


def _first(shape: Shape, values: Raw, where: str) -> str | None:
    for value in values:
        fault = _fault(value, shape, where)
        if fault:
            return fault
    return None


def _scalar_fault(value: Raw, avro: str, where: str) -> str | None:
    if type(value) not in _TYPES[avro]:
        return f"{where} is no {avro}"
    limit = _LIMITS.get(avro)
    if limit is not None and not -limit <= value < limit:
        return f"{where} is too large for {avro}"
    return None


def encode_json(
    value: object, shape: RecordOf[Any], *, omit: frozenset[str] = frozenset()
) -> bytes:
    """Write a value as Jackson's pretty printer does: ``"key" : value``, two spaces per level."""
    fields = writer(shape)(value)
    kept = {key: field for key, field in fields.items() if key not in omit}
    return _pretty(kept, "").encode()


def _pretty(value: Raw, indent: str) -> str:
    if isinstance(value, dict):
        if not value:
            return "{ }"
        inner = indent + "  "
        lines = [f"{inner}{_text(k)} : {_pretty(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list):
        if not value:
            return "[ ]"
        return "[ " + ", ".join(_pretty(item, indent) for item in value) + " ]"
    return _text(value)


def _text(value: Raw) -> str:
    return json.dumps(value, ensure_ascii=False)
