"""CAST on Arrow arrays; what does not convert is NULL.

Texts in their usual form are read by Arrow's kernels. A batch that holds others is read value
by value with the grammars of ``model.expression.values``, so that both ways agree.
"""

from collections.abc import Callable
from decimal import Decimal as PyDecimal

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.expression_types import Datum, kernel_type, refused
from lakewright.model.expression.types import (
    INT_RANGE,
    LONG_DECIMAL,
    MAX_DIGITS,
    is_floating,
    is_integer,
)
from lakewright.model.expression.values import DECIMAL_TEXT, read_text
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    DataType,
    Decimal,
    Fixed,
    Time,
    Timestamp,
)

Kernel = Callable[[Datum], Datum]

_DAY = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_USUAL_TEXT: dict[DataType, str] = {
    INT: r"\A-?[0-9]{1,9}\z",
    LONG: r"\A-?[0-9]{1,18}\z",
    DOUBLE: rf"\A{DECIMAL_TEXT}\z",
    DATE: rf"\A{_DAY}\z",
}
_USUAL_MOMENT = rf"\A{_DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,6}})?\z"
#: A double between these is exact in decimal256(76, 38): 17 digits, none below the scale.
_TINY, _HUGE = 1e-20, 1e38
_WIDE = pa.decimal256(76, 38)
_MICROS = 1_000_000


def is_plain_cast(source: DataType, to: DataType) -> bool:
    """Tell whether a conversion widens: it never fails, and statistics pass through it."""
    if to in (LONG, DOUBLE):
        return source == INT or (to == DOUBLE and source == FLOAT)
    if isinstance(to, Timestamp):
        return source == DATE
    return False


def cast_kernel(source: DataType, to: DataType) -> Kernel:
    """Return the kernel of a conversion; ``Unsupported`` where Arrow's result would differ."""
    into = kernel_type(to)
    if kernel_type(source) == into:
        return lambda x: x
    if source == STRING:
        return _from_text(to)
    if to == STRING:
        return _to_text(source)
    if to == BOOLEAN:
        nought = PyDecimal(0) if isinstance(source, Decimal) else 0
        zero = pa.scalar(nought, kernel_type(source))
        return lambda x: pc.not_equal(x, zero)
    if isinstance(to, Timestamp) and is_integer(source):
        return _from_seconds(into)
    if isinstance(source, Timestamp) and to == LONG:
        return _to_seconds
    if isinstance(to, (Timestamp, Time)) or to == DATE or isinstance(source, Fixed):
        return lambda x: x.cast(into)
    if isinstance(to, Decimal):
        return _to_decimal(source, to)
    if is_integer(to):
        return _to_integer(source, to)
    if isinstance(source, Decimal):
        # By way of the digits: Arrow's own conversion is not correctly rounded.
        return lambda x: x.cast(pa.string()).cast(pa.float64()).cast(into, safe=False)
    return lambda x: x.cast(into, safe=False)


def _from_text(to: DataType) -> Kernel:
    into = kernel_type(to)
    if to == BINARY:
        return lambda x: x.cast(into)
    usual = _USUAL_MOMENT if isinstance(to, Timestamp) else _USUAL_TEXT.get(to)
    # A reading without a zone is one in UTC.
    first = pa.timestamp("us") if isinstance(to, Timestamp) else into

    def kernel(text: Datum) -> Datum:
        if usual is not None and _all_match(text, usual):
            try:
                return text.cast(first).cast(into)
            except pa.ArrowInvalid:
                pass  # the 30th of February: NULL for this value, found one by one
        return _read_each(text, to)

    return kernel


def _all_match(text: Datum, pattern: str) -> bool:
    if isinstance(text, pa.Scalar):
        return False
    return pc.all(pc.match_substring_regex(text, pattern=pattern)).as_py() is not False


def _read_each(text: Datum, to: DataType) -> Datum:
    into = kernel_type(to)
    if isinstance(text, pa.Scalar):
        return pa.scalar(_read(text.as_py(), to), into)
    different = text.dictionary_encode()
    read = pa.array([_read(value, to) for value in different.dictionary.to_pylist()], into)
    return read.take(different.indices)


def _read(text: str | None, to: DataType) -> object:
    try:
        return None if text is None else read_text(text, to)
    except ValueError:
        return None


def _to_text(source: DataType) -> Kernel:
    if isinstance(source, Timestamp):
        return _moment_text
    plain = is_integer(source) or source in (BOOLEAN, DATE)
    # With a larger scale, small decimals are written in scientific notation.
    if plain or (isinstance(source, Decimal) and source.scale <= 6):
        return lambda x: x.cast(pa.string())
    raise refused(f"CAST of {source} to string")


def _moment_text(moment: Datum) -> Datum:
    """Seconds with as many digits after the point as are not zero."""
    full = moment.cast(pa.timestamp("us")).cast(pa.string())
    cut = pc.replace_substring_regex(full, pattern=r"0+\z", replacement="")
    return pc.replace_substring_regex(cut, pattern=r"\.\z", replacement="")


