"""What users give to say which records to delete: key values, or rows that hold them."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal

import pyarrow as pa

from lakewright.format.arrow.schema import to_arrow_type
from lakewright.model.errors import Invalid
from lakewright.model.schema import DataType
from lakewright.table.evolution import stored_schema
from lakewright.table.state import TableState


def key_rows(what: object, state: TableState) -> object:
    """Return rows with the key columns; what holds rows already is returned as it is.

    A single value, or a single tuple for a key of several columns, is one key.
    """
    if isinstance(what, Mapping):
        return [what]
    if isinstance(what, pa.Array | pa.ChunkedArray):
        return _table([(value,) for value in what.to_pylist()], state)
    if isinstance(what, Set):
        what = list(what)
    if isinstance(what, list | tuple):
        return _listed(what, state)
    if _is_value(what):
        return _table([(what,)], state)
    return what


def _listed(what: Sequence[object], state: TableState) -> object:
    width = len(state.config.record_key)
    if what and all(isinstance(one, Mapping) for one in what):
        return list(what)
    if isinstance(what, tuple) and width > 1 and all(_is_value(one) for one in what):
        return _table([what], state)
    return _table([one if isinstance(one, tuple) else (one,) for one in what], state)


def _table(keys: Iterable[Sequence[object]], state: TableState) -> pa.Table:
    names = state.config.record_key
    schema = stored_schema(state)
    rows = list(keys)
    for row in rows:
        if len(row) != len(names):
            raise Invalid(
                f"{row!r} is not a key of the table, which has the columns "
                f"{', '.join(names) or 'none'}.",
                next_step="Give one value per key column, as a tuple where they are several.",
            )
    types = [None if schema is None else schema.find(name) for name in names]
    columns = [
        _column(name, kind, [row[at] for row in rows])
        for at, (name, kind) in enumerate(zip(names, types, strict=True))
    ]
    return pa.table(dict(zip(names, columns, strict=True)))


def _column(name: str, kind: DataType | None, values: list[object]) -> pa.Array:
    try:
        return pa.array(values, None if kind is None else to_arrow_type(kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError) as cause:
        raise Invalid(
            f"a key value does not fit the column {name}, which is {kind}: {cause}.",
            next_step=f"Give values of type {kind}.",
            column=name,
        ) from cause


def _is_value(value: object) -> bool:
    return isinstance(value, str | bytes | int | float | Decimal | dt.date)
