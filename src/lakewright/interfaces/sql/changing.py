"""Statements that change rows."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from lakewright.actions.rowlevel.clauses import Clause
from lakewright.actions.rowlevel.names import SOURCE, TARGET, with_references
from lakewright.interfaces.sql.creating import sql_columns
from lakewright.interfaces.sql.inserting import fitted, slots, with_types
from lakewright.interfaces.sql.querying import Rows, run_query, zone_of
from lakewright.interfaces.sql.showing import open_named
from lakewright.interfaces.sql.statements import (
    Delete,
    Insert,
    Merge,
    PartitionSpec,
    Truncate,
    Update,
)
from lakewright.model.errors import Invalid
from lakewright.model.expression.nodes import (
    And,
    Comparator,
    Comparison,
    Expression,
    InZone,
    IsNull,
    Literal,
    Reference,
)
from lakewright.model.options import declare
from lakewright.model.schema import Struct
from lakewright.model.writing import Operation, WriteResult

if TYPE_CHECKING:
    from lakewright.api.lake import Lake
    from lakewright.api.table import Table

Names = tuple[tuple[str, ...], ...]

_INSERTS = (Operation.INSERT, Operation.BULK_INSERT, Operation.UPSERT)


def _operation(text: str) -> Operation:
    """Read which verb INSERT INTO stands for."""
    found = Operation(text.strip().upper())
    if found not in _INSERTS:
        raise ValueError(text)
    return found


INSERT_OPERATION = declare(
    "hoodie.spark.sql.insert.into.operation",
    _operation,
    Operation.INSERT,
    doc="What INSERT INTO does in a table; a property of the table.",
    since="0.1",
    allowed="insert, bulk_insert, upsert",
)


def insert(lake: "Lake", statement: Insert) -> WriteResult:
    """Carry out INSERT INTO or OVERWRITE."""
    table = open_named(lake, statement.name)
    rows = matched(table, statement, run_query(lake, statement.query, stored=True))
    with refused_rows(rows):
        if not statement.overwrite:
            return _insert_into(table, rows)
        if statement.partition is None or not table.definition.partition_by:
            return table.insert_overwrite_table(rows)
        return table.insert_overwrite(rows)


def refused_rows(rows: Rows) -> AbstractContextManager[None]:
    """Say in our words what Spark says of rows that do not fit the table."""
    if is_reader(rows):
        return nullcontext()
    from lakewright.engine.spark.assign import refusals

    return refusals()


def _insert_into(table: "Table", rows: Rows) -> WriteResult:
    match INSERT_OPERATION.read(table.definition.properties):
        case Operation.UPSERT:
            return table.upsert(rows)
        case Operation.BULK_INSERT:
            return table.bulk_insert(rows)
        case _:
            return table.insert(rows)


def matched(table: "Table", statement: Insert, rows: Rows) -> Rows:
    """Return the rows of a query as rows of the table."""
    partition_by = table.definition.partition_by
    columns = sql_columns(table.definition.schema, partition_by)
    if is_reader(rows):
        return fitted(rows, slots(statement, columns, partition_by, rows.schema.names))
    from lakewright.engine.spark.query import placed

    wanted = slots(statement, columns, partition_by, rows.columns)
    return placed(rows, [(slot.column, slot.place, slot.constant) for slot in wanted])


def typed(rows: Rows, table: Struct) -> Rows:
    """Return rows in which a column of nothing but NULL has a type, as the table has it."""
    kinds = {column.name: column.type for column in table}
    if is_reader(rows):
        return with_types(rows, kinds)
    from lakewright.engine.spark import query

    return query.with_types(rows, kinds)


def is_reader(rows: Rows) -> bool:
    """Whether rows are Arrow's."""
    return type(rows).__module__.startswith("pyarrow")


def update(lake: "Lake", statement: Update) -> WriteResult:
    """Carry out UPDATE."""
    table = open_named(lake, statement.name)
    names = {TARGET: _target_names(statement.name, statement.alias)}
    zone = zone_of(lake)
    values = {
        _unqualified(column, names[TARGET]): _sided(value, names, zone)
        for column, value in statement.values.items()
    }
    where = statement.where
    bare = {"": names[TARGET]}
    return table.update(values, None if where is None else _sided(where, bare, zone))


