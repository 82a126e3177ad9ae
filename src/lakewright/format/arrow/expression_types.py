"""In which Arrow types expressions are computed."""

from typing import Any, TypeAlias

import pyarrow as pa

from lakewright.format.arrow.schema import to_arrow_type
from lakewright.model.errors import Unsupported
from lakewright.model.expression.types import Value
from lakewright.model.schema import DataType, Fixed, Time, Timestamp

#: An array, a scalar, or a ``pyarrow.compute.Expression``.
Datum: TypeAlias = Any

#: NULL as an outcome.
NO_ANSWER = pa.scalar(None, pa.bool_())


def kernel_type(kind: DataType) -> pa.DataType:
    """Return the type of a value while it is computed with; times are in microseconds."""
    match kind:
        case Timestamp(utc=utc):
            return pa.timestamp("us", tz="UTC" if utc else None)
        case Time():
            return pa.time64("us")
        case Fixed():
            return pa.binary()
        case _:
            return to_arrow_type(kind)


def scalar(value: Value, kind: DataType) -> pa.Scalar:
    """Return a constant in the type in which it is computed with."""
    return pa.scalar(value, kernel_type(kind))


def refused(what: str) -> Unsupported:
    """Return the error for what Arrow cannot compute as SQL does."""
    return Unsupported(
        f"{what} cannot be computed on Arrow exactly as in SQL.",
        next_step="Read through Spark (to_spark), or filter the Arrow result yourself.",
        construct=what,
    )
