"""NaN and the bounds of parquet columns: a chunk that holds a NaN gets none.

Arrow leaves NaN out when it finds the least and the greatest value of a column. To Spark and
Hive NaN is greater than every number, and they pass over row groups whose greatest value is too
small: rows would be missing. As parquet-mr does, a chunk that holds a NaN tells no bounds; what
it tells of nulls stays, and so do the bounds of all other chunks.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.thrift_compact import (
    STRUCT,
    Fields,
    join,
    split,
    split_list,
    unpacked,
)

#: What the footer of a file says whose bounds are such: key and value.
KNOWS_NAN: Final = ("lakewright.bounds", "none-with-nan")

_MAGIC = b"PAR1"
_SCHEMA, _GROUPS = 2, 4
_COLUMNS = 1
_STATISTICS = 12
#: Both pairs of bounds of a column's statistics, and whether they are exact.
_BOUNDS = (1, 2, 5, 6, 7, 8)
_KIND, _CHILDREN = 1, 5
_FLOATING = frozenset((4, 5))


def trusted_about_nan(created_by: str, values: Mapping[str, str]) -> bool:
    """Tell whether bounds in a file of this writer, with these key-values, rule out NaN."""
    key, value = KNOWS_NAN
    return created_by.startswith("parquet-mr") or values.get(key) == value


def columns_with_nan(rows: pa.Table) -> frozenset[int]:
    """Return the numbers of the parquet columns of these rows that hold a NaN."""
    found: set[int] = set()
    number = 0
    for field, column in zip(rows.schema, rows.columns, strict=True):
        leaves = leaf_count(field.type)
        if _floats(field.type):
            for chunk in column.chunks:
                for place, leaf in enumerate(_leaves(chunk)):
                    if _has_nan(leaf):
                        found.add(number + place)
        number += leaves
    return frozenset(found)


def without_bounds(column: Fields) -> Fields:
    """Return the description of what a column chunk holds without bounds."""
    if _STATISTICS not in column:
        return column
    told = split(column[_STATISTICS][1])
    kept = join({n: raw for n, raw in told.items() if n not in _BOUNDS})
    return {**column, _STATISTICS: (STRUCT, kept)}


def floating_columns(file: Fields) -> frozenset[int]:
    """Return the numbers of the columns of floating-point numbers, by a footer's schema."""
    elements = [split(raw) for raw in split_list(file[_SCHEMA][1])[1][1:]]
    leaves = [e for e in elements if _CHILDREN not in e or not unpacked(e[_CHILDREN][1])]
    return frozenset(
        number
        for number, leaf in enumerate(leaves)
        if _KIND in leaf and unpacked(leaf[_KIND][1]) in _FLOATING
    )


def _children(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_dictionary(kind) or not pa.types.is_nested(kind):
        return []
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(i).type for i in range(kind.num_fields)]


def leaf_count(kind: pa.DataType) -> int:
    """Return how many parquet columns hold a field of this type."""
    return sum(leaf_count(child) for child in _children(kind)) if pa.types.is_nested(kind) else 1


def _floats(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind)) or any(_floats(child) for child in _children(kind))


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """Stream the values of every parquet column under an array, in their order.

    Values below a null may come along: bounds that are left out for nothing do no harm.
    """
    kind = values.type
    if pa.types.is_map(kind):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif pa.types.is_struct(kind):
        for child in values.flatten():
            yield from _leaves(child)
    elif pa.types.is_nested(kind):
        yield from _leaves(values.flatten())
    else:
        yield values


def _has_nan(leaf: pa.Array) -> bool:
    return bool(pa.types.is_floating(leaf.type) and pc.any(pc.is_nan(leaf)).as_py())
