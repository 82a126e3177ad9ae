"""Rows written under one schema, shown under another.

Columns are matched by name, at every level of nesting: absent ones become null, dropped ones
go, order is the target's. Types may widen as Hudi allows it. Numbers become text, and floats
become doubles, by way of their decimal text, as they do in Hudi (0.1f is 0.1, not
0.10000000149011612). What would lose a value is refused with the column's name. Encodings
(dictionaries, run ends, views of lists) and extension types give way to what they hold.
"""

from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, InvalidOperation
from decimal import Decimal as Number
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.model.errors import Invalid

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)
Path: TypeAlias = tuple[str, ...]
#: For a field (by its path in the target) the name it has in the rows; others are named alike.
Renames: TypeAlias = Mapping[Path, str]

_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)


def conform(rows: Rows, target: pa.Schema, renames: Renames | None = None) -> Rows:
    """Return the rows with the target's columns, order and types; nothing is copied needlessly.

    Inside lists and maps, paths go on with ``element``, ``key`` and ``value``. ``Invalid``
    names the column and both types where no lossless way leads from one to the other.
    """
    if rows.schema.equals(target):
        return rows
    if isinstance(rows, pa.Table):
        batches = [conform(batch, target, renames) for batch in rows.to_batches()]
        return pa.Table.from_batches(batches, target)
    names = {name: i for i, name in enumerate(rows.schema.names)}
    columns = []
    for field in target:
        path = (field.name,)
        found = names.get((renames or {}).get(path, field.name))
        if found is None:
            columns.append(_missing(field, rows.num_rows, path))
        else:
            column = _conform(rows.column(found), field.type, path, renames or {})
            if not field.nullable:
                _check_present(column.null_count, path)
            columns.append(column)
    if not columns:
        bare = pa.Array.from_buffers(pa.struct([]), rows.num_rows, [None])
        return pa.RecordBatch.from_struct_array(bare)
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _missing(field: pa.Field, count: int, path: Path) -> pa.Array:
    if not field.nullable:
        raise Invalid(
            f"column {'.'.join(path)} is absent from the rows and may not be null.",
            next_step="Add it to the rows.",
            column=".".join(path),
        )
    return pa.nulls(count, field.type)


def _check_present(absent: int, path: Path) -> None:
    if absent:
        column = ".".join(path)
        raise Invalid(
            f"column {column} may not be null, but {absent} of its values are.",
            next_step="Give every row a value.",
            column=column,
        )


def _conform(array: pa.Array, target: pa.DataType, path: Path, renames: Renames) -> pa.Array:
    source = array.type
    if source == target:
        return array
    if pa.types.is_dictionary(source):
        # Each distinct value once; Arrow cannot take from views.
        return _conform(array.dictionary, target, path, renames).take(array.indices)
    if isinstance(source, pa.BaseExtensionType):
        return _conform(array.storage, target, path, renames)
    if pa.types.is_run_end_encoded(source):
        return _conform(pc.run_end_decode(array), target, path, renames)
    if pa.types.is_null(source):
        return pa.nulls(len(array), target)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _struct(array, target, path, renames)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return _map(array, target, path, renames)
    if _is_list(source) and pa.types.is_list(target):
        return _list(array, target, path, renames)
    return _leaf(array, target, path)


def _struct(array: pa.Array, target: pa.DataType, path: Path, renames: Renames) -> pa.Array:
    names = {field.name: i for i, field in enumerate(array.type)}
    children = []
    for field in target:
        inner = (*path, field.name)
        found = names.get(renames.get(inner, field.name))
        if found is None:
            children.append(_missing(field, len(array), inner))
        else:
            child = _conform(array.field(found), field.type, inner, renames)
            if not field.nullable and child.null_count:
                # Under an absent struct there is nothing to be absent.
                absent = pc.and_(child.is_null(), array.is_valid())
                _check_present(int(pc.sum(absent).as_py() or 0), inner)
            children.append(child)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _list(array: pa.Array, target: pa.DataType, path: Path, renames: Renames) -> pa.Array:
    if _is_view(array.type):
        array = _listed(array)
    elif not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = _conform(array.values, target.value_type, (*path, "element"), renames)
    if not target.value_field.nullable and values.null_count:
        _check_present(array.flatten().null_count, (*path, "element"))
    return _rebuilt(array, target, values)


def _map(array: pa.Array, target: pa.DataType, path: Path, renames: Renames) -> pa.Array:
    keys = _conform(array.keys, target.key_type, (*path, "key"), renames)
    values = _conform(array.items, target.item_type, (*path, "value"), renames)
    entries = pa.StructArray.from_arrays(
        [keys, values], fields=[target.key_field, target.item_field]
    )
    return _rebuilt(array, target, entries)


