"""CREATE TABLE under Hudi's names, and the statement that would create a table again."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.config import KEY_GENERATOR_CLASS, KEY_GENERATOR_TYPE
from lakewright.interfaces.sql.names import quoted, text_literal
from lakewright.interfaces.sql.statements import CreateTable
from lakewright.model.errors import Invalid
from lakewright.model.expression.types import sql_type
from lakewright.model.options import parse_names
from lakewright.model.schema import DataType, Field, List, Map, Struct
from lakewright.model.table import TableDef

_KEY = ("primaryKey", "hoodie.datasource.write.recordkey.field", "hoodie.table.recordkey.fields")
_ORDERING = (
    "preCombineField",
    "orderingFields",
    "hoodie.table.ordering.fields",
    "hoodie.datasource.write.precombine.field",
    "hoodie.table.precombine.field",
)
_TYPE = ("type", "table.type", "hoodie.datasource.write.table.type", "hoodie.table.type")
_INDEX = ("index.type", "hoodie.index.type")
_VERSION = ("hoodie.write.table.version", "hoodie.table.version")
_PARTITIONS = ("hoodie.datasource.write.partitionpath.field", "hoodie.table.partition.fields")
#: Hudi's names for the generator on writing, and those under which a table keeps it.
_GENERATORS = {
    "hoodie.datasource.write.keygenerator.class": KEY_GENERATOR_CLASS,
    "hoodie.datasource.write.keygenerator.type": KEY_GENERATOR_TYPE,
}
_MERGE_MODE = ("hoodie.record.merge.mode", "hoodie.write.record.merge.mode")
#: The names that SQL alone has for properties.
_SHORT = ("primaryKey", "preCombineField", "orderingFields", "type", "table.type", "index.type")
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
#: Properties that follow from other clauses of the statement.
_DERIVED = frozenset(
    {
        "hoodie.table.name",
        "hoodie.database.name",
        "hoodie.table.checksum",
        "hoodie.table.create.schema",
        "hoodie.table.partition.fields",
        "hoodie.table.initial.version",
        "hoodie.timeline.layout.version",
        "hoodie.timeline.path",
        "hoodie.timeline.history.path",
        "hoodie.archivelog.folder",
        "hoodie.table.format",
        "hoodie.table.keygenerator.type",
        "hoodie.table.keygenerator.class",
        "hoodie.compaction.payload.class",
        "hoodie.table.timeline.timezone",
        "hoodie.table.base.file.format",
        "hoodie.populate.meta.fields",
    }
)


def create_arguments(statement: CreateTable, columns: Struct) -> dict[str, Any]:
    """Return the arguments of ``Lake.create_table``; as in Spark partition columns come last."""
    rest = dict(statement.properties)
    key = parse_names(_take(rest, _KEY) or "")
    kind = (_take(rest, _TYPE) or "cow").lower()
    version = _take(rest, _VERSION)
    mode = _take(rest, _MERGE_MODE)
    index = _take(rest, _INDEX)
    ordering = parse_names(_take(rest, _ORDERING) or "")
    for written, stored in _GENERATORS.items():
        if (generator := _take(rest, (written, stored))) is not None:
            rest[stored] = generator
    partition_by = _partitions(rest, statement.partition_by)
    _check_names(rest)
    return {
        "schema": sql_columns(columns, statement.partition_by),
        "key": key or None,
        "partition_by": partition_by,
        "order_by": ordering or None,
        "type": _TYPES.get(kind, kind),
        "location": statement.location,
        "properties": rest,
        **({"version": _whole(version)} if version is not None else {}),
        **({"merge_mode": mode} if mode is not None else {}),
        **({"index": index} if index is not None else {}),
    }


def _partitions(rest: dict[str, str], named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the partition columns; a property may add how each is formatted (``at:TIMESTAMP``).

    One that names other columns is left where it is, to be refused with the rest of the request.
    """
    for key in [key for key in rest if key.lower() in _PARTITIONS]:
        fields = parse_names(rest[key])
        if tuple(field.partition(":")[0] for field in fields) == named:
            del rest[key]
            named = fields if any(":" in field for field in fields) else named
    return named


