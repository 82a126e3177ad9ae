"""The rows of an INSERT: matched with the table's columns, in the table's types."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakewright.actions.rowlevel.names import unknown_column
from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.schema import to_arrow_schema, to_arrow_type
from lakewright.interfaces.sql.statements import Insert
from lakewright.model.errors import Invalid
from lakewright.model.expression.types import Value, is_nested
from lakewright.model.schema import STRING, DataType, Field, Struct

#: Digits of the greatest whole number, with or without a sign.
_LONG_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the value of a column comes from: a place in the query's rows, or a constant."""

    column: Field
    place: int | None = None
    constant: Value = None


def slots(
    statement: Insert, table: Struct, partition_by: Sequence[str], given: Sequence[str]
) -> tuple[Slot, ...]:
    """Match the query's columns with the table's: by their order, or with BY NAME by name.

    Columns that the statement neither names nor gives are null.
    """
    static = _static(statement, table, partition_by)
    if statement.by_name:
        wanted = [_named(name, table).name for name in given]
    elif statement.columns is not None:
        wanted = [_named(name, table).name for name in statement.columns]
    else:
        wanted = [name for name in table.names if name not in static]
    if len(wanted) != len(given):
        raise Invalid(
            f"the query has {len(given)} columns, and the table takes {len(wanted)}: "
            f"{', '.join(wanted)}.",
            next_step="Give a value for each, or name those that you give: INSERT INTO t (a, b) ….",
        )
    twice = sorted({name for name in wanted if wanted.count(name) > 1 or name in static})
    if twice:
        raise Invalid(
            f"column {', '.join(twice)} gets two values.",
            next_step="Name each column once.",
            columns=twice,
        )
    places = {name: place for place, name in enumerate(wanted)}
    return tuple(Slot(column, places.get(column.name), static.get(column.name)) for column in table)


def _static(statement: Insert, table: Struct, partition_by: Sequence[str]) -> dict[str, Value]:
    spec = statement.partition or {}
    found = {_named(name, table).name: value for name, value in spec.items()}
    if strange := [name for name in found if name not in partition_by]:
        raise Invalid(
            f"{', '.join(strange)} does not make partitions.",
            next_step=f"PARTITION takes: {', '.join(partition_by) or 'nothing, in this table'}.",
        )
    return {name: value for name, value in found.items() if value is not None}


def _named(name: str, table: Struct) -> Field:
    alike = [f for f in table if f.name.lower() == name.lower()]
    exact = [f for f in alike if f.name == name] or alike
    if len(exact) != 1:
        raise unknown_column(name, list(table.names))
    return exact[0]


def fitted(rows: pa.RecordBatchReader, wanted: Sequence[Slot]) -> pa.RecordBatchReader:
    """Stream the rows as the table's columns; a value that does not fit is refused by name."""
    schema = to_arrow_schema(Struct(tuple(slot.column for slot in wanted)))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            arrays = [_values(slot, batch) for slot in wanted]
            kinds = [f.with_type(a.type) for f, a in zip(schema, arrays, strict=True)]
            made = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(kinds))
            yield conform(made, schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def with_types(rows: pa.RecordBatchReader, kinds: Mapping[str, DataType]) -> pa.RecordBatchReader:
    """Return rows in which columns that hold NULL alone have a type: by name, else text."""
    folded = {name.lower(): kind for name, kind in kinds.items()}
    schema = pa.schema(
        [
            field.with_type(to_arrow_type(folded.get(field.name.lower(), STRING)))
            if pa.types.is_null(field.type)
            else field
            for field in rows.schema
        ]
    )
    if schema.equals(rows.schema):
        return rows
    return pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in rows))


def _values(slot: Slot, batch: pa.RecordBatch) -> pa.Array:
    kind = to_arrow_type(slot.column.type)
    if slot.place is None:
        array = pa.repeat(pa.scalar(slot.constant), batch.num_rows)
        return _cast(slot.column, array, kind)
    array = batch.column(slot.place)
    return array if is_nested(slot.column.type) else _cast(slot.column, array, kind)


def _cast(column: Field, array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(array.type) and pa.types.is_floating(kind):
        return array.cast(pa.float64()).cast(kind)
    if pa.types.is_floating(array.type) and pa.types.is_floating(kind):
        return array.cast(kind, safe=False)  # the nearest number, as everywhere in SQL
    try:
        if pa.types.is_decimal(kind) and pa.types.is_integer(array.type):
            # In enough digits for any of them first; the column's own are told by the value.
            array = array.cast(pa.decimal128(_LONG_DIGITS, 0))
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise Invalid(
            f"column {column.name} of type {column.type} cannot take these values: {cause}",
            next_step="Nothing was written. Convert them with CAST.",
            column=column.name,
        ) from cause
