"""Every kind of Arrow column with two values, and what becomes of it in a table."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa


class Money(pa.ExtensionType):  # type: ignore[misc]
    """An extension type that is written in Python: such types have no hash."""

    def __init__(self) -> None:
        super().__init__(pa.decimal128(10, 2), "lakewright.test.money")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage: pa.DataType, _form: bytes) -> "Money":
        return cls()


def _extended(kind: pa.DataType, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage)


def _coded(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int32()), values)


def _runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), values)


DAY = dt.date(2020, 2, 29)
ONE = pa.array([1, 2])
PAIR = [["a", "b"], None]
MONEY = pa.array([Decimal("1.5"), None], pa.decimal128(10, 2))
_ID = b"0123456789abcdef"

#: Columns that a table holds. Their values come back, or those that ``SHOWN`` names.
STORED: dict[str, pa.Array] = {
    "boolean": pa.array([True, None]),
    **{f"int{n}": pa.array([-5, None], f"int{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": pa.array([2**n - 1, None], f"uint{n}") for n in (8, 16, 32)},
    "half": pa.array(np.array([1.5, -2], np.float16)),
    "float": pa.array([1.5, None], pa.float32()),
    "double": pa.array([0.1, None]),
    "decimal32": pa.array([Decimal("1.50"), None], pa.decimal32(5, 2)),
    "decimal64": pa.array([Decimal("1.50"), None], pa.decimal64(12, 2)),
    "decimal128": pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)),
    "decimal256_short": pa.array([Decimal("1.50"), None], pa.decimal256(38, 2)),
    "string": pa.array(["ü", None]),
    "large_string": pa.array(["ü", None], pa.large_string()),
    "string_view": pa.array(["ü", None], pa.string_view()),
    "binary": pa.array([b"\xff", None]),
    "large_binary": pa.array([b"\xff", None], pa.large_binary()),
    "binary_view": pa.array([b"\xff", None], pa.binary_view()),
    "fixed_binary": pa.array([b"\xff\x00", None], pa.binary(2)),
    "date32": pa.array([DAY, None]),
    "date64": pa.array([DAY, None], pa.date64()),
    **{
        f"timestamp_{unit}_{zone[:3]}": pa.array(
            [2_000_000, None], pa.timestamp(unit, zone or None)
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in ("", "UTC", "Europe/Oslo")
    },
    "dictionary": _coded(pa.array(["a"])),
    "dictionary_of_views": _coded(pa.array(["a"], pa.string_view())),
    "dictionary_of_lists": _coded(pa.array([["a"]])),
    "dictionary_of_structs": _coded(pa.array([{"x": "a"}])),
    "dictionary_of_ids": _coded(pa.array([_ID], pa.uuid())),
    "runs": _runs(pa.array(["a", None])),
    "list": pa.array(PAIR),
    "large_list": pa.array(PAIR, pa.large_list(pa.large_string())),
    "fixed_list": pa.array(PAIR, pa.list_(pa.string_view(), 2)),
    "list_view": pa.array(PAIR, pa.list_view(pa.string())),
    "large_list_view": pa.array(PAIR, pa.large_list_view(pa.string())),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
    "map_of_large": pa.array([[("a", b"1")], None], pa.map_(pa.large_string(), pa.large_binary())),
    "struct": pa.array([{"x": 1, "y": "b"}, None]),
    "uuid": pa.array([_ID, None], pa.uuid()),
    "json": _extended(pa.json_(), pa.array(["{}", None])),
    "bool8": _extended(pa.bool8(), pa.array([1, 0], pa.int8())),
    "opaque": _extended(pa.opaque(pa.string(), "t", "v"), pa.array(["a", None])),
    "tensor": _extended(
        pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2))
    ),
    "extension": _extended(Money(), MONEY),
}
SHOWN: dict[str, list[Any]] = {"uuid": [_ID, None], "dictionary_of_ids": [_ID, None]}

#: Columns that no table takes, and what the refusal says.
REFUSED: dict[str, tuple[pa.Array, str]] = {
    "uint64": (pa.array([1, None], pa.uint64()), "uint64, which no table can hold"),
    "dictionary_uint64": (_coded(pa.array([1], pa.uint64())), "uint64, which no table can hold"),
    "decimal256": (pa.array([Decimal(1), None], pa.decimal256(50, 2)), "no table can hold"),
    "decimal_by_hundreds": (pa.array([Decimal("1E2"), None], pa.decimal128(5, -2)), "no table"),
    "fixed_binary_of_nothing": (pa.array([b"", None], pa.binary(0)), r"fixed\(0\)"),
    "duration": (pa.array([1, None], pa.duration("us")), "no table can hold"),
    "interval": (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), "no table can hold"),
    **{
        f"time_{unit}": (pa.array([1000, None], kind(unit)), "time of day .*Cast it to string")
        for unit, kind in zip(
            ("s", "ms", "us", "ns"), (pa.time32, pa.time32, pa.time64, pa.time64), strict=True
        )
    },
    "empty_struct": (pa.array([{}, None], pa.struct([])), "struct without fields"),
    "number_keys": (pa.array([[(1, 1)], None], pa.map_(pa.int32(), pa.int32())), "keys of type"),
    "dense_union": (
        pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [ONE]),
        "no table can hold",
    ),
    "sparse_union": (
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [ONE]),
        "no table can hold",
    ),
}


@dataclass(frozen=True, slots=True)
class Wrapping:
    """A way to put a column into another; ``shown`` does the same with its values."""

    array: Callable[[pa.Array], pa.Array]
    shown: Callable[[list[Any]], list[Any]]


WRAPPINGS = {
    "bare": Wrapping(lambda array: array, lambda values: values),
    "struct": Wrapping(
        lambda array: pa.StructArray.from_arrays([array], ["x"]),
        lambda values: [{"x": value} for value in values],
    ),
    "list": Wrapping(
        lambda array: pa.ListArray.from_arrays([0, 1, 2], array),
        lambda values: [[value] for value in values],
    ),
    "map": Wrapping(
        lambda array: pa.MapArray.from_arrays([0, 1, 2], pa.array(["p", "q"]), array),
        lambda values: [[("p", values[0])], [("q", values[1])]],
    ),
}


def shown(name: str) -> list[Any]:
    """Return the values of a stored column as a table gives them back."""
    return SHOWN[name] if name in SHOWN else list(STORED[name].to_pylist())
