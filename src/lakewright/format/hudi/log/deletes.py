"""The content of delete blocks: keys to remove, each with the ordering value of the delete."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias, cast

import fastavro
import pyarrow as pa

from lakewright.model.errors import Corrupt, Invalid, Unsupported

#: One value per ordering field; None deletes whatever the stored row's values are.
Ordering: TypeAlias = tuple[object, ...] | None

_DECIMAL_SCALE = 15
#: What the longest takes: 38 digits, as many as a column holds, before the point and 15 after it.
_DECIMAL_BYTES = 23


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Deleted keys with their partitions and ordering values, in the order of the block.

    Dates are days and timestamps microseconds since the epoch, as plain ints.
    """

    keys: pa.Array
    partitions: pa.Array
    ordering: list[Ordering]

    def __len__(self) -> int:
        return len(self.keys)


def _wrapper(name: str, kind: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}


# Logical types are left out: they do not change the bytes, and plain numbers are what is needed.
_WRAPPERS: dict[str, object] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": "int",
    "DecimalWrapper": "bytes",
    "TimeMicrosWrapper": "long",
    "TimestampMicrosWrapper": "long",
}
_ARRAY = {
    "type": "record",
    "name": "ArrayWrapper",
    "fields": [
        {
            "name": "wrappedValues",
            "type": [
                "null",
                {
                    "type": "array",
                    "items": ["null", *_WRAPPERS, _wrapper("LocalDateWrapper", "int")],
                },
            ],
        }
    ],
}
_RECORD = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {
            "name": "orderingVal",
            "type": ["null", *(_wrapper(name, kind) for name, kind in _WRAPPERS.items()), _ARRAY],
        },
    ],
}
_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "fields": [{"name": "deleteRecordList", "type": {"type": "array", "items": _RECORD}}],
    }
)


def decode_deletes(data: bytes, path: str, offset: int) -> DeleteRecords:
    """Return the records of a delete block's Avro datum, which lies at ``offset`` of the file."""
    source = io.BytesIO(data)
    try:
        datum = fastavro.schemaless_reader(source, _SCHEMA, None, return_record_name=True)
    except (EOFError, ValueError, IndexError, StopIteration, OverflowError, TypeError) as cause:
        raise Corrupt(
            f"bad delete block in {path}: {str(cause) or 'it is cut short'}.",
            path=path,
            offset=offset + source.tell(),
        ) from cause
    if source.tell() != len(data):
        raise Corrupt(
            f"bytes follow the delete records in {path}.", path=path, offset=offset + source.tell()
        )
    records = cast("list[dict[str, Any]]", cast("dict[str, Any]", datum)["deleteRecordList"])
    try:
        ordering = [_ordering(r["orderingVal"]) for r in records]
    except ValueError as cause:
        raise Corrupt(f"bad delete block in {path}: {cause}.", path=path, offset=offset) from cause
    return DeleteRecords(
        pa.array([r["recordKey"] for r in records], pa.string()),
        pa.array([r["partitionPath"] for r in records], pa.string()),
        ordering,
    )


def _ordering(value: tuple[str, dict[str, Any]] | None) -> Ordering:
    if value is None:
        return None
    name, record = value
    if name == "ArrayWrapper":
        items = record["wrappedValues"]
        return None if items is None else tuple(_unwrap(item) for item in items)
    if name == "IntWrapper" and record["value"] == 0:
        # The default ordering value: the delete wins by its commit time.
        return None
    return (_unwrap(value),)


def _unwrap(item: tuple[str, dict[str, Any]] | None) -> object:
    if item is None:
        return None
    name, record = item
    value: object = record["value"]
    if name == "DecimalWrapper" and isinstance(value, bytes):
        if len(value) > _DECIMAL_BYTES:
            raise ValueError(f"a decimal of {len(value)} bytes orders records")
        unscaled = int.from_bytes(value, "big", signed=True)
        sign, digits = int(unscaled < 0), tuple(int(d) for d in str(abs(unscaled)))
        return Decimal((sign, digits, -_DECIMAL_SCALE))
    return value


def encode_deletes(
    keys: Sequence[str], partitions: Sequence[str], ordering: Sequence[Sequence[object]] | None
) -> bytes:
    """Return the Avro datum of a delete block.

    ``ordering`` holds one value per record and ordering field, wrapped with ``wrap_ordering``;
    None writes the default value, by which the deletes win over all that was stored before.
    """
    if len(partitions) != len(keys) or (ordering is not None and len(ordering) != len(keys)):
        raise Invalid(
            "deletes need one partition (and one ordering value) per key.",
            next_step="Please report it: this is a fault of Lakewright.",
        )
    default = ("IntWrapper", {"value": 0})
    records = [
        {
            "recordKey": key,
            "partitionPath": partition,
            "orderingVal": default if ordering is None else _wrap(ordering[i]),
        }
        for i, (key, partition) in enumerate(zip(keys, partitions, strict=True))
    ]
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, _SCHEMA, {"deleteRecordList": records})
    return sink.getvalue()


@dataclass(frozen=True, slots=True)
class OrderingValue:
    """An ordering value with the wrapper under which it is written."""

    wrapper: str
    value: object


def wrap_ordering(value: object, kind: pa.DataType) -> OrderingValue | None:
    """Return an ordering value of a column of Arrow type ``kind`` in the wrapper Java expects.

    Dates and timestamps are given as ints since the epoch, and are written as such: Hudi compares
    them with the numbers that its rows hold, and cannot compare what its own wrappers for dates
    and timestamps make of them. None stays None.
    """
    if value is None:
        return None
    for test, wrapper in _BY_TYPE:
        if test(kind):
            return OrderingValue(wrapper, value)
    raise Unsupported(
        f"a column of type {kind} cannot order records.",
        next_step="Use a boolean, number, string, binary, decimal, date or timestamp column.",
    )


_BY_TYPE = (
    (pa.types.is_boolean, "BooleanWrapper"),
    (pa.types.is_int32, "IntWrapper"),
    (pa.types.is_int64, "LongWrapper"),
    (pa.types.is_float32, "FloatWrapper"),
    (pa.types.is_float64, "DoubleWrapper"),
    (pa.types.is_binary, "BytesWrapper"),
    (pa.types.is_string, "StringWrapper"),
    (pa.types.is_date32, "IntWrapper"),
    (pa.types.is_decimal128, "DecimalWrapper"),
    (pa.types.is_time64, "TimeMicrosWrapper"),
    (pa.types.is_timestamp, "LongWrapper"),
)


def _wrap(values: Sequence[object]) -> tuple[str, dict[str, object]] | None:
    items = [_item(value) for value in values]
    if len(items) == 1:
        return items[0]
    return ("ArrayWrapper", {"wrappedValues": items})


def _item(value: object) -> tuple[str, dict[str, object]] | None:
    if value is None:
        return None
    if not isinstance(value, OrderingValue):
        raise Invalid(
            f"{value!r} is no ordering value; see wrap_ordering.",
            next_step="Please report it: this is a fault of Lakewright.",
        )
    if isinstance(value.value, Decimal):
        return (value.wrapper, {"value": _decimal_bytes(value.value)})
    return (value.wrapper, {"value": value.value})


def _decimal_bytes(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent < -_DECIMAL_SCALE:
        raise Invalid(
            f"{value} has more than {_DECIMAL_SCALE} digits after the point.",
            next_step="Give ordering values with fewer.",
        )
    unscaled = int("".join(map(str, digits))) * int(10 ** (exponent + _DECIMAL_SCALE))
    unscaled = -unscaled if sign else unscaled
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)
