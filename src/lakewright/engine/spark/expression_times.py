"""Times in Spark SQL without the session's time zone.

A moment is brought to microseconds since 1970 in UTC and back; whole-number arithmetic on them
is exact, and no daylight-saving rule of a session can reach it.
"""

from datetime import UTC, datetime, time

from lakewright.model.expression.types import Value, is_integer, sql_type
from lakewright.model.schema import DATE, LONG, STRING, DataType, Timestamp, Unit

_DAY = 86_400_000_000
_UNITS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_NEXT = {"hour": _DAY, "minute": _UNITS["hour"], "second": _UNITS["minute"]}
_LAST_SECOND = (2**63 - 1) // 1_000_000
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def moment_literal(value: Value) -> str:
    """Write a moment with its zone, a wall-clock reading without."""
    assert isinstance(value, datetime)
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    return f"TIMESTAMP '{value.astimezone(UTC).isoformat(sep=' ')}'"


def micros_of_day(value: time) -> int:
    """Return the number by which a time of day is known on Spark."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def involves_time(source: DataType, to: DataType) -> bool:
    """Tell whether Spark would ask the session's zone for this conversion."""
    return isinstance(source, Timestamp) or isinstance(to, Timestamp)


def cast_time(child: str, source: DataType, to: DataType) -> str:
    """Write a conversion from or to a timestamp."""
    if isinstance(to, Timestamp):
        return _to_moment(child, source, to)
    if to == DATE:
        return _date(child, source)
    if to == LONG:
        return f"unix_seconds({child})"
    wall = child if _is_wall(source) else _of_micros(_micros(child, source), utc=False)
    return f"try_cast({wall} AS {sql_type(to)})"


def part_of_moment(name: str, child: str, source: DataType) -> str:
    """Write hour, minute or second."""
    if _is_wall(source):
        return f"{name}({child})"
    rest = f"pmod({_micros(child, source)}, {_NEXT[name]}L)"
    return f"CAST({rest} DIV {_UNITS[name]}L AS INT)"


def date_truncated(unit: str, child: str, source: DataType) -> str:
    """Write the first moment of the unit in which the moment lies."""
    utc = not _is_wall(source)
    if unit in _UNITS:
        micros = _micros(child, source)
        return _of_micros(f"({micros} - pmod({micros}, {_UNITS[unit]}L))", utc=utc)
    day = _date(child, source)
    return _of_date(day if unit == "day" else f"trunc({day}, '{unit}')", utc=utc)


def wall_clock(child: str, zone: str) -> str:
    """Write what clocks of a zone show at a moment."""
    return f"convert_timezone('UTC', '{zone}', {_of_micros(f'unix_micros({child})', utc=False)})"


def moment_at(child: str, zone: str) -> str:
    """Write the moment at which clocks of a zone show a reading."""
    reading = f"convert_timezone('{zone}', 'UTC', {child})"
    return _of_micros(_micros(reading, Timestamp(Unit.MICROS, utc=False)), utc=True)


def _to_moment(child: str, source: DataType, to: Timestamp) -> str:
    if source == STRING:
        return _of_text(child) if to.utc else f"try_cast({child} AS TIMESTAMP_NTZ)"
    if source == DATE:
        return _of_date(child, utc=to.utc)
    if is_integer(source):
        bounds = f"{child} BETWEEN -{_LAST_SECOND}L AND {_LAST_SECOND}L"
        return f"(CASE WHEN {bounds} THEN timestamp_seconds({child}) END)"
    return _of_micros(_micros(child, source), utc=to.utc)


def _of_text(child: str) -> str:
    """A text without a zone is in UTC; Spark would read it in the session's zone."""
    text = f"trim({child})"
    day = f"try_cast({text} AS DATE)"
    only_day = f"{text} RLIKE '^[0-9]{{4}}(-[0-9]{{1,2}}(-[0-9]{{1,2}}[ T]?)?)?$'"
    zoned = f"{text} RLIKE '(Z|UTC|GMT|[+-][0-9]{{1,2}}(:[0-9]{{2}})?)$'"
    return (
        f"(CASE WHEN {only_day} THEN {_of_date(day, utc=True)} "
        f"WHEN {zoned} THEN try_cast({text} AS TIMESTAMP) "
        f"ELSE try_cast(concat({text}, 'Z') AS TIMESTAMP) END)"
    )


def _is_wall(source: DataType) -> bool:
    return isinstance(source, Timestamp) and not source.utc


def _micros(child: str, source: DataType) -> str:
    if not _is_wall(source):
        return f"unix_micros({child})"
    seconds = f"CAST(extract(SECOND FROM {child}) * 1000000 AS BIGINT)"
    clock = f"hour({child}) * {_UNITS['hour']}L + minute({child}) * {_UNITS['minute']}L"
    return f"(unix_date(CAST({child} AS DATE)) * {_DAY}L + {clock} + {seconds})"


def _of_micros(micros: str, *, utc: bool) -> str:
    if utc:
        return f"timestamp_micros({micros})"
    seconds = f"CAST(CAST({micros} AS DECIMAL(20,0)) / 1000000BD AS DECIMAL(18,6))"
    return f"({_EPOCH} + make_dt_interval(0, 0, 0, {seconds}))"


def _date(child: str, source: DataType) -> str:
    if _is_wall(source):
        return f"CAST({child} AS DATE)"
    micros = _micros(child, source)
    days = f"(({micros} - pmod({micros}, {_DAY}L)) DIV {_DAY}L)"
    return f"date_from_unix_date(CAST({days} AS INT))"


def _of_date(day: str, *, utc: bool) -> str:
    if utc:
        return f"timestamp_micros(unix_date({day}) * {_DAY}L)"
    return f"CAST({day} AS TIMESTAMP_NTZ)"
