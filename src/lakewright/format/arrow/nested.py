"""Columns inside columns, by dotted name."""

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Rows: TypeAlias = pa.Table | pa.RecordBatch
Column: TypeAlias = pa.Array | pa.ChunkedArray


def field_values(table: Rows, path: str) -> Column | None:
    """Return the column named by a dotted path of a table or batch; None where it has none."""
    if path in table.schema.names:
        return table.column(path)
    head, *rest = path.split(".")
    if head not in table.schema.names:
        return None
    column = table.column(head)
    for name in rest:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
    return column
