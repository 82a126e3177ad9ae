"""The zone in which an expression reads and shows times.

It is UTC, unless the expression stands in an ``InZone``: then a time written without a zone, the
day of a moment, its hour, and every other thing that needs a clock on a wall follow that zone. A
bound expression needs no zone any more: its constants are moments, and what depends on a zone is a
call of ``wall_clock`` or ``moment_at`` that names it. Hours that a clock leaves out or shows twice
are read by the offset from before the change, as on the JVM.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from lakewright.model.errors import InvalidExpression

#: Functions that only bound expressions call, each with a time and the name of a zone.
WALL_CLOCK: Final = "wall_clock"
MOMENT_AT: Final = "moment_at"

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?00)?")
_NOUGHT = frozenset({"UTC", "GMT", "UT", "Z", "UCT", "ZULU", "GREENWICH", "ETC/UTC", "ETC/GMT"})
_MOST = timedelta(hours=18)
#: Years in which the offsets of a zone are looked at.
_YEARS = range(1970, 2038)


class _Unzoned(tzinfo):
    """UTC, unless the expression in which the time stands is in another zone."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, moment: datetime | None) -> str:
        return "UTC"

    def __repr__(self) -> str:
        return "datetime.timezone.utc"

    def __reduce__(self) -> str:
        return "UNZONED"


#: The zone of a moment that was written without one.
UNZONED: Final[tzinfo] = _Unzoned()
_zone: ContextVar[str | None] = ContextVar("zone of an expression", default=None)


@contextmanager
def reading_in(zone: str | None) -> Iterator[None]:
    """Read times in a zone for as long as something is bound; None stands for UTC."""
    token = _zone.set(None if zone is None else known_zone(zone))
    try:
        yield
    finally:
        _zone.reset(token)


def current_zone() -> str | None:
    """Return the name of the zone that times are read in, None for UTC."""
    return _zone.get()


@lru_cache(maxsize=64)
def known_zone(name: str) -> str | None:
    """Return the name of a zone as every engine knows it, None for UTC.

    Regions (Europe/Oslo) and offsets (+02:00, UTC+2) are known; ``InvalidExpression`` for others.
    """
    text = name.strip()
    if text.upper() in _NOUGHT:
        return None
    parts = _OFFSET.fullmatch(text)
    if parts is not None:
        sign, hours, minutes = parts.groups()
        ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if ahead <= _MOST:
            return f"{sign}{int(hours):02d}:{minutes or '00'}" if ahead else None
    else:
        try:
            ZoneInfo(text)
        except (ValueError, OSError, KeyError):
            pass
        else:
            return text
    raise InvalidExpression(
        f"{name!r} is no known time zone.",
        next_step="Use a region such as Europe/Oslo, or an offset such as +02:00.",
        zone=name,
    )


@lru_cache(maxsize=64)
def begins_hours_with_utc(zone: str) -> bool:
    """Tell whether the hours of a zone begin when those of UTC do."""
    rules = _rules(zone)
    months = (datetime(year, month, 1, tzinfo=UTC) for year in _YEARS for month in range(1, 13))
    offsets = {moment.astimezone(rules).utcoffset() for moment in months}
    return not any(offset is None or offset % timedelta(hours=1) for offset in offsets)


def moment_of(wall: datetime, zone: str | None) -> datetime:
    """Return the moment, in UTC, at which clocks of a zone show this."""
    return wall.replace(tzinfo=_rules(zone), fold=0).astimezone(UTC)


def wall_of(moment: datetime, zone: str | None) -> datetime:
    """Return what clocks of a zone show at a moment."""
    return moment.astimezone(_rules(zone)).replace(tzinfo=None, fold=0)


def absolute(value: datetime) -> datetime:
    """Return a constant with its zone told: one that was written without follows the current."""
    if value.tzinfo is not UNZONED:
        return value
    return moment_of(value.replace(tzinfo=None), current_zone())


def _rules(zone: str | None) -> tzinfo:
    if zone is None:
        return UTC
    if zone[0] not in "+-":
        return ZoneInfo(zone)
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    return timezone(-ahead if zone[0] == "-" else ahead)
