"""How our parquet is laid out: the same for base files and for parquet log blocks.

Standard three-level lists, decimals as fixed bytes, no Arrow schema in the footer: what Hudi
and every other reader of its tables understand. Keys compress with zstd, the rest with snappy;
dictionaries only where values repeat, since trying them on unique values costs more than
the rest of the encoding. A column chunk that holds a NaN tells no bounds, since readers prune by
them and do not agree with Arrow where NaN belongs.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewright.format.arrow.parquet_assembly import Assembly, Encoding, description
from lakewright.format.arrow.parquet_nan import KNOWS_NAN, columns_with_nan
from lakewright.format.arrow.parquet_pages import PageStream
from lakewright.format.arrow.thrift_compact import Fields
from lakewright.model.schema import COMMIT_SEQNO

#: Values that are encoded at a time: more than the default costs a little memory, and saves time.
_BATCH = 1 << 16
#: Rows of a column that are looked at to see whether its values repeat.
_SAMPLE = 4096
_REPEATS = 4
#: Rows for which it is cheaper to encode every column than to put a file together.
_FEW = 8192
#: Rows of the largest row group that Arrow makes.
_MOST_ROWS = 1 << 26


class ParquetFile:
    """A parquet file in the making.

    ``keys`` are its columns of unique text; ``repeating`` names the columns that get a
    dictionary, as ``repeating_columns`` finds them. The sink stays open. A row group
    of few rows waits for what follows: where nothing does, Arrow makes the whole file, since
    putting it together costs more than it saves.
    """

    def __init__(
        self,
        sink: IO[bytes],
        schema: pa.Schema,
        keys: Collection[str],
        repeating: Collection[str],
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._keys, self._repeating = frozenset(keys), frozenset(repeating)
        self._few: pa.Table | None = None
        self._file: Assembly | None = None

    def write(self, rows: pa.Table) -> None:
        """Write rows as one row group, or as few as they fit into; no rows make none."""
        if self._file is None and self._few is None and 0 < rows.num_rows <= _FEW:
            self._few = rows
            return
        for start in range(0, rows.num_rows, _MOST_ROWS):
            self._assembly().add(rows.slice(start, _MOST_ROWS))

    def same(self) -> frozenset[tuple[str, str]]:
        """Return pairs of keys that hold the same texts in all rows, where that was looked at."""
        return frozenset() if self._file is None else self._file.same()

    def close(self, values: Mapping[str, str]) -> None:
        """Write the footer, with these key-values in it."""
        known = {**values, KNOWS_NAN[0]: KNOWS_NAN[1]}
        if self._file is None and self._few is not None and not columns_with_nan(self._few):
            self._sink.write(self._encoded(self._few, known))
            return
        self._assembly().close({key: value.encode() for key, value in known.items()})

    def _assembly(self) -> Assembly:
        """Return the file that is put together, with the rows that waited in it."""
        if self._file is None:
            keys = [name for name in self._schema.names if name in self._keys]
            empty = _empty(self._schema, self._keys, self._repeating)
            encoding = Encoding(self._encoded, self._stream)
            self._file = Assembly(self._sink, self._schema, empty, encoding, keys)
            if self._few is not None:
                self._file.add(self._few)
                self._few = None
        return self._file

    def _encoded(self, rows: pa.Table, values: Mapping[str, str] | None = None) -> pa.Buffer:
        return _encoded(rows, self._keys, self._repeating, values)

    def _stream(self, rows: pa.Table, sink: PageStream) -> None:
        with _writer(sink, rows.schema, self._keys, self._repeating) as writer:
            writer.write_table(rows, row_group_size=rows.num_rows)
            sink.end_pages()


def _encoded(
    rows: pa.Table,
    keys: frozenset[str],
    repeating: frozenset[str],
    values: Mapping[str, str] | None = None,
) -> pa.Buffer:
    """Return a parquet file of these rows in one row group."""
    sink = pa.BufferOutputStream()
    with _writer(sink, rows.schema, keys, repeating) as writer:
        if rows.num_rows:
            writer.write_table(rows, row_group_size=rows.num_rows)
        if values is not None:
            writer.add_key_value_metadata(values)
    return sink.getvalue()


def _writer(
    sink: pa.NativeFile | PageStream,
    schema: pa.Schema,
    keys: frozenset[str],
    repeating: frozenset[str],
) -> pq.ParquetWriter:
    return pq.ParquetWriter(sink, schema, **_settings(schema, keys, repeating))


@lru_cache(maxsize=64)
def _empty(schema: pa.Schema, keys: frozenset[str], repeating: frozenset[str]) -> Fields:
    """Return the description of a file without rows; the many files of one write share it."""
    return description(_encoded(schema.empty_table(), keys, repeating))


@lru_cache(maxsize=64)
def _settings(schema: pa.Schema, keys: frozenset[str], repeating: frozenset[str]) -> dict[str, Any]:
    """Return the settings of a writer; the many files of one write share them."""
    named = [name for name in schema.names if name in repeating]
    return {
        "compression": {leaf: _codec(leaf, keys) for leaf in _all_leaves(schema)},
        "use_dictionary": [leaf for name in named for leaf in _below(schema, name)],
        # Nobody asks for a range of sequence numbers, and it costs a comparison per row.
        "write_statistics": [leaf for leaf in _all_leaves(schema) if leaf != COMMIT_SEQNO],
        "use_compliant_nested_type": True,
        "store_schema": False,
        "write_batch_size": _BATCH,
    }


def repeating_columns(rows: pa.Table, keys: Collection[str]) -> frozenset[str]:
    """Return the columns whose values repeat in the first of these rows, all nested ones too."""
    return frozenset(_repeating(rows, keys))


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


def _below(schema: pa.Schema, name: str) -> Iterator[str]:
    return _leaves(name, schema.field(name).type)


def _repeating(rows: pa.Table, keys: Collection[str]) -> Iterator[str]:
    for field in rows.schema:
        always = pa.types.is_nested(field.type) or pa.types.is_dictionary(field.type)
        if always or (field.name not in keys and _repeats(rows.column(field.name))):
            yield field.name


def _repeats(column: pa.ChunkedArray) -> bool:
    sample = column.slice(0, _SAMPLE)
    if pa.types.is_boolean(column.type):
        return False
    return bool(pc.count_distinct(sample, mode="all").as_py() * _REPEATS <= len(sample))
