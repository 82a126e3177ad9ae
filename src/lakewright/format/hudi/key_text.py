"""Values as text, in the form that Hudi puts into record keys and partition paths.

The form is Java's: ``1.0E10`` for a double, ``true`` for a boolean, the scale kept for a
decimal, hexadecimal for binary, microseconds since the epoch for a timestamp.
"""

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence

import numpy as np

from lakewright.model.errors import Invalid
from lakewright.model.schema import DataType, Decimal, Kind, Primitive, Timestamp, Unit

NULL_PART = "__null__"
EMPTY_PART = "__empty__"

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
#: Between these Java writes the shortest digits without an exponent, as Python does for doubles.
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7
#: The context of the calling thread may keep fewer digits than a decimal has.
_EXACT = decimal.Context(prec=60)


def java_double(value: float) -> str:
    """Write a double as Java's ``Double.toString`` does (since Java 19: the shortest digits)."""
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return repr(value)
    return _java_float(value, repr(value), f"{value:.1e}")


def java_float(value: float) -> str:
    """Write a 32-bit float as Java's ``Float.toString`` does."""
    single = np.float32(value)
    if _PLAIN_FROM <= abs(single) < _PLAIN_BELOW:
        return np.format_float_positional(single, trim="0")
    return _java_float(value, np.format_float_scientific(single), f"{single:.1e}")


def _java_float(value: float, shortest: str, two_digits: str) -> str:
    if value != value:
        return "NaN"
    sign = "-" if shortest.startswith("-") else ""
    if value in (float("inf"), float("-inf")):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    digits, exponent = _digits_and_exponent(shortest)
    if len(digits) == 1:
        # Java wants two digits anyway, so it takes the nearest two: 4.9E-324, not 5.0E-324.
        digits, exponent = _digits_and_exponent(two_digits)
    if -3 <= exponent < 7:
        return sign + _plain(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits_and_exponent(text: str) -> tuple[str, int]:
    """Return the significant digits and the power of ten of the first of them."""
    _, digits, exponent = decimal.Decimal(text).as_tuple()
    power = len(digits) - 1 + int(exponent)
    return "".join(map(str, digits)).rstrip("0"), power


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :] or '0'}"


def value_text(value: object, kind: DataType | None = None) -> str:
    """Write one value as Hudi does; ``kind`` tells a float from a double and milliseconds
    from microseconds where the value alone cannot."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return _integer_text(value, kind)
        case float():
            single = isinstance(kind, Primitive) and kind.kind is Kind.FLOAT
            return java_float(value) if single else java_double(value)
        case decimal.Decimal():
            return _decimal_text(value, kind)
        case dt.datetime():
            return str(_epoch(value, kind))
        case dt.date():
            return value.isoformat()
        case bytes() | bytearray():
            return value.hex()
        case _:
            raise Invalid(
                f"a value of type {type(value).__name__} cannot be part of a key.",
                next_step="Use text, numbers, booleans, dates, timestamps or binary.",
            )


def _integer_text(value: int, kind: DataType | None) -> str:
    if isinstance(kind, Primitive) and kind.kind is Kind.DATE:
        return dt.date.fromordinal(_EPOCH_DAY + value).isoformat()
    return str(value)


def _decimal_text(value: decimal.Decimal, kind: DataType | None) -> str:
    if isinstance(kind, Decimal):
        step = decimal.Decimal((0, (1,), -kind.scale))
        value = value.quantize(step, context=_EXACT)
    # There is no negative zero on the JVM.
    if not value:
        value = value.copy_abs()
    # Java's BigDecimal and Python's Decimal agree on when an exponent is written: 1E-7, 0.000001.
    return _EXACT.to_sci_string(value)


def _epoch(value: dt.datetime, kind: DataType | None) -> int:
    aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    micros = (aware - _EPOCH) // dt.timedelta(microseconds=1)
    millis = isinstance(kind, Timestamp) and kind.unit is Unit.MILLIS
    return micros // 1000 if millis else micros


def logical_timestamp_text(value: dt.datetime) -> str:
    """Write a timestamp in the other form, which bulk inserts of real Hudi use for keys.

    Cut to milliseconds, trailing zeros dropped but one: ``2024-02-29 13:14:15.123``.
    """
    millis = f"{value.microsecond // 1000:03d}".rstrip("0") or "0"
    return f"{value:%Y-%m-%d %H:%M:%S}.{millis}"


def simple_key(name: str, value: object, kind: DataType | None = None) -> str:
    """Return the record key of a row whose key is one column."""
    text = "" if value is None else value_text(value, kind)
    if not text:
        raise Invalid(
            f"the record key column {name!r} is {'null' if value is None else 'empty'}.",
            next_step="Every row needs a key that is neither null nor empty.",
            column=name,
        )
    return text


def complex_key(
    names: Sequence[str], values: Sequence[object], kinds: Mapping[str, DataType] | None = None
) -> str:
    """Return the record key ``a:1,b:2`` of a row whose key is several columns."""
    kinds = kinds or {}
    given = zip(names, values, strict=True)
    texts = [None if value is None else value_text(value, kinds.get(name)) for name, value in given]
    if not any(texts):
        raise Invalid(
            f"the record key columns {', '.join(names)} are all null or empty.",
            next_step="Every row needs a key with at least one part.",
            columns=list(names),
        )
    parts = (NULL_PART if text is None else text or EMPTY_PART for text in texts)
    return ",".join(f"{name}:{part}" for name, part in zip(names, parts, strict=True))


def split_complex_key(key: str, names: Sequence[str]) -> tuple[str | None, ...] | None:
    """Take a complex key apart: None for a null part; None at all where it does not fit.

    Values may hold ``,`` and ``:``; the next ``,name:`` ends a value, so the answer is exact
    unless a value itself contains that text.
    """
    parts: list[str | None] = []
    rest = key
    for index, name in enumerate(names):
        if not rest.startswith(f"{name}:"):
            return None
        rest = rest[len(name) + 1 :]
        text, comma, rest = (
            rest.partition(f",{names[index + 1]}:") if index + 1 < len(names) else (rest, "", "")
        )
        if comma:
            rest = comma[1:] + rest
        elif index + 1 < len(names):
            return None
        parts.append({NULL_PART: None, EMPTY_PART: ""}.get(text, text))
    return tuple(parts)
