"""Partition paths made of formatted times (Hudi's TIMESTAMP key generator).

The texts are those that Hudi writes, odd as some are: a row in another folder than Hudi's would
be there twice.
"""

import datetime as dt
import decimal
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.schema import DATE, DataType, Timestamp, Unit

PREFIX = "hoodie.keygen.timebased."
TYPE = PREFIX + "timestamp.type"
SCALAR_UNIT = PREFIX + "timestamp.scalar.time.unit"
INPUT_FORMAT = PREFIX + "input.dateformat"
INPUT_DELIMITER = PREFIX + "input.dateformat.list.delimiter.regex"
INPUT_ZONE = PREFIX + "input.timezone"
OUTPUT_FORMAT = PREFIX + "output.dateformat"
OUTPUT_ZONE = PREFIX + "output.timezone"
ZONE = PREFIX + "timezone"
_SETTINGS = (
    TYPE,
    SCALAR_UNIT,
    INPUT_FORMAT,
    INPUT_DELIMITER,
    INPUT_ZONE,
    OUTPUT_FORMAT,
    OUTPUT_ZONE,
    ZONE,
)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
#: Kinds of numbers, and what one of them counts.
_KINDS = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
#: Nanoseconds of each unit.
_UNITS = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 1_000,
    "MILLISECONDS": 1_000_000,
    "SECONDS": 1_000_000_000,
    "MINUTES": 60 * 1_000_000_000,
    "HOURS": 3_600 * 1_000_000_000,
    "DAYS": 86_400 * 1_000_000_000,
}
_COLUMN_UNITS = {Unit.MILLIS: "MILLISECONDS", Unit.MICROS: "MICROSECONDS"}
_DAY = dt.timedelta(days=1)
_QUARTER = dt.timedelta(minutes=15)
#: How long a text lasts that is made with a letter, the shortest first.
_SPANS = {
    "S": None,
    "s": dt.timedelta(seconds=1),
    "m": dt.timedelta(minutes=1),
    "H": dt.timedelta(hours=1),
    "h": dt.timedelta(hours=1),
}
#: Zones that Java makes of an offset, such as GMT+8:00.
_OFFSET = re.compile(r"GMT([+-])([0-9]{1,2})(?::?([0-5][0-9]))?", re.ASCII)
#: Java's pattern: quoted text, a run of one letter, or any other character.
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)
_READ = {
    "y": r"(?P<year>[0-9]{4})",
    "M": r"(?P<month>[0-9]{1,2})",
    "d": r"(?P<day>[0-9]{1,2})",
    "H": r"(?P<hour>[0-9]{1,2})",
    "m": r"(?P<minute>[0-9]{1,2})",
    "s": r"(?P<second>[0-9]{1,2})",
    "S": r"(?P<fraction>[0-9]{1,9})",
    "Z": r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})",
}


def format_time_partition(value: object, properties: Mapping[str, str]) -> str:
    """Return the text that the table's settings make of a column's raw value.

    For a null Hudi formats a time too: one unit after the epoch, or the epoch in the first
    format of texts.
    """
    if OUTPUT_FORMAT not in properties:
        raise Invalid(
            f"the table has no {OUTPUT_FORMAT}.",
            next_step="Hudi does not store the settings of a custom key generator: add those "
            f"that its writers are given ({PREFIX}*) to hoodie.properties.",
        )
    moment = _moment(value, properties)
    zone = _zone(properties, OUTPUT_ZONE)
    # Without a zone, Hudi formats a text in the zone that it was read in.
    return format_java(moment.astimezone(zone) if zone else moment, properties[OUTPUT_FORMAT])


def why_not_formatted(kind: DataType | None, properties: Mapping[str, str]) -> str | None:
    """Say why the times of a column cannot be written as Hudi does; None where they can.

    Hudi takes the bare number of a timestamp for a count of the units that the settings name,
    or, by an option that tables do not keep, the timestamp for what it is: both are the same
    where the units are.
    """
    if not isinstance(kind, Timestamp):
        return None
    if _unit_name(_kind(properties), properties) == _COLUMN_UNITS[kind.unit]:
        return None
    wanted = "EPOCHMICROSECONDS" if kind.unit is Unit.MICROS else "EPOCHMILLISECONDS"
    return f"Hudi takes the number in a {kind} for {_kind(properties)}, unless {TYPE} is {wanted}"


def shifts_dates(kind: DataType | None, properties: Mapping[str, str]) -> bool:
    """Whether the days of a date would be taken for seconds or the like."""
    return kind == DATE and _unit_name(_kind(properties), properties) != "DAYS"


