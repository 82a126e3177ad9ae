"""Rows that travel from Python workers into Spark as lists, and become rows again there.

Spark turns every row that a worker hands over into its own form, column by column, before anything
else looks at it. Of lists of many rows it copies whole columns, and takes the values out of them
within the code that it generates for the query. Texts that a file keeps as codes of a few texts
travel so too: the few once for a list, and a number for each row.

Lists are short. Where Spark generates no code, because a query is too large for it, it copies the
lists once for each row that they hold.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.schema import INT, STRING, Field, List, Map, Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How many rows the lists hold.
_COUNT = Field("_lakewright_count", INT, nullable=False)
#: The place of a row in the lists.
_AT = "_lakewright_at"
#: Bytes in the lists of one row of Spark, unless a single row of the table has more.
_LIST_BYTES = 32 << 10
#: Rows in them at most: Spark counts them with a list of numbers.
_LIST_ROWS = 4 << 10
#: Rows for each text that travels with their codes.
_ROWS_PER_TEXT = 4


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


def one_by_one(frame: "DataFrame") -> "DataFrame":
    """Return a frame of ``list_form`` with as many rows as its lists hold.

    ``values_in_lists`` tells how to get at their values.
    """
    return frame.selectExpr("*", f"explode(sequence(0, {_COUNT.name} - 1)) as {_AT}")


def values_in_lists(shape: Struct) -> dict[str, str]:
    """Return for each column of ``shape`` what Spark SQL calls its value in a row."""
    found = {}
    for place, field in enumerate(shape):
        at = f"coalesce({_codes(place)}[{_AT}], {_AT})" if field.type == STRING else _AT
        found[field.name] = f"{_values(place)}[{at}]"
    return found


def as_lists(
    batch: pa.RecordBatch, shape: Struct, constant: tuple[Field, int] | None = None
) -> pa.RecordBatch:
    """Give rows, of which there are some, the form that ``list_form`` tells.

    Their columns may be coded.
    """
    target = to_arrow_schema(list_form(shape, constant[0] if constant else None))
    rows = min(max(1, _LIST_BYTES * batch.num_rows // max(batch.nbytes, 1)), _LIST_ROWS)
    bounds = np.append(np.arange(0, batch.num_rows, rows, dtype=np.int32), np.int32(batch.num_rows))
    columns = [pa.array(np.diff(bounds))]
    for place, field in enumerate(shape):
        held = batch.column(place)
        kind = target.field(_values(place)).type
        if field.type != STRING:
            columns.append(_cut(held.cast(kind.value_type), bounds, kind))
            continue
        codes_kind = target.field(_codes(place)).type
        coded = _coded(held, rows)
        if coded is None:
            columns += [_cut(held.cast(kind.value_type), bounds, kind)]
            columns += [pa.nulls(len(bounds) - 1, codes_kind)]
        else:
            texts, codes = coded
            columns += [_repeated(texts.cast(kind.value_type), len(bounds) - 1, kind)]
            columns += [_cut(codes, bounds, codes_kind)]
    if constant is not None:
        columns.append(pa.repeat(pa.scalar(constant[1], target[-1].type), len(bounds) - 1))
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _coded(column: pa.Array, rows: int) -> tuple[pa.Array, pa.Array] | None:
    """Return texts, and which of them each row has; None where they are many for a list."""
    if not pa.types.is_dictionary(column.type):
        return None
    texts, codes = column.dictionary, column.indices
    if len(texts) * _ROWS_PER_TEXT > min(rows, len(codes)):
        return None
    if codes.null_count:
        # Codes are never null, so that their absence can say something else.
        codes = pc.fill_null(codes, len(texts))
        texts = pa.concat_arrays([texts, pa.nulls(1, texts.type)])
    return texts, codes


def _cut(values: pa.Array, bounds: npt.NDArray[np.int32], kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds), values, type=kind)


def _repeated(values: pa.Array, count: int, kind: pa.DataType) -> pa.Array:
    bounds = np.arange(count + 1, dtype=np.int32) * np.int32(len(values))
    return _cut(pa.concat_arrays([values] * count), bounds, kind)


def _values(place: int) -> str:
    return f"_lakewright_{place}"


def _codes(place: int) -> str:
    return f"_lakewright_{place}_codes"