def _rebuilt(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """Return the list array over another child, with its own offsets, nulls and slice."""
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [child]
    )


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    plain = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(plain or _is_view(kind))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _listed(array: pa.Array) -> pa.Array:
    # Arrow's own cast loses the offsets of some views.
    sizes = pc.fill_null(pc.list_value_length(array), 0)
    ends = np.cumsum(sizes.to_numpy(zero_copy_only=False), dtype=np.int32)
    offsets = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
    kind = pa.list_(array.type.value_field)
    return pa.ListArray.from_arrays(offsets, array.flatten(), kind, mask=array.is_null())


def _leaf(array: pa.Array, target: pa.DataType, path: Path) -> pa.Array:
    way = _way(array.type, target)
    try:
        if way is not None:
            return way(array, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidOperation) as cause:
        raise _refusal(array.type, target, path, f" ({cause})") from cause
    raise _refusal(array.type, target, path, "")


def _refusal(source: pa.DataType, target: pa.DataType, path: Path, why: str) -> Invalid:
    column = ".".join(path)
    return Invalid(
        f"column {column} cannot go from {source} to {target} without loss{why}.",
        next_step="Numbers may widen, become decimals or text; decimals, dates and binary may "
        "become text; times may change unit where nothing is cut off.",
        column=column,
        source=str(source),
        target=str(target),
    )


_Way: TypeAlias = Callable[[pa.Array, pa.DataType], pa.Array]


def _way(source: pa.DataType, target: pa.DataType) -> _Way | None:
    """Return how values go from one leaf type to another, None where there is no way."""
    types = pa.types
    if types.is_integer(source):
        return _from_integer(target)
    if types.is_floating(source):
        return _from_float(source, target)
    if types.is_decimal(source):
        return _cast if types.is_decimal(target) or types.is_string(target) else None
    if _is_text(source):
        if types.is_decimal(target):
            return _decimal_of_text
        return _cast if _is_bytes(target) or types.is_date(target) else None
    if _is_bytes(source):
        return _cast if _is_bytes(target) else None
    if types.is_date(source):
        return _cast if types.is_date(target) or types.is_string(target) else None
    if types.is_timestamp(source) and types.is_timestamp(target):
        return _retime
    if types.is_time(source) and types.is_time(target):
        return _cast
    return None


def _from_integer(target: pa.DataType) -> _Way | None:
    types = pa.types
    if types.is_floating(target):
        return _cast_freely
    if types.is_decimal(target):
        return _decimal_of_integer
    return _cast if types.is_integer(target) or types.is_string(target) else None


def _from_float(source: pa.DataType, target: pa.DataType) -> _Way | None:
    if pa.types.is_floating(target):
        return _widen_float if target.bit_width > source.bit_width else None
    if pa.types.is_decimal(target):
        return _decimal_of_text
    return _float_text if pa.types.is_string(target) else None


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        _is_text(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(target)


def _cast_freely(array: pa.Array, target: pa.DataType) -> pa.Array:
    # Integers beyond 2**53 round, as they do in Hudi and Spark.
    return array.cast(target, safe=False)


def _widen_float(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == pa.float16():
        return array.cast(target)
    return array.cast(pa.string()).cast(target)


def _retime(array: pa.Array, target: pa.DataType) -> pa.Array:
    # The zone is a label here: what is stored counts from the epoch in UTC either way.
    return array.cast(pa.timestamp(target.unit, tz=array.type.tz)).view(target)


def _decimal_of_integer(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(pa.int64()).cast(pa.decimal128(19, 0)).cast(target)


def _by_text(array: pa.Array, target: pa.DataType, convert: Callable[[str], object]) -> pa.Array:
    """Convert each distinct value once, from its shortest decimal text."""
    coded = array.cast(pa.string()).dictionary_encode()
    made = [convert(text) for text in coded.dictionary.to_pylist()]
    return pa.array(made, target).take(coded.indices)


def _decimal_of_text(array: pa.Array, target: pa.DataType) -> pa.Array:
    step = Number((0, (1,), -target.scale))

    def convert(text: str) -> Number:
        return Number(text.strip(), _EXACT).quantize(step, context=_EXACT)

    return _by_text(array, target, convert)


def _float_text(array: pa.Array, target: pa.DataType) -> pa.Array:
    return _by_text(array, target, _java_text)


def _java_text(text: str) -> str:
    """Write a float, given as its shortest text, in the form that Java gives it."""
    special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text)
    if special:
        return special
    sign, digits, exponent = Number(text).as_tuple()
    number = "".join(map(str, digits)).lstrip("0")
    minus = "-" if sign else ""
    if not number or not isinstance(exponent, int):
        return f"{minus}0.0"
    point = len(number) + exponent
    number = number.rstrip("0")
    if -3 < point <= 7:
        whole = number[:point].ljust(point, "0") if point > 0 else "0"
        part = number[point:] if point > 0 else "0" * -point + number
        return f"{minus}{whole}.{part or '0'}"
    return f"{minus}{number[0]}.{number[1:] or '0'}E{point - 1}"