def same_text_for(properties: Mapping[str, str]) -> dt.timedelta | None:
    """Return a span, counted from the epoch, within which all times have one text, if there is one.

    Outside of UTC it holds from 1990 on: since then zones differ from it by quarters of hours.
    """
    letters = {t.group(2) for t in _TOKEN.finditer(properties.get(OUTPUT_FORMAT, "")) if t.group(2)}
    span = next((span for letter, span in _SPANS.items() if letter in letters), _DAY)
    zone = _zone(properties, OUTPUT_ZONE)
    if span is None or zone is None or zone is dt.UTC:
        return span
    odd = isinstance(zone, dt.timezone) and zone.utcoffset(None) % _QUARTER
    return min(span, dt.timedelta(minutes=1) if odd else _QUARTER)


def epoch_unit(properties: Mapping[str, str]) -> dt.timedelta | None:
    """Return what one stands for in a column of numbers, None where they are no epoch times."""
    name = _KINDS.get(properties.get(TYPE, ""))
    return None if name is None else dt.timedelta(microseconds=_UNITS[name] // 1_000)


def check_time_settings(properties: Mapping[str, str]) -> None:
    """Refuse settings that cannot format times; the error names the setting."""
    given = {key: value for key, value in properties.items() if key.startswith(PREFIX)}
    if unknown := sorted(set(given) - set(_SETTINGS)):
        raise Invalid(
            f"unknown settings: {', '.join(unknown)}.",
            next_step=f"Known: {', '.join(_SETTINGS)}.",
        )
    kind = given.get(TYPE, "")
    if kind not in (*_KINDS, "SCALAR", "DATE_STRING", "MIXED"):
        raise Invalid(
            f"{TYPE} is {kind!r}.",
            next_step=f"Allowed: {', '.join(_KINDS)}, SCALAR, DATE_STRING, MIXED.",
        )
    if kind in _KINDS or kind == "SCALAR":
        _unit_of(kind, given)
    elif not given.get(INPUT_FORMAT):
        raise Invalid(f"{TYPE}={kind} needs {INPUT_FORMAT}.", next_step="Give e.g. yyyy-MM-dd.")
    else:
        for pattern in _patterns(given):
            parse_java("", pattern, dt.UTC)
    _zone(given, INPUT_ZONE)
    format_time_partition(_EPOCH, given)


def _moment(value: object, properties: Mapping[str, str]) -> dt.datetime:
    kind = _kind(properties)
    by_text = kind in ("DATE_STRING", "MIXED")
    match value:
        case None if by_text:
            epoch = _EPOCH.astimezone(_zone(properties, INPUT_ZONE) or dt.UTC)
            return _parse_any(format_java(epoch, _patterns(properties)[0]), properties)
        case None:
            return _counted(1, kind, properties)
        case dt.datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return _at(_towards_zero((moment - _EPOCH) // dt.timedelta(microseconds=1), 1_000))
        case dt.date():
            return _counted((value - _EPOCH.date()).days, kind, properties)
        case str() if by_text:
            return _parse_any(value, properties)
        case float() if math.isnan(value):
            return _counted(0, kind, properties)
        case int() | float() | decimal.Decimal() if math.isfinite(value):
            return _counted(int(value), kind, properties)
        case str() if re.fullmatch(r"-?[0-9]{1,19}", value):
            return _counted(int(value), kind, properties)
        case _:
            raise Invalid(
                f"{value!r} is no time of the kind {kind}.",
                next_step="Give values of that kind, or create the table with theirs.",
                value=value,
            )


def _kind(properties: Mapping[str, str]) -> str:
    return properties.get(TYPE, "DATE_STRING" if INPUT_FORMAT in properties else "UNIX_TIMESTAMP")


def _counted(count: int, kind: str, properties: Mapping[str, str]) -> dt.datetime:
    return _at(_towards_zero(count * _unit_of(kind, properties), 1_000_000))


def _towards_zero(number: int, by: int) -> int:
    """Divide as Java does."""
    return number // by if number >= 0 else -(-number // by)


def _at(millis: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError as cause:
        raise Invalid(
            f"a time {millis} ms from 1970 lies outside the years 1 to 9999.",
            next_step="Give times between those years.",
            value=millis,
        ) from cause


def _unit_of(kind: str, properties: Mapping[str, str]) -> int:
    """Return how many nanoseconds one stands for in a column of numbers."""
    name = _unit_name(kind, properties)
    if name in _UNITS:
        return _UNITS[name]
    raise Unsupported(
        f"{TYPE} is {kind}, which does not turn numbers into times here.",
        next_step=f"Known: {', '.join(_KINDS)}, SCALAR with {', '.join(_UNITS)}.",
    )


def _unit_name(kind: str, properties: Mapping[str, str]) -> str:
    if kind == "SCALAR":
        return properties.get(SCALAR_UNIT, "SECONDS").upper()
    return _KINDS.get(kind, "")


def _zone(properties: Mapping[str, str], key: str) -> dt.tzinfo | None:
    """Return the zone that is set, one for both ways before that of one way; None for none."""
    key = ZONE if ZONE in properties else key
    name = properties.get(key, "").strip()
    if not name:
        return None
    if name in ("UTC", "GMT", "Z"):
        return dt.UTC
    if offset := _OFFSET.fullmatch(name):
        shift = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if shift < _DAY:
            return dt.timezone(-shift if offset[1] == "-" else shift)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as cause:
        raise Invalid(
            f"{key}: {name!r} is no time zone.",
            next_step="Give a name such as UTC, Europe/Oslo or GMT+2.",
            value=name,
        ) from cause


def _parse_any(text: str, properties: Mapping[str, str]) -> dt.datetime:
    zone = _zone(properties, INPUT_ZONE)
    for pattern in _patterns(properties):
        moment = parse_java(text, pattern, zone or dt.UTC)
        if moment is not None:
            whole = moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
            return whole.astimezone(zone) if zone else whole
    raise Invalid(
        f"{text!r} does not follow {properties.get(INPUT_FORMAT, '')!r}.",
        next_step="Give values in that format, or create the table with the format of the values.",
        value=text,
    )


def _patterns(properties: Mapping[str, str]) -> list[str]:
    formats = properties.get(INPUT_FORMAT, "")
    delimiter = properties.get(INPUT_DELIMITER) or ","
    parts = formats.split(delimiter) if delimiter in formats else [formats]
    return [pattern.strip() for pattern in parts]


def format_java(moment: dt.datetime, pattern: str) -> str:
    """Format a time by a Java pattern of numbers and quoted text, such as ``yyyy/MM/dd/HH``."""
    return "".join(_written(token, moment) for token in _TOKEN.finditer(pattern))


def _written(token: re.Match[str], moment: dt.datetime) -> str:
    if token.group(2) is None:
        return _literal(token)
    width = len(token.group())
    match token.group(2):
        case "y" if width == 2:
            return f"{moment.year % 100:02d}"
        case "y":
            return f"{moment.year:0{width}d}"
        case "M" if width <= 2:
            return f"{moment.month:0{width}d}"
        case "d":
            return f"{moment.day:0{width}d}"
        case "D":
            return f"{moment.timetuple().tm_yday:0{width}d}"
        case "H":
            return f"{moment.hour:0{width}d}"
        case "h":
            return f"{(moment.hour - 1) % 12 + 1:0{width}d}"
        case "m":
            return f"{moment.minute:0{width}d}"
        case "s":
            return f"{moment.second:0{width}d}"
        case "S":
            return f"{moment.microsecond:06d}".ljust(width, "0")[:width]
        case "Z":
            return f"{moment:%z}"
        case _:
            raise _unknown(token.group())


def parse_java(text: str, pattern: str, zone: dt.tzinfo) -> dt.datetime | None:
    """Read a time by a Java pattern; None where the text does not follow it."""
    match = _regex(pattern).fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    year, month, day, hour, minute, second = (
        int(found.get(name) or default) for name, default in _DEFAULTS.items()
    )
    micros = int((found.get("fraction") or "0").ljust(6, "0")[:6])
    try:
        moment = dt.datetime(year, month, day, hour, minute, second, micros)
    except ValueError:
        return None
    offset = found.get("zone")
    if offset is None:
        return moment.replace(tzinfo=zone)
    return dt.datetime.fromisoformat(f"{moment.isoformat()}{offset}")


@lru_cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_readable(token) for token in _TOKEN.finditer(pattern)), re.ASCII)


_DEFAULTS = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}


def _readable(token: re.Match[str]) -> str:
    letter = token.group(2)
    if letter is None:
        return re.escape(_literal(token))
    if letter not in _READ or (letter == "M" and len(token.group()) > 2):
        raise _unknown(token.group())
    return _READ[letter]


def _literal(token: re.Match[str]) -> str:
    quoted, other = token.group(1), token.group(3)
    if quoted is None:
        return other
    return quoted.replace("''", "'") or "'"


def _unknown(letters: str) -> Unsupported:
    return Unsupported(
        f"the time pattern letters {letters!r} are not known here.",
        next_step="Known: y M d D H h m s S Z and quoted text.",
    )