def delete(lake: "Lake", statement: Delete) -> WriteResult:
    """Carry out DELETE; without a condition the table is emptied."""
    table = open_named(lake, statement.name)
    if statement.where is None:
        return _empty(table)
    names = {"": _target_names(statement.name, statement.alias)}
    return table.delete(where=_sided(statement.where, names, zone_of(lake)))


def truncate(lake: "Lake", statement: Truncate) -> WriteResult:
    """Carry out TRUNCATE of a table, or of some of its partitions."""
    table = open_named(lake, statement.name)
    if statement.partition is None:
        return _empty(table)
    return drop_partitions(table, (statement.partition,))


def _empty(table: "Table") -> WriteResult:
    return table.insert_overwrite_table(table.schema.empty_table())


def drop_partitions(table: "Table", specs: Sequence[PartitionSpec]) -> WriteResult:
    """Delete the partitions that a statement names, wholly or by some of their columns."""
    columns = table.definition.partition_by
    if all(set(spec) == set(columns) and None not in spec.values() for spec in specs):
        return table.delete_partitions([dict(spec) for spec in specs])
    whole: Expression | None = None
    for spec in specs:
        part: Expression | None = None
        for name, value in spec.items():
            test = (
                IsNull(Reference((name,)))
                if value is None
                else Comparison(Comparator.EQ, Reference((name,)), Literal(value))
            )
            part = test if part is None else And(part, test)
        if part is None or set(spec) - set(columns):
            raise Invalid(
                f"{dict(spec)} names no partition.",
                next_step=f"The table is partitioned by {', '.join(columns) or 'nothing'}.",
            )
        whole = part if whole is None else whole | part
    assert whole is not None
    return table.delete(where=whole)


def merge(lake: "Lake", statement: Merge) -> WriteResult:
    """Carry out MERGE INTO."""
    table = open_named(lake, statement.name)
    names = {
        TARGET: _target_names(statement.name, statement.alias),
        SOURCE: statement.source_names,
    }
    zone = zone_of(lake)
    clauses = {
        kind: [_clause(clause, names, zone) for clause in found]
        for kind, found in statement.clauses.items()
    }
    source = typed(run_query(lake, statement.source, stored=True), table.definition.schema)
    return table.merge(
        source,
        _sided(statement.on, names, zone),
        when_matched=clauses.get("when_matched"),
        when_not_matched=clauses.get("when_not_matched"),
        when_not_matched_by_source=clauses.get("when_not_matched_by_source"),
    )


def _clause(clause: Clause, names: dict[str, Names], zone: str | None) -> Clause:
    where = None if clause.where is None else _sided(clause.where, names, zone)
    if clause.values is None:
        return Clause(clause.act, where, None)
    values = {
        _unqualified(column, names[TARGET]): _sided(value, names, zone)
        for column, value in clause.values.items()
    }
    return Clause(clause.act, where, values)


def _target_names(name: str, alias: str | None) -> Names:
    if alias is not None:
        return ((alias,),)
    parts = tuple(name.split("."))
    return (parts, parts[-1:]) if len(parts) > 1 else (parts,)


def _sided(expression: Expression, names: dict[str, Names], zone: str | None) -> Expression:
    """Return an expression whose columns are named ``t.`` and ``s.`` instead of by aliases.

    A side without a name of its own (``""``) loses the alias. Times are read in ``zone``.
    """

    def rename(found: Reference) -> Reference:
        for side, known in names.items():
            for name in known:
                rest = found.path[len(name) :]
                if rest and _folded(found.path[: len(name)]) == _folded(name):
                    return Reference((side, *rest) if side else rest)
        return found

    sided = with_references(expression, rename)
    return sided if zone is None else InZone(sided, zone)


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def _unqualified(column: str, names: Names) -> str:
    for name in names:
        prefix = ".".join(name).lower() + "."
        if column.lower().startswith(prefix):
            return column[len(prefix) :]
    return column
