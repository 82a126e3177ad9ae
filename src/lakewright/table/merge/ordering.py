"""Ordering values as columns that compare the way Hudi compares them.

A column is brought into a form without nulls in which plain comparison is right: integers,
dates, times and booleans as 64-bit integers, floats as integers in Java's total order (NaN is
the greatest, -0.0 is below 0.0), everything else as it is. A missing value counts as the
default ordering value, zero, which for text and bytes is the empty value.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.nested import Column

Columns: TypeAlias = tuple[pa.Array, ...]

_INTEGER_VIEWS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def comparable(column: Column) -> pa.Array:
    """Return ``column`` (array or chunked array) as one array fit for comparison, without nulls."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_dictionary(kind):
        return comparable(array.cast(kind.value_type))
    if pa.types.is_null(kind):
        return pa.array(np.zeros(len(array), dtype=np.int64))
    if pa.types.is_floating(kind):
        return _total_order(pc.fill_null(array.cast(pa.float64()), 0.0))
    if pa.types.is_temporal(kind):
        array = array.view(_INTEGER_VIEWS[kind.bit_width])
    if pa.types.is_boolean(kind) or pa.types.is_integer(array.type):
        return pc.fill_null(array.cast(pa.int64()), 0)
    if pa.types.is_decimal(kind):
        return pc.fill_null(array, pa.scalar(0, kind))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.fill_null(array, pa.scalar(b"" if pa.types.is_binary(kind) else "", kind))
    return array


def _total_order(array: pa.Array) -> pa.Array:
    # Positive floats sort by their bits already; negative ones need all other bits flipped.
    bits = array.to_numpy(zero_copy_only=False).view(np.int64)
    nan = np.float64("nan").view(np.int64)
    bits = np.where(np.isnan(bits.view(np.float64)), nan, bits)
    return pa.array(np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits))


def ranks(columns: Columns) -> npt.NDArray[np.int64]:
    """Return one integer per row such that rows compare like their ordering values, in turn."""
    if len(columns) == 1 and pa.types.is_int64(columns[0].type):
        numbers: npt.NDArray[np.int64] = columns[0].to_numpy(zero_copy_only=False)
        return numbers
    total = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        dense = pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()
        pair = total * (len(column) + 1) + dense.astype(np.int64)
        total = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    return total


def exceeds(left: Columns, right: Columns) -> npt.NDArray[np.bool_]:
    """Say row by row whether ``left`` is greater than ``right``, field after field."""
    greater = np.zeros(len(left[0]), dtype=bool)
    undecided = np.ones(len(left[0]), dtype=bool)
    for a, b in zip(left, right, strict=True):
        greater |= undecided & pc.greater(a, b).to_numpy(zero_copy_only=False)
        undecided &= pc.equal(a, b).to_numpy(zero_copy_only=False)
    return greater


def from_values(
    values: Sequence[tuple[object, ...] | None], types: Sequence[pa.DataType]
) -> Columns:
    """Turn the ordering values of delete records into comparable columns of the table's types."""
    return tuple(
        comparable(
            pa.array([None if v is None else _fitted(v[place], kind) for v in values], type=kind)
        )
        for place, kind in enumerate(types)
    )


def _fitted(value: object, kind: pa.DataType) -> object:
    if pa.types.is_decimal(kind) and value is not None:
        return pa.scalar(value).cast(kind, safe=False).as_py()
    if pa.types.is_string(kind) and isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if pa.types.is_integer(kind) and isinstance(value, bool):
        return int(value)
    return value
