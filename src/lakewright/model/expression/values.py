"""Constants: how a text is read as a value of a type, and how a value fits another type.

The grammars are those of Spark's CAST. They are plain regular expressions without
look-around, so that translators can hand the same ones to their engine.
"""

import math
import re
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, InvalidOperation
from decimal import Decimal as PyDecimal

from lakewright.model.expression.types import INT_RANGE, LONG_RANGE, Value
from lakewright.model.expression.zones import (
    UNZONED,
    absolute,
    current_zone,
    moment_of,
    wall_of,
)
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

#: What is cut from both ends of a text before it is read as another type.
BLANKS = " \t\n\r\f\v"
TRUE_WORDS = ("t", "true", "y", "yes", "1")
FALSE_WORDS = ("f", "false", "n", "no", "0")
INTEGER_TEXT = r"[+-]?[0-9]+"
DECIMAL_TEXT = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
INFINITY_TEXT = r"[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"
NAN_TEXT = r"[nN][aA][nN]"
DATE_TEXT = r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?"
CLOCK_TEXT = r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?"
ZONE_TEXT = r"(Z|UTC|GMT|([+-])([0-9]{1,2})(?::([0-9]{2}))?)"
MOMENT_TEXT = (
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](?:"
    + CLOCK_TEXT
    + r" ?"
    + ZONE_TEXT
    + r"?)?)?)?)?"
)

#: For all computing with decimals here: the context of the calling thread keeps 28 digits
#: unless it was told otherwise, and may round or refuse in ways of its own.
_EXACT = Context(prec=100)
_INTEGER = re.compile(INTEGER_TEXT)
_DECIMAL = re.compile(DECIMAL_TEXT)
_INFINITY = re.compile(INFINITY_TEXT)
_NAN = re.compile(NAN_TEXT)
_DATE = re.compile(DATE_TEXT, re.DOTALL)
_CLOCK = re.compile(CLOCK_TEXT)
_MOMENT = re.compile(MOMENT_TEXT)


def read_text(text: str, to: DataType) -> Value:
    """Read a text as a value of the type; ValueError when it is none."""
    if to == STRING:
        return text
    if to == BINARY or isinstance(to, Fixed):
        return text.encode()
    trimmed = text.strip(BLANKS)
    if to == BOOLEAN:
        return _boolean(trimmed)
    if to in (INT, LONG):
        return _whole(trimmed, INT_RANGE if to == INT else LONG_RANGE)
    if to in (FLOAT, DOUBLE):
        number = _floating(trimmed)
        return narrow_float(number) if to == FLOAT else number
    if to == DATE:
        return _date(trimmed)
    if isinstance(to, Timestamp):
        return _moment(trimmed, utc=to.utc)
    if isinstance(to, Decimal):
        if not _DECIMAL.fullmatch(trimmed):
            raise ValueError(text)
        try:
            exact = PyDecimal(trimmed, _EXACT)
        except InvalidOperation as error:  # an exponent of twenty digits
            raise ValueError(text) from error
        return fit_decimal(exact, to)
    if isinstance(to, Time):
        return _clock(trimmed)
    raise ValueError(text)


def fit_decimal(value: PyDecimal, to: Decimal) -> PyDecimal:
    """Round half up to the scale of the type; ValueError when the digits do not fit.

    There is one zero, without a sign, as in SQL and on the JVM.
    """
    try:
        fitted = value.quantize(PyDecimal((0, (1,), -to.scale)), ROUND_HALF_UP, _EXACT)
    except InvalidOperation as error:
        raise ValueError(str(value)) from error
    if not fitted:
        return fitted.copy_abs()
    if fitted.adjusted() >= to.precision - to.scale:
        raise ValueError(str(value))
    return fitted


def narrow_float(value: float) -> float:
    """Round to the nearest number that a four-byte float holds."""
    try:
        narrowed: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return narrowed


def at_midnight(day: date, *, utc: bool) -> datetime:
    """Return the first moment of a day, in the zone that is read in."""
    first = datetime(day.year, day.month, day.day)
    return moment_of(first, current_zone()) if utc else first


def in_zone(moment: datetime, *, utc: bool) -> datetime:
    """Bring a moment to UTC, or to the wall clock of the zone that is read in, and back."""
    if moment.tzinfo is None:
        return moment_of(moment, current_zone()) if utc else moment
    moment = absolute(moment)
    return moment.astimezone(UTC) if utc else wall_of(moment, current_zone())


def _boolean(text: str) -> bool:
    word = text.lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError(text)


def _whole(text: str, allowed: tuple[int, int]) -> int:
    # The length guard keeps a hostile text from costing quadratic time; no long has 100 digits.
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > 100:
        raise ValueError(text)
    number = int(text)
    if not allowed[0] <= number <= allowed[1]:
        raise ValueError(text)
    return number


def _floating(text: str) -> float:
    if _NAN.fullmatch(text):
        return math.nan
    if _INFINITY.fullmatch(text):
        return -math.inf if text.startswith("-") else math.inf
    if _DECIMAL.fullmatch(text):
        return float(text)
    raise ValueError(text)


def _date(text: str) -> date:
    parts = _DATE.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    return date(int(parts[1]), int(parts[2] or 1), int(parts[3] or 1))


def _clock(text: str) -> time:
    parts = _CLOCK.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    hour, minute, second, fraction = parts.groups()
    return time(int(hour), int(minute), int(second or 0), _micros(fraction))


def read_moment(text: str) -> datetime:
    """Read a text as a moment; where it names no zone, the moment's is ``UNZONED``."""
    return _moment(text.strip(BLANKS), utc=True, unzoned=UNZONED)


def _moment(text: str, *, utc: bool, unzoned: tzinfo | None = None) -> datetime:
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone, sign, ahead, ahead_minutes = (
        parts.groups()
    )
    reading = datetime(
        int(year),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        _micros(fraction),
    )
    if not utc:
        return reading
    if zone is None:
        return in_zone(reading, utc=True) if unzoned is None else reading.replace(tzinfo=unzoned)
    if sign is None:
        return reading.replace(tzinfo=UTC)
    offset = timedelta(hours=int(ahead), minutes=int(ahead_minutes or 0))
    if offset > timedelta(hours=18):
        raise ValueError(text)
    try:
        return in_zone(
            reading.replace(tzinfo=timezone(-offset if sign == "-" else offset)), utc=True
        )
    except OverflowError as error:
        raise ValueError(text) from error


def _micros(fraction: str | None) -> int:
    return int((fraction or "0")[:6].ljust(6, "0"))