def _from_seconds(into: pa.DataType) -> Kernel:
    most = pa.scalar((2**63 - 1) // _MICROS, pa.int64())
    nothing = pa.scalar(None, pa.int64())

    def kernel(seconds: Datum) -> Datum:
        whole = seconds.cast(pa.int64())
        fits = pc.less_equal(pc.abs(whole), most)
        return pc.multiply(pc.if_else(fits, whole, nothing), _MICROS).cast(into)

    return kernel


def _to_seconds(moment: Datum) -> Datum:
    micros = moment.cast(pa.int64())
    cut = pc.divide(micros, _MICROS)
    # Division cuts toward zero, time goes to the second before.
    return pc.if_else(pc.greater(pc.multiply(cut, _MICROS), micros), pc.subtract(cut, 1), cut)


def _to_integer(source: DataType, to: DataType) -> Kernel:
    into = kernel_type(to)
    if source == BOOLEAN or (to == LONG and source == INT):
        return lambda x: x.cast(into)
    if is_floating(source):
        return _truncated(float(INT_RANGE[1] + 1) if to == INT else 2.0**63, into)
    low, high = INT_RANGE if to == INT else (-(2**63), 2**63 - 1)
    kind = kernel_type(source) if is_integer(source) else pa.decimal128(MAX_DIGITS, 0)
    bounds = [pa.scalar(PyDecimal(b) if not is_integer(source) else b, kind) for b in (low, high)]
    nothing = pa.scalar(None, kind)
    roomy = roomy_type(source) if isinstance(source, Decimal) else None

    def kernel(number: Datum) -> Datum:
        whole = number if roomy is None else pc.trunc(number.cast(roomy)).cast(kind)
        fits = pc.and_(pc.greater_equal(whole, bounds[0]), pc.less_equal(whole, bounds[1]))
        return pc.if_else(fits, whole, nothing).cast(into)

    return kernel


def _truncated(limit: float, into: pa.DataType) -> Kernel:
    top, bottom = pa.scalar(limit), pa.scalar(-limit)
    nothing = pa.scalar(None, pa.float64())

    def kernel(number: Datum) -> Datum:
        whole = pc.trunc(number.cast(pa.float64()))
        fits = pc.and_(pc.less(whole, top), pc.greater_equal(whole, bottom))
        return pc.if_else(fits, whole, nothing).cast(into)

    return kernel


def _to_decimal(source: DataType, to: Decimal) -> Kernel:
    if is_floating(source) and to.scale > 18:
        raise refused(f"CAST of {source} to {to}")
    into, whole = kernel_type(to), to.precision - to.scale
    wide, longest = _WIDE, MAX_DIGITS
    widened: Kernel = decimal_of_double
    if not is_floating(source):
        digits = source if isinstance(source, Decimal) else LONG_DECIMAL
        # As many digits before the point as there can be: the first value that is too large
        # has one more than the largest decimal.
        wide = pa.decimal256(_WIDE.precision, digits.scale)
        widened = _widening(wide)
        longest = digits.precision - digits.scale + (digits.scale > to.scale)

    def rounded(number: Datum) -> Datum:
        return pc.round(widened(number), ndigits=to.scale, round_mode="half_towards_infinity")

    if longest <= whole:
        return lambda number: rounded(number).cast(into)
    limit = PyDecimal((0, (1,), whole))
    top, bottom = pa.scalar(limit, wide), pa.scalar(limit.copy_negate(), wide)
    nothing = pa.scalar(None, wide)

    def kernel(number: Datum) -> Datum:
        value = rounded(number)
        fits = pc.and_(pc.less(value, top), pc.greater(value, bottom))
        return pc.if_else(fits, value, nothing).cast(into)

    return kernel


def _widening(wide: pa.DataType) -> Kernel:
    def kernel(number: Datum) -> Datum:
        if pa.types.is_boolean(number.type):
            number = number.cast(pa.int64())
        if pa.types.is_integer(number.type):
            number = number.cast(pa.decimal128(LONG_DECIMAL.precision, 0))
        return number.cast(wide)

    return kernel


def roomy_type(kind: Decimal) -> pa.DataType:
    """Return the type of the same decimals with a digit to spare: 9.9 rounds to 10.

    It is also the one in which 0.5 can be cut to a whole number: of a decimal whose digits all
    follow the point, Arrow makes none.
    """
    return pa.decimal256(kind.precision + 1, kind.scale)


def decimal_of_double(number: Datum) -> Datum:
    """Return the shortest decimal that reads as the double; NULL for what no decimal holds.

    What lies below 1e-20 becomes 0, so callers must not ask for 19 digits after the point.
    """
    double = number.cast(pa.float64())
    size = pc.abs(double)
    fits = pc.less(size, pa.scalar(_HUGE))  # false for NaN and the infinities
    bounded = pc.if_else(fits, double, pa.scalar(None, pa.float64()))
    visible = pc.if_else(pc.less(size, pa.scalar(_TINY)), pa.scalar(0.0), bounded)
    return visible.cast(pa.string()).cast(_WIDE)
