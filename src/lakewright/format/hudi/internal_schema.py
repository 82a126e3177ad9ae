"""Schemas with field ids: how a table with schema-on-read remembers renames and drops.

Each change of such a table writes the schema, with an id per field, into the commit (under
``latest_schema``) and the whole history into ``.hoodie/.schema/<instant>.schemacommit``. A file
is read under the schema that held when it was written: ids tell which of its columns is which
of the table's today.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    List,
    Map,
    Struct,
    Time,
    Timestamp,
    Unit,
)
from lakewright.storage.port import Storage

Path: TypeAlias = tuple[str, ...]

FOLDER = ".hoodie/.schema"
_ENDING = ".schemacommit"
_MAX_DEPTH = 64
_ELEMENT, _KEY, _VALUE = "element", "key", "value"
_FIXED = re.compile(r"fixed\[(\d+)\]")
_DECIMAL = re.compile(r"decimal(?:_bytes|_fixed)?\((\d+),\s*(\d+)\)(?:\[\d+\])?")
_NAMED: Mapping[str, DataType] = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "uuid": STRING,
    "binary": BINARY,
    "date": DATE,
    "time": Time(Unit.MICROS),
    "time_millis": Time(Unit.MILLIS),
    "timestamp": Timestamp(Unit.MICROS),
    "timestamp_millis": Timestamp(Unit.MILLIS),
    "local_timestamp_millis": Timestamp(Unit.MILLIS, utc=False),
    "local_timestamp_micros": Timestamp(Unit.MICROS, utc=False),
}
_NAMES = {kind: name for name, kind in _NAMED.items() if name != "uuid"}


@dataclass(frozen=True, slots=True)
class InternalSchema:
    """A schema as of ``version`` (the instant that made it, as a number).

    ``ids`` gives the id of every field by its path; lists and maps have ids for ``element``,
    ``key`` and ``value`` too. ``max_id`` is the highest id ever given out.
    """

    version: int
    struct: Struct
    ids: Mapping[Path, int]
    max_id: int


def parse_internal_schema(text: str, path: str = "") -> InternalSchema:
    """Read one schema, as a commit's ``latest_schema`` has it."""
    return _schema(_json(text, path), path)


def render_internal_schema(schema: InternalSchema) -> str:
    """Write one schema as commits carry it."""
    return json.dumps(_document(schema), separators=(",", ":"), ensure_ascii=False)


def parse_history(data: bytes, path: str = "") -> tuple[InternalSchema, ...]:
    """Read a history file; oldest schema first."""
    try:
        document = _json(data.decode("utf-8"), path)
    except UnicodeDecodeError as cause:
        raise Corrupt(f"{path} is not UTF-8.", path=path) from cause
    schemas = document.get("schemas") if isinstance(document, dict) else None
    if not isinstance(schemas, list):
        raise Corrupt(f"{path} holds no list of schemas.", path=path)
    return tuple(sorted((_schema(s, path) for s in schemas), key=lambda s: s.version))


def render_history(schemas: Sequence[InternalSchema]) -> bytes:
    """Write a history file; Hudi keeps the newest schema first."""
    newest = sorted(schemas, key=lambda s: -s.version)
    document = {"schemas": [_document(schema) for schema in newest]}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def load_history(
    storage: Storage, is_committed: Callable[[str], bool]
) -> tuple[InternalSchema, ...]:
    """Read the newest history file whose instant is committed; empty where there is none."""
    instants = sorted(
        (stat.path.rsplit("/", 1)[-1].removesuffix(_ENDING), stat.path)
        for stat in storage.list(FOLDER)
        if stat.path.endswith(_ENDING) and not stat.path.rsplit("/", 1)[-1].startswith(".")
    )
    for instant, path in reversed(instants):
        # Tables of layout 2 write the completion time into these names too.
        if is_committed(instant.partition("_")[0]):
            return parse_history(storage.read(path), path)
    return ()


def history_path(instant: str) -> str:
    """Return the path of the history file that an instant writes."""
    return f"{FOLDER}/{instant}{_ENDING}"