def _check_names(rest: Mapping[str, str]) -> None:
    """Refuse a name that is none of SQL's own, with the nearest of those."""
    for key in rest:
        if not key.startswith(("hoodie.", "lakewright.")):
            near = get_close_matches(key, _SHORT, 1)
            raise Invalid(
                f"unknown property {key}.",
                next_step=f"Did you mean {near[0]}?"
                if near
                else f"Known: {', '.join(_SHORT)}, and names that start with 'hoodie.' or "
                "'lakewright.'.",
                key=key,
            )


def _take(properties: dict[str, str], names: tuple[str, ...]) -> str | None:
    """Take an entry out under whichever of its names it has; two that differ are refused."""
    lowered = {key.lower(): key for key in properties}
    given = {n: properties.pop(lowered[n.lower()]) for n in names if n.lower() in lowered}
    if len(set(given.values())) > 1:
        raise Invalid(f"{' and '.join(given)} differ.", next_step="Give one of them.")
    return next(iter(given.values()), None)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as cause:
        raise Invalid(
            f"table version {text!r} is no number.", next_step="Allowed: 6, 9."
        ) from cause


def sql_columns(columns: Struct, partition_by: tuple[str, ...]) -> Struct:
    """Return columns in the order that they have in SQL: those of partitions come last."""
    last = [name for name in partition_by if name in columns]
    plain = [f for f in columns if f.name not in last]
    return Struct((*plain, *(columns.field(name) for name in last)))


def show_create(name: str, table: TableDef) -> str:
    """Return a CREATE TABLE statement that makes a table like this one."""
    partitions = table.partition_by
    columns = sql_columns(_as_created(table), partitions)
    lines = ",\n".join(f"  {_column(field)}" for field in columns)
    entries = _entries(table)
    shown = ",\n".join(f"  {text_literal(k)} = {text_literal(v)}" for k, v in entries.items())
    by = f"PARTITIONED BY ({', '.join(quoted(p) for p in partitions)})\n" if partitions else ""
    return (
        f"CREATE TABLE {quoted(*name.split('.'))} (\n{lines})\nUSING hudi\n{by}"
        f"TBLPROPERTIES (\n{shown})"
    )


def _as_created(table: TableDef) -> Struct:
    """Return the columns; one that a generator formats has the type of its values, not of paths."""
    text = table.properties.get("hoodie.table.create.schema")
    created = parse_avro_schema(text) if text else table.schema
    return Struct(
        tuple(
            replace(field, type=created.find(field.name) or field.type)
            if field.name in table.partition_by
            else field
            for field in table.schema
        )
    )


def _entries(table: TableDef) -> Mapping[str, str]:
    named = (*_KEY, *_ORDERING, *_TYPE, *_VERSION)
    own = {
        k: v
        for k, v in sorted(table.properties.items())
        if k not in (*_DERIVED, *named) or _formats_times(k, v)
    }
    kind = {v: k for k, v in _TYPES.items()}[table.table_type.value]
    return {
        **({"primaryKey": ",".join(table.record_key)} if table.record_key else {}),
        **({"orderingFields": ",".join(table.ordering)} if table.ordering else {}),
        "type": kind,
        "hoodie.table.version": str(table.version),
        **own,
    }


def _formats_times(key: str, value: str) -> bool:
    """Say whether a property tells what PARTITIONED BY cannot: values that are formatted."""
    if key in (KEY_GENERATOR_TYPE, KEY_GENERATOR_CLASS):
        return any(word in value.upper() for word in ("TIMESTAMP", "CUSTOM"))
    return key == "hoodie.table.partition.fields" and ":" in value


def _column(field: Field) -> str:
    null = "" if field.nullable else " NOT NULL"
    comment = f" COMMENT {text_literal(field.doc)}" if field.doc else ""
    return f"{quoted(field.name)} {written_type(field.type)}{null}{comment}"


def written_type(kind: DataType) -> str:
    """Write a type for a statement; members of structs are quoted."""
    match kind:
        case Struct(fields):
            members = ", ".join(f"{quoted(f.name)}: {written_type(f.type)}" for f in fields)
            return f"STRUCT<{members}>"
        case List(element):
            return f"ARRAY<{written_type(element)}>"
        case Map(value, key):
            return f"MAP<{written_type(key)}, {written_type(value)}>"
        case _:
            return sql_type(kind)
