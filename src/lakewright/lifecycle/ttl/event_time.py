"""The time that a partition's path tells: its period, in a zone, by a format.

All arithmetic is that of the zone's calendar: a day ends at the next midnight there, and thirty
days after it is a midnight too, whatever summer time does in between. Where a clock shows a time
twice, the later one counts, so that nothing goes early.

The segment with which a time begins is counted as if no value held a ``/`` of its own, so that it
names a level, whatever the values before it hold. Where the levels from there on have segments
enough for the format, each of them must be as long as it usually is. Otherwise the time is the
whole value of that one level, of a column whose values may hold slashes.
"""

import datetime as dt
import re
from dataclasses import dataclass, field
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.format.hudi.time_partitions import parse_java
from lakewright.lifecycle.ttl.levels import Levels
from lakewright.model.errors import Invalid, Unsupported
from lakewright.model.schema import STRING
from lakewright.model.ttl import TtlPolicy

FORMAT, ZONE, REFERENCE, SEGMENT, NULLS = "format", "zone", "reference", "segment", "nulls"
DEFAULT_FORMAT = "yyyy-MM-dd"

#: The letters of a pattern from the longest period to the shortest; each needs those before it.
_LETTERS = "yMdHmsS"
_RUN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*")
_STEPS = {
    "d": dt.timedelta(days=1),
    "H": dt.timedelta(hours=1),
    "m": dt.timedelta(minutes=1),
    "s": dt.timedelta(seconds=1),
    "S": dt.timedelta(0),
}
_Periods = dict[str, "Period | None"]


@dataclass(frozen=True, slots=True)
class Period:
    """What a partition stands for: from ``start`` to just before ``end``, by the zone's clock."""

    start: dt.datetime
    end: dt.datetime


class Unclear(Exception):
    """A path does not tell for sure which of its segments are the time; its text says why."""


@dataclass(frozen=True, slots=True)
class EventTime:
    """How the period of a partition is read, and which end of it counts.

    ``reach`` are the levels that hold the time, each with the segments that it must have, None
    for any; of them all, ``skip`` segments come before the time.
    """

    pattern: str
    zone: dt.tzinfo
    ends: bool
    segment: int
    delete_nulls: bool
    levels: Levels
    reach: tuple[tuple[int, int | None], ...]
    skip: int
    _known: _Periods = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def of(policy: TtlPolicy, levels: Levels, below: int) -> "EventTime":
        """Read the settings of a policy; ``Invalid`` names the one that is wrong.

        ``below`` is the first level that the policy leaves open: the time is looked for there
        where no segment is given.
        """
        given = policy.settings
        pattern = given.get(FORMAT, DEFAULT_FORMAT)
        _check_pattern(policy, pattern)
        parts = pattern.count("/") + 1
        most = levels.segments - parts
        usual = sum(level.width for level in levels.levels[:below])
        text = given.get(SEGMENT, str(min(usual, most) if most >= 0 else usual))
        segment = int(text) if text.isascii() and text.isdigit() else -1
        found = _reach(levels, segment, parts)
        if found is None:
            allowed = sorted({*range(most + 1), *(_whole(levels) if parts > 1 else ())})
            last = f"one of {', '.join(map(str, allowed))}" if allowed else "none fits"
            raise _bad(policy, SEGMENT, text, f"{pattern} has {parts} of {levels.segments}: {last}")
        return EventTime(
            pattern,
            _zone(policy, given.get(ZONE, "UTC")),
            _choice(policy, REFERENCE, given.get(REFERENCE, "end"), "start", "end") == "end",
            segment,
            _choice(policy, NULLS, given.get(NULLS, "keep"), "keep", "delete") == "delete",
            levels,
            *found,
        )

    def settings(self) -> dict[str, str]:
        """Return all settings, written out."""
        return {
            FORMAT: self.pattern,
            ZONE: str(self.zone),
            REFERENCE: "end" if self.ends else "start",
            SEGMENT: str(self.segment),
            NULLS: "delete" if self.delete_nulls else "keep",
        }

    def text(self, cut: list[str]) -> str | None:
        """Return what of a path, cut into levels, is the time; None where there is none.

        ``Unclear`` where a level of the time is longer or shorter than it usually is.
        """
        read: list[str] = []
        for number, width in self.reach:
            value = cut[number]
            if value == DEFAULT_PARTITION:
                return None
            segments = value.split("/")
            if width is not None and len(segments) != width:
                name = self.levels.levels[number].name
                usual = f"{width} segment{'' if width == 1 else 's'}"
                raise Unclear(
                    f"{value!r} of {name} has {len(segments)} segments where {usual} "
                    "should be, so that its time is not told for sure"
                )
            read += map(self.levels.decode, segments)
        end = None if self.reach[0][1] is None else self.skip + self.pattern.count("/") + 1
        return "/".join(read[self.skip : end])

    def period(self, text: str) -> Period | None:
        """Return the period that a text stands for; None where it does not follow the format."""
        if text not in self._known:
            self._known[text] = self._read(text)
        return self._known[text]

    def goes(self, period: Period, days: int) -> dt.datetime:
        """Return the moment until which the partition is kept; OverflowError beyond all dates."""
        wall = (period.end if self.ends else period.start) + dt.timedelta(days=days)
        return max(wall.replace(fold=fold).astimezone(dt.UTC) for fold in (0, 1))

    def _read(self, text: str) -> Period | None:
        start = parse_java(text, self.pattern, self.zone)
        if start is None:
            return None
        letters = _letters(self.pattern)
        try:
            return Period(start, _next(start, letters[-1]))
        except (OverflowError, ValueError):
            return None


