"""What users call rows: Arrow, pandas, polars, DuckDB, lists of dicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakewright.actions.write.rows import ArrowRows
from lakewright.format.arrow.schema import to_arrow_schema, to_arrow_type
from lakewright.model.errors import Invalid
from lakewright.model.schema import Struct


def is_spark_frame(value: object) -> bool:
    """Say whether this is a DataFrame of Spark, classic or Connect, without importing pyspark."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
        for kind in type(value).__mro__
    )


def arrow_rows(value: Any, like: Struct | None = None, *, typed: bool = True) -> ArrowRows:  # noqa: ANN401 - judged by what it is
    """Turn any of the accepted forms of rows into Arrow batches; others are refused by name.

    ``like`` holds the table's columns. A column of nothing but null has the type of the table's,
    and the whole numbers of a pandas frame, which it holds as fractions as soon as one is
    missing, are whole numbers where the table's are. Values of a list of dicts, which have no
    type of their own, take the table's, unless not ``typed``. The index of a pandas frame is
    left out. A polars lazy frame is collected. A reader, and anything else that gives a stream of
    Arrow data, is gone through once.
    """
    target = None if like is None else to_arrow_schema(like)
    match value:
        case ArrowRows():
            return value
        case pa.Table():
            return ArrowRows.of(value, target)
        case pa.RecordBatch():
            return ArrowRows.of(pa.Table.from_batches([value]), target)
        case pa.RecordBatchReader():
            return _reader(value, target)
        case ds.Dataset():
            return ArrowRows(value.schema, value.to_batches, like=target)
        case list() | tuple():
            return ArrowRows.of(_table_of_dicts(value, like if typed else None), target)
        case _:
            return _frame(value, target)


def no_rows(value: object) -> Invalid:
    """Return the error that says that this is nothing that holds rows."""
    kind = type(value)
    return Invalid(
        "None holds no rows." if value is None else f"a {_full_name(kind)} holds no rows.",
        next_step="Give an Arrow table, batch, reader or dataset, a pandas, polars or Spark "
        "DataFrame, a DuckDB relation, anything with __arrow_c_stream__, or a list of dicts.",
    )


def _full_name(kind: type[object]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _frame(value: Any, like: pa.Schema | None) -> ArrowRows:  # noqa: ANN401 - judged by what it is
    library = type(value).__module__.partition(".")[0]
    if library == "pandas" and type(value).__name__ == "DataFrame":
        return ArrowRows.of(_table_of_pandas(value, like), like)
    if library == "polars" and type(value).__name__ == "LazyFrame":
        return _frame(value.collect(), like)
    if library == "polars" and type(value).__name__ == "DataFrame":
        return ArrowRows(
            pa.RecordBatchReader.from_stream(value).schema,
            lambda: pa.RecordBatchReader.from_stream(value),
            nbytes=int(value.estimated_size()),
            like=like,
        )
    try:
        if hasattr(value, "__arrow_c_stream__"):
            return _reader(pa.RecordBatchReader.from_stream(value), like)
        if hasattr(value, "__arrow_c_array__"):
            return ArrowRows.of(pa.Table.from_batches([pa.record_batch(value)]), like)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as cause:
        # A single column, which is no row of anything.
        raise no_rows(value) from cause
    if library == "duckdb" and hasattr(value, "fetch_arrow_reader"):
        return _reader(value.fetch_arrow_reader(), like)
    raise no_rows(value)


def _reader(reader: pa.RecordBatchReader, like: pa.Schema | None) -> ArrowRows:
    return ArrowRows(reader.schema, lambda: reader, once=True, like=like)


def _table_of_pandas(frame: Any, like: pa.Schema | None) -> pa.Table:  # noqa: ANN401 - pandas is not imported for its name
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as cause:
        raise Invalid(
            f"the pandas frame cannot be turned into Arrow: {cause}.",
            next_step="Give every column a name of its own and one type, for example with "
            "astype().",
        ) from cause
    known = {} if like is None else {field.name: field.type for field in like}
    for place, field in enumerate(table.schema):
        kind = known.get(field.name)
        if kind is None or not (pa.types.is_integer(kind) and pa.types.is_floating(field.type)):
            continue
        if _are_whole(table.column(place), kind):
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


def _are_whole(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Say whether fractions are whole numbers, and so small that each is the one that was meant."""
    bound = min(1 << 53 if pa.types.is_float64(column.type) else 1 << 24, 1 << kind.bit_width - 1)
    fits = pc.less(pc.abs(column), bound)
    return bool(pc.all(pc.and_(fits, pc.equal(pc.floor(column), column)), min_count=0).as_py())


def _table_of_dicts(rows: Sequence[object], like: Struct | None) -> pa.Table:
    names: dict[str, None] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            raise Invalid(
                f"row {place} of the list is a {type(row).__name__}.",
                next_step="Give dicts with the columns' names as keys.",
            )
        names.update(dict.fromkeys(row))
    if not names and like is not None:
        names = dict.fromkeys(like.names)
    columns = {name: _column(name, rows, like) for name in names}
    return pa.table(columns)


def _column(name: str, rows: Iterable[Any], like: Struct | None) -> pa.Array:
    kind = to_arrow_type(like.field(name).type) if like is not None and name in like else None
    values = [row.get(name) for row in rows]
    try:
        if kind is not None:
            _check_whole(values, pa.list_(kind))
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as cause:
        wanted = f"{kind}" if kind is not None else "one type"
        raise Invalid(
            f"the values of column {name!r} are not all of {wanted}: {cause}.",
            next_step="Convert them, or give an Arrow table.",
            column=name,
        ) from cause


def _check_whole(value: Any, kind: pa.DataType) -> None:  # noqa: ANN401 - as nested as the type
    """Refuse fractions where whole numbers belong: Arrow would cut them without a word."""
    if value is None:
        return
    if pa.types.is_integer(kind):
        if isinstance(value, float):
            raise ValueError(f"{value!r} is no whole number")
    elif pa.types.is_struct(kind) and isinstance(value, Mapping):
        for field in kind:
            _check_whole(value.get(field.name), field.type)
    elif pa.types.is_map(kind):
        for item in (dict(value) if not isinstance(value, Mapping) else value).values():
            _check_whole(item, kind.item_type)
    elif pa.types.is_list(kind) and isinstance(value, Iterable):
        for item in value:
            _check_whole(item, kind.value_type)
