"""Carrying out statements, one after the other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.index.layout import PARTITION_RULES
from lakewright.interfaces.sql import changing
from lakewright.interfaces.sql.bucket_rules import set_rules
from lakewright.interfaces.sql.creating import create_arguments, written_type
from lakewright.interfaces.sql.forms import check_forms
from lakewright.interfaces.sql.procedures.known import find_procedure
from lakewright.interfaces.sql.querying import Rows, run_query
from lakewright.interfaces.sql.read import read_statement
from lakewright.interfaces.sql.rescaling import rescaled
from lakewright.interfaces.sql.results import NOTHING, Answer, answer, done, table_of, written
from lakewright.interfaces.sql.showing import describe, open_named, show
from lakewright.interfaces.sql.spark_texts import for_spark
from lakewright.interfaces.sql.statements import (
    AddColumns,
    AlterTable,
    Call,
    ChangeType,
    CreateDatabase,
    CreateTable,
    Delete,
    Describe,
    DropDatabase,
    DropPartitions,
    DropTable,
    Insert,
    Merge,
    Other,
    Query,
    SetProperties,
    Show,
    Statement,
    Truncate,
    Update,
)
from lakewright.interfaces.sql.text import piece, pieces, unknown_statement
from lakewright.model.errors import AlreadyExists, CommitStateUnknown, Invalid
from lakewright.model.schema import Struct

if TYPE_CHECKING:
    from lakewright.api.lake import Lake


class SqlStatements:
    """Runs SQL over a lake; see ``lakewright.api.lake.Statements``."""

    def run(self, lake: "Lake", text: str) -> Answer:
        """Carry out a script; return the answer of its last statement."""
        last: Answer | None = None
        for last in self.each(lake, text):  # noqa: B007 - only the last is wanted
            pass
        if last is None:
            raise Invalid("there is no statement.", next_step="Write one, such as SHOW TABLES.")
        return last

    def each(self, lake: "Lake", text: str) -> Iterator[Answer]:
        """Carry out a script, and give each answer before the next statement runs.

        The whole script is read first: one that has a mistake changes nothing.
        """
        written = list(pieces(text))
        statements = [read_statement(one) for one in written]
        check_forms(lake, written, statements)
        for one, statement in zip(written, statements, strict=True):
            yield carry_out(lake, statement, one.text)


def carry_out(lake: "Lake", statement: Statement, text: str) -> Answer:
    """Carry out one statement; ``text`` is what it was read from."""
    match statement:
        case Query(query, prefix):
            return _collected(run_query(lake, query, prefix))
        case Other():
            return _other(lake, text)
        case _ if lake.spark is None:
            return _own(lake, statement)
        case _:
            from lakewright.engine.spark.query import computing

            with computing(text):
                return answer(_own(lake, statement), lake.spark)


def _collected(rows: Rows) -> Answer:
    return rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows


def _other(lake: "Lake", text: str) -> Answer:
    if lake.spark is None:
        raise unknown_statement(piece(text))
    from lakewright.engine.spark.query import run_text

    return run_text(lake.spark, [for_spark(text)], [])


def _own(lake: "Lake", statement: Statement) -> pa.Table:
    match statement:
        case Insert():
            moved = rescaled(lake, statement)
            return written(changing.insert(lake, statement)) if moved is None else moved
        case Update():
            return written(changing.update(lake, statement))
        case Delete():
            return written(changing.delete(lake, statement))
        case Merge():
            return written(changing.merge(lake, statement))
        case Truncate():
            return written(changing.truncate(lake, statement))
        case CreateTable():
            return _create_table(lake, statement)
        case AlterTable():
            return _alter(lake, statement)
        case DropTable(name, if_exists, purge):
            gone = if_exists and not _is_table(lake, name)
            lake.drop_table(name, cascade=purge, if_exists=if_exists)
            if gone:
                return done(f"there is no table {name}")
            return done(f"table {name} dropped{' with its files' if purge else ''}")
        case CreateDatabase(name, if_not_exists):
            there = if_not_exists and name in lake.databases()
            lake.create_database(name, if_not_exists=if_not_exists)
            return done(f"database {name} {'is there already' if there else 'created'}")
        case DropDatabase(name, if_exists, cascade):
            gone = if_exists and name not in lake.databases()
            lake.drop_database(name, if_exists=if_exists, cascade=cascade)
            return done(f"there is no database {name}" if gone else f"database {name} dropped")
        case Describe():
            return describe(lake, statement)
        case Show():
            return show(lake, statement)
        case Call(name, positional, named):
            return table_of(*find_procedure(name).call(lake, positional, named))
        case Query() | Other():
            return NOTHING
        case _:
            assert_never(statement)


def _create_table(lake: "Lake", statement: CreateTable) -> pa.Table:
    if statement.query is None:
        if statement.columns is None:
            return _register(lake, statement)
        arguments = create_arguments(statement, statement.columns)
        there = statement.if_not_exists and _is_table(lake, statement.name)
        lake.create_table(statement.name, if_not_exists=statement.if_not_exists, **arguments)
        return done(f"table {statement.name} {'is there already' if there else 'created'}")
    if _exists(lake, statement):
        return done(f"table {statement.name} is there already")
    rows = run_query(lake, statement.query, stored=True)
    columns = _columns(rows)
    arguments = create_arguments(statement, columns)
    table = lake.create_table(statement.name, **arguments)
    try:
        # The rows are matched by name: partition columns may have changed their place.
        by_name = Insert(statement.name, statement.query, by_name=True)
        with changing.refused_rows(rows):
            return written(table.bulk_insert(changing.matched(table, by_name, rows)))
    except CommitStateUnknown:
        raise  # its rows may be there
    except BaseException:
        # The table is this statement's own: without its rows nobody asked for it. A folder that
        # the user named may hold more than the table, and stays.
        timeline = table.timeline
        if statement.location is None and not (timeline.data() or timeline.pending()):
            lake.drop_table(statement.name, cascade=True)
        raise


def _register(lake: "Lake", statement: CreateTable) -> pa.Table:
    """Give a name to a table that lies somewhere already."""
    if statement.location is None:
        raise Invalid(
            "CREATE TABLE needs columns.",
            next_step="Write (name type, …), AS SELECT …, or the LOCATION of a table that exists.",
        )
    if _exists(lake, statement):
        return done(f"table {statement.name} is there already")
    lake.register_table(statement.name, statement.location)
    return done(f"table {statement.name} is at {statement.location}")


def _is_table(lake: "Lake", name: str) -> bool:
    return (name if "." in name else f"default.{name}") in lake.tables()


def _exists(lake: "Lake", statement: CreateTable) -> bool:
    if not _is_table(lake, statement.name):
        return False
    if not statement.if_not_exists:
        raise AlreadyExists(
            f"there is a table {statement.name} already.",
            next_step="Write CREATE TABLE IF NOT EXISTS, or INSERT INTO.",
        )
    return True


def _columns(rows: Rows) -> Struct:
    if isinstance(rows, pa.RecordBatchReader):
        return from_arrow_schema(rows.schema)
    from lakewright.engine.spark.schema import from_spark_schema

    return from_spark_schema(rows.schema)


def _alter(lake: "Lake", statement: AlterTable) -> pa.Table:
    table = open_named(lake, statement.name)
    match statement.change:
        case AddColumns(columns):
            table.add_columns(Struct(columns))
            return done(f"columns {', '.join(c.name for c in columns)} added")
        case ChangeType(column, field):
            table.widen_column(column, Struct((field,)))
            return done(f"column {column} is {written_type(field.type).lower()} now")
        case SetProperties(changes, if_exists) if PARTITION_RULES.key in changes:
            return set_rules(table, changes, if_exists=if_exists)
        case SetProperties(changes, if_exists):
            table.set_properties(changes, if_exists=if_exists)
            return done(f"properties {', '.join(changes)} changed")
        case DropPartitions(partitions):
            return written(changing.drop_partitions(table, partitions))
        case _:
            assert_never(statement.change)