def schema_at(history: Sequence[InternalSchema], instant: str) -> InternalSchema | None:
    """Return the schema under which ``instant`` wrote: the newest that is not younger."""
    limit = int(instant)
    older = [schema for schema in history if schema.version <= limit]
    return max(older, key=lambda s: s.version) if older else None


def renames(table: InternalSchema, file: InternalSchema) -> dict[Path, str]:
    """Return, for each field of the table that the file calls otherwise, the name it has there.

    A field whose id the file does not know gets the empty name, which no column has: it reads
    as null even where the file has a column of its name, since that one was dropped.
    """
    names = {number: path for path, number in file.ids.items()}
    found: dict[Path, str] = {}
    for path, number in table.ids.items():
        if path[-1] in (_ELEMENT, _KEY, _VALUE) and not _is_field(table.struct, path):
            continue
        there = names.get(number)
        if there is None:
            if path in file.ids:
                found[path] = ""
        elif there[-1] != path[-1]:
            found[path] = there[-1]
    return found


def _is_field(struct: Struct, path: Path) -> bool:
    """Say whether a path ends at a field of a struct, and not inside a list or map."""
    kind: DataType = struct
    for name in path:
        match kind:
            case Struct():
                is_field = True
                kind = kind.field(name).type
            case List():
                is_field, kind = False, kind.element
            case Map():
                is_field, kind = False, kind.key if name == _KEY else kind.value
            case _:
                return False
    return is_field


def _json(text: str, path: str) -> object:
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise Corrupt(
            f"a schema of {path or 'a commit'} is not JSON: {cause}.", path=path
        ) from cause
    return document


def _schema(document: object, path: str) -> InternalSchema:
    parser = _Parser(path)
    struct = parser.type(document, (), 0)
    if not isinstance(struct, Struct) or not isinstance(document, dict):
        raise parser.corrupt("the root is no record")
    version = parser.number(document.get("version_id", 0))
    highest = max(parser.ids.values(), default=0)
    return InternalSchema(
        version, struct, parser.ids, parser.number(document.get("max_column_id", highest))
    )


