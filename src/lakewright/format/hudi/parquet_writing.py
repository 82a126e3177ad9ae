"""How our parquet is laid out: the same for base files and for parquet log blocks.

Standard three-level lists, decimals as fixed bytes, no Arrow schema in the footer: what Hudi
and every other reader of its tables understand. Keys compress with zstd, the rest with snappy;
dictionaries only where values repeat, since trying them on unique values costs more than
the rest of the encoding.
"""

from collections.abc import Collection, Iterator
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: Rows of a column that are looked at to see whether its values repeat.
_SAMPLE = 4096
_REPEATS = 4


def open_writer(
    sink: IO[bytes], schema: pa.Schema, first: pa.Table, keys: Collection[str]
) -> pq.ParquetWriter:
    """Begin a parquet file; ``first`` are its first rows, ``keys`` its columns of unique text."""
    return pq.ParquetWriter(
        sink,
        schema,
        compression={leaf: _codec(leaf, keys) for leaf in _all_leaves(schema)},
        use_dictionary=list(_repeating(schema, first)),
        write_statistics=True,
        use_compliant_nested_type=True,
        store_schema=False,
    )


def _codec(leaf: str, keys: Collection[str]) -> str:
    return "zstd" if leaf in keys else "snappy"


def _all_leaves(schema: pa.Schema) -> Iterator[str]:
    for field in schema:
        yield from _leaves(field.name, field.type)


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """Yield the paths of the parquet columns under a field, as parquet spells them."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path


def _repeating(schema: pa.Schema, first: pa.Table) -> Iterator[str]:
    for field in schema:
        if pa.types.is_nested(field.type):
            yield from _leaves(field.name, field.type)
        elif pa.types.is_dictionary(field.type) or _repeats(first.column(field.name)):
            yield field.name


def _repeats(column: pa.ChunkedArray) -> bool:
    sample = column.slice(0, _SAMPLE)
    if pa.types.is_boolean(column.type):
        return False
    return bool(pc.count_distinct(sample, mode="all").as_py() * _REPEATS <= len(sample))
