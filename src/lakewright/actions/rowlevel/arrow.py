"""Running steps over Arrow rows: which step a row meets, and what becomes of the row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.actions.rowlevel.assign import (
    Assigned,
    refuse_lost,
    refuse_null,
    refuse_undefined,
)
from lakewright.actions.rowlevel.clauses import Act
from lakewright.actions.rowlevel.names import target_name
from lakewright.actions.rowlevel.plan import Rules, Step
from lakewright.actions.tasks.write_spec import ROUTE_DELETE
from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.expression import column
from lakewright.format.arrow.expression_values import compile_value
from lakewright.format.arrow.schema import to_arrow_schema, to_arrow_type
from lakewright.model.expression.bound import BoundExpression, BoundReference
from lakewright.model.expression.types import is_nested
from lakewright.model.schema import PARTITION_PATH, RECORD_KEY

#: What tells a stored row apart from every other, where no column of the table does.
IDENTITY = (RECORD_KEY, PARTITION_PATH)


@dataclass(frozen=True, slots=True, eq=False)
class Edits:
    """What became of some rows: whole rows to store, and stored rows to delete.

    ``old`` are the joined rows that ``rows`` were made of, in the same order; None where the
    rows are new.
    """

    rows: pa.RecordBatch | None = None
    gone: pa.RecordBatch | None = None
    old: pa.RecordBatch | None = None


def evaluate(bound: BoundExpression, batch: pa.RecordBatch) -> pa.Array:
    """Return the value of an expression for each row."""
    if isinstance(bound, BoundReference) and len(bound.path) == 1 and is_nested(bound.type):
        return batch.column(bound.path[0])
    found = compile_value(bound, lazy=False)(lambda reference: column(batch, reference))
    if isinstance(found, pa.Scalar):
        return pa.repeat(found, batch.num_rows)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def holds(bound: BoundExpression, batch: pa.RecordBatch) -> pa.Array:
    """Return for which rows a condition is true; NULL is not."""
    return pc.fill_null(evaluate(bound, batch), False)


def split(steps: Sequence[Step], batch: pa.RecordBatch) -> Iterator[tuple[Step, pa.Array]]:
    """Yield each step with the rows that it is the first to claim; IGNORE claims too."""
    free = pa.repeat(pa.scalar(True), batch.num_rows)
    for step in steps:
        claimed = free if step.where is None else pc.and_(free, holds(step.where, batch))
        yield step, claimed
        free = pc.and_not(free, claimed)


def carry_out(step: Step, rows: pa.RecordBatch, rules: Rules) -> Edits:
    """Apply a step to rows that all met it; ``rows`` are joined rows."""
    if step.act is Act.DELETE:
        return Edits(gone=stored_rows(rows, rules))
    if step.act is Act.IGNORE:
        return Edits()
    made = new_rows(step.values, rows, rules)
    if step.act is Act.INSERT:
        return Edits(rows=made)
    gone = None
    if step.moves:
        gone = stored_rows(rows.filter(_moved(made, rows, rules)), rules)
    return Edits(rows=made, gone=gone, old=rows)


def new_rows(values: Sequence[Assigned], rows: pa.RecordBatch, rules: Rules) -> pa.RecordBatch:
    """Compute the columns of the table; what a column cannot hold is refused with a sample."""
    schema = to_arrow_schema(rules.columns)
    arrays = [_stored(assigned, rows) for assigned in values]
    # Nested values may differ from the table in details of their types until ``changes``.
    kinds = [field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)]
    made = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(kinds))
    for name in rules.identity:
        kept = target_name(name) in rows.schema.names  # a new row has none yet
        identity = rows.column(target_name(name)) if kept else pa.nulls(len(rows), pa.string())
        made = made.append_column(name, identity)
    return made


def _stored(assigned: Assigned, rows: pa.RecordBatch) -> pa.Array:
    field = assigned.column
    made = evaluate(assigned.value, rows)
    if assigned.undefined is not None:
        undefined = holds(assigned.undefined, rows)
        if count := pc.sum(undefined).as_py():
            raise refuse_undefined(assigned, count)
    if assigned.before is not None and assigned.lost is not None:
        lost = holds(assigned.lost, rows)
        if count := pc.sum(lost).as_py():
            before = evaluate(assigned.before, rows)
            raise refuse_lost(field, count, before.filter(lost)[0].as_py())
    if not field.nullable and made.null_count:
        raise refuse_null(field, made.null_count)
    if is_nested(field.type):
        return made
    kind = to_arrow_type(field.type)
    return made if made.type == kind else made.cast(kind, safe=False)


def stored_rows(rows: pa.RecordBatch, rules: Rules) -> pa.RecordBatch:
    """Return the target's part of joined rows, as it is stored."""
    names = [*rules.columns.names, *rules.identity]
    return pa.RecordBatch.from_arrays(
        [rows.column(target_name(name)) for name in names], names=names
    )


def change_schema(rules: Rules) -> pa.Schema:
    """Return the columns of changes: the table's, and a mark on rows that are to be deleted."""
    schema = to_arrow_schema(rules.columns)
    for name in rules.identity:
        schema = schema.append(pa.field(name, pa.string()))
    return schema.append(pa.field(ROUTE_DELETE, pa.bool_(), nullable=False))


def changes(edits: Iterable[Edits], rules: Rules) -> Iterator[pa.RecordBatch]:
    """Stream edits as the rows of one write."""
    schema = change_schema(rules)
    for edit in edits:
        for rows, gone in ((edit.gone, True), (edit.rows, False)):
            if rows is not None and rows.num_rows:
                mark = pa.repeat(pa.scalar(gone), rows.num_rows)
                yield conform(rows.append_column(ROUTE_DELETE, mark), schema)


def _moved(made: pa.RecordBatch, rows: pa.RecordBatch, rules: Rules) -> pa.Array:
    moved = pa.repeat(pa.scalar(False), rows.num_rows)
    for name in rules.partition_by:
        new, old = made.column(name), rows.column(target_name(name))
        if pa.types.is_dictionary(old.type):
            old = old.dictionary_decode()
        moved = pc.or_(moved, _differ(new, old.cast(new.type)))
    return moved


def _differ(one: pa.Array, other: pa.Array) -> pa.Array:
    """Say where two columns differ; null equals null."""
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    return pc.or_(unequal, pc.xor(pc.is_null(one), pc.is_null(other)))


def lowered(edits: Edits, rules: Rules) -> pa.RecordBatch | None:
    """Return the stored rows whose new ordering value is lower, so that the new row would lose."""
    if edits.rows is None or edits.old is None or not rules.ordering:
        return None
    tie = pa.repeat(pa.scalar(True), edits.rows.num_rows)
    lower = pa.repeat(pa.scalar(False), edits.rows.num_rows)
    for name in rules.ordering:
        new, old = edits.rows.column(name), edits.old.column(target_name(name)).cast
        stored = old(new.type)
        less = pc.or_(
            pc.fill_null(pc.less(new, stored), False),
            pc.and_not(pc.is_null(new), pc.is_null(stored)),
        )
        lower = pc.or_(lower, pc.and_(tie, less))
        tie = pc.and_not(tie, _differ(new, stored))
    return edits.old.filter(lower) if pc.any(lower).as_py() else None
