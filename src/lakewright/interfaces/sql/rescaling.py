"""INSERT OVERWRITE of partitions by their own rows: a rescale, where rules give other numbers."""

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lakewright.format.arrow.schema import from_arrow_schema
from lakewright.interfaces.sql.bucket_rules import rules_of
from lakewright.interfaces.sql.creating import sql_columns
from lakewright.interfaces.sql.names import parts_of
from lakewright.interfaces.sql.querying import zone_of
from lakewright.interfaces.sql.read_parts import expression
from lakewright.interfaces.sql.results import written
from lakewright.interfaces.sql.showing import open_named
from lakewright.interfaces.sql.statements import Insert
from lakewright.interfaces.sql.text import parse_sql
from lakewright.model.expression.analyse import references
from lakewright.model.expression.bind import bind
from lakewright.model.expression.nodes import (
    And,
    Comparator,
    Comparison,
    Expression,
    InZone,
    Literal,
    Reference,
)
from lakewright.model.writing import Operation, PartitionWritten, WriteResult

if TYPE_CHECKING:
    from lakewright.actions.buckets.rescale import RescaleResult
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table


def rescaled(lake: "Lake", statement: Insert) -> pa.Table | None:
    """Carry out an INSERT OVERWRITE of a table by its own rows as a rescale; else None.

    It is one where whole partitions are overwritten by the rows that they hold, and the rules
    give some of them another number of buckets than they have.
    """
    if not statement.overwrite:
        return None
    table = open_named(lake, statement.name)
    if rules_of(table) is None:
        return None
    chosen = _own_partitions(table, statement, zone_of(lake))
    if chosen is None:
        return None
    plan = table.buckets.plan_rescale(chosen or None)
    if not plan.items:
        return None
    return written(_result(plan.apply()))


def _result(result: "RescaleResult") -> WriteResult:
    return WriteResult(
        Operation.INSERT_OVERWRITE,
        result.instant,
        {
            path: PartitionWritten(
                inserted=one.rows,
                files=one.files_written,
                bytes=one.bytes_written,
                replaced_groups=one.groups,
            )
            for path, one in result.partitions.items()
        },
    )


def _own_partitions(table: "Table", statement: Insert, zone: str | None) -> list[str] | None:
    """Return the partitions that a statement overwrites by themselves; none for the whole table.

    None where the statement does anything else.
    """
    if statement.columns is not None:
        return None
    query = parse_sql(statement.query)
    if not isinstance(query, exp.Select) or not _is_plain(query):
        return None
    source = query.args["from_"].this if query.args.get("from_") else query.args["from"].this
    if not isinstance(source, exp.Table) or not _is_named(source, statement.name):
        return None
    given = statement.partition
    static = {name: value for name, value in (given or {}).items() if value is not None}
    if not _selects_all(table, statement, query, frozenset(static)):
        return None
    where = query.args.get("where")
    if where is None:
        # Rows of everywhere go where they are, unless the statement names one place for all.
        return None if static else []
    told = expression(where.this)
    if zone is not None:
        told = InZone(told, zone)
    if given is None or not _names_partitions(table, told):
        return None
    chosen = _partitions(table, told)
    for name, value in static.items():
        told = And(told, Comparison(Comparator.EQ, Reference((name,)), Literal(value)))
    return chosen if _partitions(table, told) == chosen else None


def _names_partitions(table: "Table", condition: Expression) -> bool:
    """Whether a condition is one of partition columns alone."""
    bound = bind(condition, from_arrow_schema(table.schema))
    named = {".".join(path) for path in references(bound)}
    return named <= set(table.definition.partition_by)


def _partitions(table: "Table", condition: Expression) -> list[str]:
    bound = bind(condition, from_arrow_schema(table.schema))
    return sorted(partition.path for partition in table.files.partitions([bound]))


def _is_plain(query: exp.Select) -> bool:
    """Whether a query is SELECT … FROM one source [WHERE …] and no more."""
    allowed = {"expressions", "from", "from_", "where", "kind"}
    given = {name for name, value in query.args.items() if value}
    return given <= allowed and ("from" in given or "from_" in given)


def _is_named(source: exp.Table, name: str) -> bool:
    if source.args.get("alias") or any(
        source.args.get(part) for part in ("version", "when", "joins", "sample", "pivots")
    ):
        return False
    full = name if "." in name else f"default.{name}"
    own = ".".join(parts_of(source))
    return (own if "." in own else f"default.{own}").lower() == full.lower()


def _selects_all(
    table: "Table", statement: Insert, query: exp.Select, static: frozenset[str]
) -> bool:
    """Whether the query has every column at its own place."""
    definition = table.definition
    columns = sql_columns(definition.schema, definition.partition_by).names
    wanted = [name for name in columns if name not in static]
    selected = query.expressions
    if len(selected) == 1 and isinstance(selected[0], exp.Star):
        whole = not any(selected[0].args.values())
        return whole and not static and definition.schema.names == columns
    if statement.by_name:
        return False
    names = [one.name for one in selected if isinstance(one, exp.Column)]
    return names == wanted and len(names) == len(selected)