def _reach(
    levels: Levels, segment: int, parts: int
) -> tuple[tuple[tuple[int, int | None], ...], int] | None:
    """Return the levels that hold a time of so many parts, and the segments that come before it.

    None where it cannot begin with the segment.
    """
    if segment < 0:
        return None
    reach: list[tuple[int, int | None]] = []
    start = skip = 0
    for number, level in enumerate(levels.levels):
        end = start + level.width
        if end > segment and start < segment + parts:
            reach.append((number, level.width))
            skip = skip if len(reach) > 1 else segment - start
        start = end
    if segment + parts <= levels.segments:
        return tuple(reach), skip
    whole = _whole(levels).get(segment)
    return None if whole is None or parts == 1 else (((whole, None),), 0)


def _whole(levels: Levels) -> dict[int, int]:
    """Return the levels whose values may hold slashes, by the segments with which they begin."""
    found, start = {}, 0
    for number, level in enumerate(levels.levels):
        if level.slashed or (levels.url_encode and (level.kind is None or level.kind == STRING)):
            found[start] = number
        start += level.width
    return found


def _next(start: dt.datetime, letter: str) -> dt.datetime:
    if letter == "y":
        return start.replace(year=start.year + 1)
    if letter == "M":
        months = start.year * 12 + start.month
        return start.replace(year=months // 12, month=months % 12 + 1)
    return start + _STEPS[letter]


@lru_cache
def _letters(pattern: str) -> str:
    """Return the letters of a pattern's times, from the longest to the shortest."""
    found = {run.group(1) for run in _RUN.finditer(pattern) if run.group(1)}
    return "".join(letter for letter in _LETTERS if letter in found)


def _check_pattern(policy: TtlPolicy, pattern: str) -> None:
    runs = [run.group() for run in _RUN.finditer(pattern) if run.group(1)]
    letters = _letters(pattern)
    years = [run for run in runs if run[0] == "y"]
    try:
        parse_java("", pattern, dt.UTC)
        sound = years == ["yyyy"] and _LETTERS.startswith(letters)
    except (re.error, Unsupported):
        sound = False
    if not sound:
        raise _bad(policy, FORMAT, pattern, "yyyy, then MM, dd, HH, mm, ss as far as paths go")


def _zone(policy: TtlPolicy, name: str) -> dt.tzinfo:
    if name in ("UTC", "GMT", "Z"):
        return dt.UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as cause:
        raise _bad(policy, ZONE, name, "names such as UTC and Europe/Berlin") from cause


def _choice(policy: TtlPolicy, name: str, text: str, *allowed: str) -> str:
    if text.strip().lower() not in allowed:
        raise _bad(policy, name, text, " or ".join(allowed))
    return text.strip().lower()


def _bad(policy: TtlPolicy, name: str, value: str, allowed: str) -> Invalid:
    return Invalid(
        f"{policy.spec} {policy.kind}: {name} is {value!r}.",
        next_step=f"Allowed: {allowed}.",
        spec=policy.spec,
        setting=name,
        value=value,
    )
