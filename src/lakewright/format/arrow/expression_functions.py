"""The named functions on Arrow arrays."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.expression_arithmetic import absolute
from lakewright.format.arrow.expression_casts import decimal_of_double, roomy_type
from lakewright.format.arrow.expression_types import Datum, kernel_type, refused
from lakewright.model.expression.bound import BoundExpression, BoundLiteral
from lakewright.model.schema import STRING, DataType, Decimal

Kernel = Callable[..., Datum]
Arguments = tuple[BoundExpression, ...]

_SPACE = " "
_LONG_LIMIT = 2.0**63
#: Doubles from here on have no digits after the point.
_ALL_WHOLE = 2.0**52


def function_kernel(name: str, arguments: Arguments, kind: DataType) -> Kernel:
    """Return the kernel of a function; ``Unsupported`` names what it cannot do exactly."""
    match name:
        case "lower" | "upper":
            return lambda text: _cased(text, name)
        case "trim":
            return lambda text: pc.utf8_trim(text, characters=_SPACE)
        case "ltrim":
            return lambda text: pc.utf8_ltrim(text, characters=_SPACE)
        case "rtrim":
            return lambda text: pc.utf8_rtrim(text, characters=_SPACE)
        case "length":
            return _length(arguments[0].type)
        case "substring":
            return _substring(arguments)
        case "concat":
            return lambda *parts: pc.binary_join_element_wise(*parts, pa.scalar(""))
        case "abs":
            return absolute(kind)
        case "round":
            return _round(arguments, kind)
        case "floor" | "ceil":
            return _whole(pc.floor if name == "floor" else pc.ceil, arguments[0].type, kind)
        case "isnan":
            return lambda number: pc.coalesce(pc.is_nan(number), pa.scalar(False))
        case "coalesce":
            return pc.coalesce  # type: ignore[no-any-return]
        case "year" | "quarter" | "month" | "day" | "hour" | "minute" | "second":
            part = getattr(pc, name)
            return lambda when: part(when).cast(pa.int32())
        case "wall_clock":
            return _wall_clock(_zone(arguments))
        case "moment_at":
            return _moment_at(_zone(arguments))
        case "date_trunc":
            return _date_trunc(arguments)
        case _:
            raise refused(name)


def _cased(text: Datum, name: str) -> Datum:
    """Arrow maps one character to one; outside ASCII the full mapping of Unicode is needed."""
    kernel = pc.utf8_lower if name == "lower" else pc.utf8_upper
    plain = pc.string_is_ascii(text)
    if isinstance(text, pa.Scalar):
        value = text.as_py()
        return text if value is None else pa.scalar(getattr(value, name)())
    if pc.all(plain).as_py() is not False:
        return kernel(text)
    different = text.dictionary_encode()
    values = different.dictionary.to_pylist()
    return pa.array([getattr(v, name)() for v in values], pa.string()).take(different.indices)


def _length(kind: DataType) -> Kernel:
    count = pc.utf8_length if kind == STRING else pc.binary_length
    return lambda value: count(value).cast(pa.int32())


def _constant(argument: BoundExpression, name: str) -> int | None:
    if not isinstance(argument, BoundLiteral):
        raise refused(f"{name} with positions that are not constants")
    assert argument.value is None or isinstance(argument.value, int)
    return argument.value


def _substring(arguments: Arguments) -> Kernel:
    """Positions start at 1 (0 means the same) and count from the end where they are negative."""
    position = _constant(arguments[1], "substring")
    size = _constant(arguments[2], "substring") if len(arguments) > 2 else 2**31 - 1
    if position is None or size is None:
        return lambda text, *_: pa.scalar(None, pa.string())
    if size <= 0:
        empty = pa.scalar("")
        return lambda text, *_: pc.if_else(pc.is_valid(text), empty, pa.scalar(None, pa.string()))
    start = position - 1 if position > 0 else position
    end = start + size
    stop = None if start < 0 <= end else end
    return lambda text, *_: pc.utf8_slice_codeunits(text, start=start, stop=stop)


def _round(arguments: Arguments, kind: DataType) -> Kernel:
    digits = _constant(arguments[1], "round")
    assert digits is not None
    if isinstance(kind, Decimal):
        source = arguments[0].type
        assert isinstance(source, Decimal)
        into, roomy = kernel_type(kind), roomy_type(source)
        return lambda number, _: pc.round(
            number.cast(roomy), ndigits=digits, round_mode="half_towards_infinity"
        ).cast(into)
    if digits > 15:
        raise refused("round to more than 15 digits")

    def kernel(number: Datum, _: Datum) -> Datum:
        """Round the digits that are written, not their binary image: 2.675 becomes 2.68."""
        written = pc.round(
            decimal_of_double(number), ndigits=digits, round_mode="half_towards_infinity"
        )
        rounded = written.cast(pa.string()).cast(pa.float64())
        return pc.if_else(pc.less(pc.abs(number), pa.scalar(_ALL_WHOLE)), rounded, number)

    return kernel


def _whole(kernel: Kernel, source: DataType, kind: DataType) -> Kernel:
    if isinstance(kind, Decimal):
        assert isinstance(source, Decimal)
        into, roomy = kernel_type(kind), roomy_type(source)
        return lambda number: kernel(number.cast(roomy)).cast(into)

    def to_long(number: Datum) -> Datum:
        """NaN is 0, and what is too large is the largest long, as on the JVM."""
        whole = pc.if_else(pc.is_nan(number), pa.scalar(0.0), kernel(number))
        below = pc.if_else(
            pc.less(whole, pa.scalar(_LONG_LIMIT)),
            pc.if_else(pc.less(whole, pa.scalar(-_LONG_LIMIT)), pa.scalar(-_LONG_LIMIT), whole),
            pa.scalar(None, pa.float64()),
        ).cast(pa.int64())
        above = pc.greater_equal(whole, pa.scalar(_LONG_LIMIT))
        return pc.if_else(above, pa.scalar(2**63 - 1, pa.int64()), below)

    return to_long


def _date_trunc(arguments: Arguments) -> Kernel:
    unit = arguments[0]
    assert isinstance(unit, BoundLiteral) and isinstance(unit.value, str)
    name = unit.value
    return lambda _, moment: pc.floor_temporal(moment, unit=name)


def _zone(arguments: Arguments) -> str:
    zone = arguments[1]
    assert isinstance(zone, BoundLiteral) and isinstance(zone.value, str)
    return zone.value


def _wall_clock(zone: str) -> Kernel:
    there = pa.timestamp("us", zone)
    return lambda moment, _: pc.local_timestamp(moment.cast(there))


def _moment_at(zone: str) -> Kernel:
    def kernel(wall: Datum, _: Datum) -> Datum:
        """Read a clock; within an hour that it leaves out, by the offset from before."""
        near = pc.assume_timezone(wall, zone, ambiguous="earliest", nonexistent="earliest")
        # What the clock lacks is late by as much as it lies behind the last time that it shows.
        late = pc.subtract(wall, pc.local_timestamp(near))
        return pc.add(near, late).cast(pa.timestamp("us", "UTC"))

    return kernel