class _Parser:
    """One pass over a document; collects the ids by path."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.ids: dict[Path, int] = {}

    def corrupt(self, what: str) -> Corrupt:
        return Corrupt(f"bad schema in {self._path or 'a commit'}: {what}.", path=self._path)

    def number(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.corrupt(f"{value!r} is no number")
        return value

    def type(self, spec: object, where: Path, depth: int) -> DataType:
        if depth > _MAX_DEPTH:
            raise Unsupported(
                f"a schema nests deeper than {_MAX_DEPTH} levels.",
                next_step="Read it with the software that wrote it, and flatten it.",
                path=self._path,
            )
        if isinstance(spec, str):
            return self._leaf(spec)
        if not isinstance(spec, dict):
            raise self.corrupt(f"{spec!r} is no type")
        match spec.get("type"):
            case "record":
                return self._record(spec, where, depth)
            case "array":
                element = self._inner(spec, _ELEMENT, where, depth)
                return List(element, spec.get("element_optional") is not False)
            case "map":
                key = self._inner(spec, _KEY, where, depth)
                value = self._inner(spec, _VALUE, where, depth)
                return Map(value, key, spec.get("value_optional") is not False)
            case other:
                raise self.corrupt(f"unknown type {other!r}")

    def _inner(self, spec: dict[str, Any], name: str, where: Path, depth: int) -> DataType:
        self.ids[*where, name] = self.number(spec.get(f"{name}_id"))
        return self.type(spec.get(name), (*where, name), depth + 1)

    def _record(self, spec: dict[str, Any], where: Path, depth: int) -> Struct:
        fields = spec.get("fields")
        if not isinstance(fields, list):
            raise self.corrupt("a record without fields")
        made = []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise self.corrupt("a field without a name")
            path = (*where, field["name"])
            if path in self.ids:
                raise self.corrupt(f"the field {'.'.join(path)} occurs twice")
            number = self.ids[path] = self.number(field.get("id"))
            kind = self.type(field.get("type"), path, depth + 1)
            doc = field.get("doc")
            nullable = field.get("optional") is not False
            made.append(
                Field(path[-1], kind, nullable, doc if isinstance(doc, str) else None, number)
            )
        return Struct(tuple(made))

    def _leaf(self, text: str) -> DataType:
        name = text.lower().replace("-", "_")
        if name in _NAMED:
            return _NAMED[name]
        if found := _FIXED.fullmatch(name):
            return Fixed(int(found.group(1)))
        if found := _DECIMAL.fullmatch(name):
            precision, scale = int(found.group(1)), int(found.group(2))
            if 1 <= precision <= 38 and scale <= precision:
                return Decimal(precision, scale)
        raise self.corrupt(f"unknown type {text!r}")


def _document(schema: InternalSchema) -> dict[str, Any]:
    return {
        "max_column_id": schema.max_id,
        "version_id": schema.version,
        **_record_document(schema.struct, (), schema.ids),
    }


def _record_document(struct: Struct, where: Path, ids: Mapping[Path, int]) -> dict[str, Any]:
    fields = []
    for field in struct:
        path = (*where, field.name)
        entry = {
            "id": ids[path],
            "name": field.name,
            "optional": field.nullable,
            "type": _type_document(field.type, path, ids),
        }
        if field.doc is not None:
            entry["doc"] = field.doc
        fields.append(entry)
    return {"type": "record", "fields": fields}


def _type_document(kind: DataType, path: Path, ids: Mapping[Path, int]) -> object:
    match kind:
        case Struct():
            return _record_document(kind, path, ids)
        case List():
            return {
                "type": "array",
                "element_id": ids[*path, _ELEMENT],
                _ELEMENT: _type_document(kind.element, (*path, _ELEMENT), ids),
                "element_optional": kind.element_nullable,
            }
        case Map():
            return {
                "type": "map",
                "key_id": ids[*path, _KEY],
                _KEY: _type_document(kind.key, (*path, _KEY), ids),
                "value_id": ids[*path, _VALUE],
                _VALUE: _type_document(kind.value, (*path, _VALUE), ids),
                "value_optional": kind.value_nullable,
            }
        case Decimal():
            return f"decimal({kind.precision}, {kind.scale})"
        case Fixed():
            return f"fixed[{kind.size}]"
        case _:
            return _NAMES[kind]


def numbered(struct: Struct, version: int) -> InternalSchema:
    """Give every field of a schema an id, level by level, as Hudi does for a table's first one."""
    ids: dict[Path, int] = {}
    numbers = iter(range(1 << 31))
    _number(struct, (), ids, numbers)
    return InternalSchema(version, _with_ids(struct, (), ids), ids, len(ids) - 1)


def _number(kind: DataType, where: Path, ids: dict[Path, int], numbers: Iterator[int]) -> None:
    inner = list(_children(kind))
    for name, _ in inner:
        ids[*where, name] = next(numbers)
    for name, child in inner:
        _number(child, (*where, name), ids, numbers)


def _children(kind: DataType) -> Iterator[tuple[str, DataType]]:
    match kind:
        case Struct():
            yield from ((field.name, field.type) for field in kind)
        case List():
            yield _ELEMENT, kind.element
        case Map():
            yield _KEY, kind.key
            yield _VALUE, kind.value
        case _:
            return


def _with_ids(struct: Struct, where: Path, ids: Mapping[Path, int]) -> Struct:
    def renumber(kind: DataType, path: Path) -> DataType:
        match kind:
            case Struct():
                return _with_ids(kind, path, ids)
            case List():
                return List(renumber(kind.element, (*path, _ELEMENT)), kind.element_nullable)
            case Map():
                return Map(
                    renumber(kind.value, (*path, _VALUE)),
                    renumber(kind.key, (*path, _KEY)),
                    kind.value_nullable,
                )
            case _:
                return kind

    return Struct(
        tuple(
            Field(
                f.name, renumber(f.type, (*where, f.name)), f.nullable, f.doc, ids[*where, f.name]
            )
            for f in struct
        )
    )
