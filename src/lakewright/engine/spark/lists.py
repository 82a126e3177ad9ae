"""Rows that travel from Python workers into Spark as lists, and become rows again there.

Spark turns every row that a worker hands over into its own form, column by column, before anything
else looks at it. A batch whose columns are lists is one such row: Spark copies whole lists, and
takes the values out of them within the code that it generates for the query. Texts that a file
keeps as codes of a few texts travel so too: the few once, and a number for each row.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.engine.spark.quoting import quoted
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.schema import INT, STRING, Field, List, Map, Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How many rows the lists hold.
_COUNT = Field("_lakewright_count", INT, nullable=False)
#: The place of a row in the lists.
_AT = "_lakewright_at"
#: Bytes of lists in one row of Spark, unless a single row of the table has more: every task holds
#: some such rows in its heap.
_LARGEST = 4 << 20


def can_travel(shape: Struct) -> bool:
    """Whether rows of these columns may travel as lists; columns that hold others do not."""
    return not any(isinstance(field.type, List | Map | Struct) for field in shape)


def list_form(shape: Struct, constant: Field | None = None) -> Struct:
    """Return what Spark is told of rows of ``shape`` in lists, and of a value that all rows share.

    Columns go by their numbers, since names may differ in case alone. Texts have codes beside
    them, which are null where there is a text for each row.
    """
    fields = [_COUNT]
    for place, field in enumerate(shape):
        fields.append(Field(_values(place), List(field.type), nullable=False))
        if field.type == STRING:
            fields.append(Field(_codes(place), List(INT, element_nullable=False)))
    return Struct((*fields, constant) if constant else tuple(fields))


def unlisted(frame: "DataFrame", shape: Struct, constant: Field | None = None) -> "DataFrame":
    """Return the rows that a frame of ``list_form`` holds, the shared value as their last column.

    All of it is text for Spark: columns would go to the JVM in several calls each.
    """
    columns = []
    for place, field in enumerate(shape):
        at = f"coalesce({_codes(place)}[{_AT}], {_AT})" if field.type == STRING else _AT
        columns.append(f"{_values(place)}[{at}] as {quoted(field.name)}")
    if constant is not None:
        columns.append(quoted(constant.name))
    numbered = f"explode(sequence(0, {_COUNT.name} - 1)) as {_AT}"
    return frame.selectExpr("*", numbered).selectExpr(*columns)


def as_lists(
    batch: pa.RecordBatch, shape: Struct, constant: tuple[Field, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Give rows the form that ``list_form`` tells; their columns may be coded."""
    target = to_arrow_schema(list_form(shape, constant[0] if constant else None))
    pieces = max(1, -(-batch.nbytes // _LARGEST))
    rows = max(1, -(-batch.num_rows // pieces))
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        columns = [pa.array([piece.num_rows], pa.int32())]
        for place, field in enumerate(shape):
            held = piece.column(place)
            kind = target.field(_values(place)).type
            if field.type != STRING:
                columns.append(_one_list(held.cast(kind.value_type), kind))
                continue
            texts, codes = _coded(held)
            columns.append(_one_list(texts.cast(kind.value_type), kind))
            kind = target.field(_codes(place)).type
            columns.append(pa.nulls(1, kind) if codes is None else _one_list(codes, kind))
        if constant is not None:
            columns.append(pa.array([constant[1]], target[-1].type))
        yield pa.RecordBatch.from_arrays(columns, schema=target)


def _coded(column: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """Return texts, and which of them the rows have; None where each row has its own."""
    if not pa.types.is_dictionary(column.type):
        return column, None
    texts, codes = column.dictionary, column.indices
    if 2 * len(texts) > len(codes):
        return texts.take(codes), None
    if codes.null_count:
        # Codes are never null, so that their absence can say something else.
        codes = pc.fill_null(codes, len(texts))
        texts = pa.concat_arrays([texts, pa.nulls(1, texts.type)])
    return texts, codes


def _one_list(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values, type=kind)


def _values(place: int) -> str:
    return f"_lakewright_{place}"


def _codes(place: int) -> str:
    return f"_lakewright_{place}_codes"
