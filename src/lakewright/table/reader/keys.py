"""Record keys of rows, for whole batches at a time."""

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.nested import Column, Rows, field_values
from lakewright.format.arrow.schema import from_arrow_type
from lakewright.format.hudi.config import KeyGenerator, TableConfig
from lakewright.format.hudi.key_text import EMPTY_PART, NULL_PART, value_text
from lakewright.model.errors import Corrupt, Unsupported
from lakewright.model.schema import RECORD_KEY

_COMPOSED = frozenset({KeyGenerator.COMPLEX, KeyGenerator.GLOBAL_DELETE})


def key_columns(config: TableConfig) -> tuple[str, ...]:
    """Return the top-level columns from which record keys are read."""
    if config.populate_meta_fields:
        return (RECORD_KEY,)
    if not config.record_key:
        raise Unsupported(
            "the table has neither Hudi's key column nor key fields, so its logs cannot be merged.",
            next_step='Read base files only with mode="read_optimized".',
        )
    return tuple(dict.fromkeys(name.split(".")[0] for name in config.record_key))


def record_keys(rows: Rows, config: TableConfig, path: str) -> pa.Array:
    """Return the record keys of a table or batch as one string array without nulls."""
    if config.populate_meta_fields:
        keys = _one_array(_column(rows, RECORD_KEY, path))
    elif len(config.record_key) == 1:
        keys = _texts(_column(rows, config.record_key[0], path))
    else:
        parts = [
            pc.binary_join_element_wise(name, _part(_column(rows, name, path)), ":")
            for name in config.record_key
        ]
        keys = pc.binary_join_element_wise(*parts, ",")
    if keys.null_count:
        raise Corrupt(f"{path} holds {keys.null_count} records without a key.", path=path)
    return keys


def delete_keys(keys: pa.Array, config: TableConfig) -> pa.Array:
    """Return the keys of a delete block in the form in which ``record_keys`` writes them.

    The complex key generator writes a single field as ``name:value`` in some releases and as
    the plain value in others; without a key column the plain value is what can be compared.
    """
    composed = config.key_generator in _COMPOSED and len(config.record_key) == 1
    if config.populate_meta_fields or not composed:
        return keys
    prefix = f"{config.record_key[0]}:"
    stripped = pc.utf8_slice_codeunits(keys, start=len(prefix))
    return pc.if_else(pc.starts_with(keys, prefix), stripped, keys)


def _column(rows: Rows, name: str, path: str) -> Column:
    column = field_values(rows, name)
    if column is None:
        raise Corrupt(f"{path} has no column {name!r}, which holds record keys.", path=path)
    return column


def _one_array(column: Column) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def _part(column: Column) -> pa.Array:
    texts = _texts(column)
    filled = pc.if_else(pc.equal(texts, ""), EMPTY_PART, texts)
    return pc.fill_null(filled, NULL_PART)


def _texts(column: Column) -> pa.Array:
    """Return values in the text form of keys; plain casts where Arrow's form is Hudi's."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind):
        return array.cast(pa.string())
    ours = from_arrow_type(kind)
    encoded = array.dictionary_encode()
    texts = pa.array([value_text(v, ours) for v in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)
