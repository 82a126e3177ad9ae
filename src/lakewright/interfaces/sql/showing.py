"""SHOW and DESCRIBE."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.interfaces.sql.bucket_rules import described, with_rules
from lakewright.interfaces.sql.creating import show_create, sql_columns
from lakewright.interfaces.sql.names import no_table
from lakewright.interfaces.sql.procedures.known import all_procedures
from lakewright.interfaces.sql.results import table_of
from lakewright.interfaces.sql.statements import Describe, Show
from lakewright.model.errors import NotFound, TableNotFound
from lakewright.model.expression.types import sql_type

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table

Row = Mapping[str, object]


def open_named(lake: "Lake", name: str) -> "Table":
    """Open a table; an unknown name is answered with the nearest known ones."""
    try:
        return lake.table(name)
    except TableNotFound as error:
        known = lake.tables()
        if name in known or f"default.{name}" in known or "dropped" in error.message:
            raise
        raise no_table(name, known) from error


def _texts(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


def show(lake: "Lake", statement: Show) -> pa.Table:
    """Answer SHOW."""
    match statement.what:
        case "DATABASES":
            names = _like(lake.databases(), statement.pattern)
            return table_of(_texts("namespace"), ({"namespace": n} for n in names))
        case "TABLES":
            return table_of(_texts("namespace", "tableName"), _tables(lake, statement))
        case "PROCEDURES":
            return table_of(_texts("procedure", "usage", "description"), _procedures(statement))
        case _:
            return _show_table(open_named(lake, statement.name or ""), statement)


def _show_table(table: "Table", statement: Show) -> pa.Table:
    match statement.what:
        case "COLUMNS":
            columns = sql_columns(table.definition.schema, table.definition.partition_by)
            rows = ({"col_name": name} for name in columns.names)
            return table_of(_texts("col_name"), rows)
        case "PARTITIONS":
            return table_of(_texts("partition"), _partitions(table, statement))
        case "TBLPROPERTIES":
            return table_of(_texts("key", "value"), _properties(table, statement.pattern))
        case _:
            definition = table.definition
            told = replace(definition, properties=with_rules(table, definition.properties))
            made = {"createtab_stmt": show_create(table.name, told)}
            return table_of(_texts("createtab_stmt"), [made])


def _like(names: list[str], pattern: str | None) -> list[str]:
    """Keep names as Spark does: ``*`` stands for anything, ``|`` between alternatives."""
    if pattern is None:
        return names
    parts = (
        re.escape(p.strip()).replace(r"\*", ".*").replace("%", ".*") for p in pattern.split("|")
    )
    wanted = re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)
    return [name for name in names if wanted.fullmatch(name)]


def _tables(lake: "Lake", statement: Show) -> Iterator[Row]:
    if statement.name is not None and statement.name not in lake.databases():
        raise NotFound(
            f"no database {statement.name}.",
            next_step=f"Known: {', '.join(lake.databases()) or 'none'}.",
        )
    for full in lake.tables():
        database, _, name = full.rpartition(".")
        if statement.name in (None, database) and _like([name], statement.pattern):
            yield {"namespace": database, "tableName": name}


def _procedures(statement: Show) -> Iterator[Row]:
    for found in all_procedures():
        if _like([found.name], statement.pattern):
            yield {"procedure": found.name, "usage": found.usage(), "description": found.doc}


def _partitions(table: "Table", statement: Show) -> Iterator[Row]:
    wanted = {k: v for k, v in (statement.partition or {}).items() if v is not None}
    for partition in table.partitions():
        values = partition.values
        if all(str(values.get(name)) == str(value) for name, value in wanted.items()):
            yield {"partition": partition.path}


def _properties(table: "Table", key: str | None) -> Iterator[Row]:
    stored = with_rules(table, table.definition.properties)
    if key is not None and key not in stored:
        yield {"key": key, "value": f"Table {table.name} does not have property: {key}"}
    for name, value in sorted(stored.items()):
        if key in (None, name):
            yield {"key": name, "value": value}


def describe(lake: "Lake", statement: Describe) -> pa.Table:
    """Answer DESCRIBE, in Spark's form."""
    table = open_named(lake, statement.name)
    return table_of(_texts("col_name", "data_type", "comment"), _described(table, statement))


def _described(table: "Table", statement: Describe) -> Iterator[Row]:
    definition = table.definition
    for field in sql_columns(definition.schema, definition.partition_by):
        yield _line(field.name, sql_type(field.type).lower(), field.doc)
    if definition.partition_by:
        yield from (_line("# Partition Information"), _line("# col_name", "data_type", "comment"))
        for name in definition.partition_by:
            found = definition.schema.field(name)
            yield _line(name, sql_type(found.type).lower(), found.doc)
    if statement.extended:
        latest = table.timeline.latest_data()
        facts = {
            "Name": table.name,
            "Location": table.path,
            "Provider": "hudi",
            "Type": definition.table_type.value,
            "Version": str(definition.version),
            "Record Key": ", ".join(definition.record_key),
            "Ordering": ", ".join(definition.ordering),
            "Merge Mode": definition.merge_mode.value,
            "Latest Instant": latest.requested if latest is not None else "",
            **described(table),
        }
        yield from (_line(""), _line("# Detailed Table Information"))
        yield from (_line(name, value) for name, value in facts.items())


def _line(name: str, kind: str = "", comment: str | None = None) -> Row:
    return {"col_name": name, "data_type": kind, "comment": comment}
