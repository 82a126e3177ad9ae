"""The rule ``range``: partitions whose value lies in an interval.

An expression is an interval, with the column that it speaks of in front where a table has more
than one partition column::

    [2026-11-01, 2026-12-01)              from the first of November to the last
    dt: [2026-11-01, 2026-12-01)          the same of the column dt
    level 2: [0, 6]                       the second level of the path, whatever its name
    hour: [0, 6]                          0, 1, … 6, and 00, 01, … 06
    (-inf, 0)                             all negative numbers
    country: [a, n)                       texts from a on, before n
    city: ["Aachen", "Sankt Gallen"]      ends in double quotes are always text

**Ends.** ``[`` and ``]`` include an end, ``(`` and ``)`` leave it out; ``-inf`` and ``inf`` are no
end. Two whole numbers make an interval of whole numbers, two dates of the same form
(``2026-11-01``, ``2026-11``, ``2026-11-01-23``) one of dates, everything else one of texts.
A double quote inside quotes is written twice.

**Values.** Numbers are compared as numbers, zeros in front allowed. Dates must have the form of
the ends. Texts are compared by the code points of their characters; ``%XX`` in a path
counts as the character that it stands for, as Hudi escapes special characters where URL
encoding is on, and a value with any other ``%`` is in no interval of texts. The partition of the
null value is in no interval.

**Paths.** With a column, the level ``column=value`` of the path decides, and a path of one level
without ``=`` is the value itself. Without a column, the path must have one level: the value is
what follows the first ``=``, or the whole. ``level N`` counts from 1, with or without names.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import NoReturn

from lakewright.model.bucket_rules.char_sets import holds
from lakewright.model.bucket_rules.pattern_text import literal
from lakewright.model.bucket_rules.range_pattern import (
    ESCAPED,
    digits_between,
    numbers_between,
    texts_between,
)
from lakewright.model.errors import InvalidExpression

#: The value that Hudi writes for null.
NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
LONGEST_END = 100

_QUOTED = r'"(?:[^"]|"")*"'
_PLAIN_END = r'[^\s,;()\[\]"]+'
_FORM = re.compile(
    rf"\s*(?:(?P<column>[^\[\]()\"]*?)\s*:)?\s*(?P<open>[\[(])\s*(?P<low>{_QUOTED}|{_PLAIN_END})"
    rf"\s*,\s*(?P<high>{_QUOTED}|{_PLAIN_END})\s*(?P<close>[\])])\s*"
)
_LEVEL = re.compile(r"level +([0-9]{1,3})", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]+", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2}){0,2}", re.ASCII)
_ESCAPE = re.compile(
    "%({})".format("|".join(f"{code:02X}" for code in range(0x80) if holds(ESCAPED, code)))
)


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends as written, None where there is none; an open end does not belong to it."""

    low: str | None
    low_open: bool
    high: str | None
    high_open: bool


@dataclass(frozen=True, slots=True)
class _Values:
    """Which values are in an interval: as a test of one, and as patterns of all."""

    holds: Callable[[str], bool]
    #: Patterns of whole values; the argument are characters that must not stand unescaped.
    patterns: Callable[[str], list[str]]


class RangeRule:
    """The partitions whose value lies in the interval that the expression writes."""

    __slots__ = ("_column", "_expression", "_level", "_values")

    def __init__(self, expression: str) -> None:
        found = _FORM.fullmatch(expression)
        if found is None:
            _refuse(expression, "it is no interval")
        self._expression = expression
        self._column: str | None = found["column"] or None
        self._level: int | None = None
        if self._column is not None and (level := _LEVEL.fullmatch(self._column)):
            self._level, self._column = int(level[1]), None
            if self._level < 1:
                _refuse(expression, "levels are counted from 1")
        if self._column is not None and ("/" in self._column or "=" in self._column):
            _refuse(expression, f"the column {self._column!r} cannot be in a path")
        self._values = _values_of(
            expression,
            Interval(
                _end(found["low"], "-inf"),
                found["open"] == "(",
                _end(found["high"], "inf", "+inf"),
                found["close"] == ")",
            ),
            quoted='"' in (found["low"][0], found["high"][0]),
        )

    def matches(self, partition: str) -> bool:
        """Say whether the value that decides is there, and lies in the interval."""
        return any(map(self._values.holds, self.values_in(partition)))

    def values_in(self, partition: str) -> list[str]:
        """Return the values of a path that the rule speaks of, as they stand there; or none."""
        levels = partition.split("/")
        if self._level is not None:
            return [_after_name(level) for level in levels[self._level - 1 : self._level]]
        if len(levels) == 1 and (self._column is None or "=" not in partition):
            return [_after_name(partition)]
        start = f"{self._column}="
        found = [level[len(start) :] for level in levels if level.startswith(start)]
        return [] if self._column is None else found

    def pattern(self) -> str:
        """Return a pattern that finds the same partitions; Hudi can split the text it is in."""
        named = f"(?:{'|'.join(self._values.patterns(''))})"
        bare = f"(?:{'|'.join(self._values.patterns('='))})"
        if self._level is not None:
            above = f"(?:[^/]*/){{{self._level - 1}}}" if self._level > 1 else ""
            return rf"\A{above}(?:[^/=]*={named}|{bare})(?:/|\z)"
        if self._column is None:
            return rf"\A(?:[^/=]*={named}|{bare})\z"
        column = "".join(literal(char) for char in self._column)
        return rf"(?:\A|/){column}={named}(?:/|\z)|\A{bare}\z"


def _after_name(level: str) -> str:
    name, equals, value = level.partition("=")
    return value if equals else name


def _end(text: str, *none: str) -> str | None:
    if text in none:
        return None
    return text[1:-1].replace('""', '"') if text[0] == '"' else text


def _values_of(expression: str, interval: Interval, *, quoted: bool) -> _Values:
    ends = [end for end in (interval.low, interval.high) if end is not None]
    if not ends:
        _refuse(expression, "it has no end on either side")
    if any(len(end) > LONGEST_END for end in ends):
        _refuse(expression, f"an end is longer than {LONGEST_END} characters")
    if not quoted and all(_NUMBER.fullmatch(end) for end in ends):
        return _numbers(expression, interval)
    if not quoted and all(_DATE.fullmatch(end) for end in ends):
        return _dates(expression, interval)
    return _texts(expression, interval)


def _numbers(expression: str, interval: Interval) -> _Values:
    low = None if interval.low is None else int(interval.low) + interval.low_open
    high = None if interval.high is None else int(interval.high) - interval.high_open
    if low is not None and high is not None and high < low:
        _refuse(expression, "no number lies in it")

    def holds(value: str) -> bool:
        if not _NUMBER.fullmatch(value):
            return False
        digits = value.lstrip("-").lstrip("0")
        if len(digits) > 2 * LONGEST_END:  # longer than every end, and than Python likes to read
            return high is None if value[0] != "-" else low is None
        number = int(value)
        return (low is None or low <= number) and (high is None or number <= high)

    def patterns(without: str) -> list[str]:
        found = []
        if high is None or high >= 0:
            positive = numbers_between(max(low or 0, 0), high)
            found.append(f"0*(?:{'|'.join(positive)})")
        if low is None or low < 0:
            least = 1 if high is None or high >= 0 else -high
            negative = numbers_between(least, None if low is None else -low)
            found.append(f"-0*(?:{'|'.join(negative)})")
        if (low is None or low <= 0) and (high is None or high >= 0):
            found.append("-0+")
        return found

    return _Values(holds, patterns)


def _dates(expression: str, interval: Interval) -> _Values:
    form = next(end for end in (interval.low, interval.high) if end is not None)
    for end in (interval.low, interval.high):
        if end is not None and (len(end) != len(form) or not _is_date(end)):
            _refuse(expression, f"{end!r} is no date of the form of the other end")
    width = len(form.replace("-", ""))
    low = 0 if interval.low is None else int(interval.low.replace("-", "")) + interval.low_open
    high = 10**width - 1
    if interval.high is not None:
        high = int(interval.high.replace("-", "")) - interval.high_open
    if high < low:
        _refuse(expression, "no date lies in it")

    def holds(value: str) -> bool:
        return (
            len(value) == len(form)
            and _DATE.fullmatch(value) is not None
            and low <= int(value.replace("-", "")) <= high
        )

    def patterns(without: str) -> list[str]:
        found = digits_between(f"{low:0{width}}", f"{high:0{width}}")
        return [_dashed(pattern) for pattern in found]

    return _Values(holds, patterns)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text[:10] if len(text) > 7 else f"{text}-01")
    except ValueError:
        return False
    return len(text) < 13 or int(text[11:]) < 24


def _dashed(pattern: str) -> str:
    """Put the dashes of a date between the digits of a pattern."""
    pieces = re.findall(r"\[[^]]*\]|[0-9]", pattern)
    for at in range(len(pieces) - 2, 2, -2):
        pieces.insert(at, "-")
    return "".join(pieces)


def _texts(expression: str, interval: Interval) -> _Values:
    low, high = interval.low or "", interval.high
    low_open = interval.low is not None and interval.low_open
    high_open = interval.high_open
    if high is not None and (low > high or (low == high and (low_open or high_open))):
        _refuse(expression, "no text lies in it")

    def inside(text: str) -> bool:
        if text < low or (low_open and text == low):
            return False
        return high is None or text < high or (text == high and not high_open)

    def holds(value: str) -> bool:
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)
        stray = "%" in _ESCAPE.sub("", value)
        return not stray and value != NULL_VALUE and inside(text)

    def patterns(without: str) -> list[str]:
        if not inside(NULL_VALUE):
            return texts_between(low, low_open, high, high_open, without)
        found = []
        if low < NULL_VALUE:
            found += texts_between(low, low_open, NULL_VALUE, True, without)
        if high is None or high > NULL_VALUE:
            found += texts_between(NULL_VALUE, True, high, high_open, without)
        return found

    return _Values(holds, patterns)


def _refuse(expression: str, why: str) -> NoReturn:
    raise InvalidExpression(
        f"The range {expression!r} cannot be used: {why}.",
        next_step=(
            "Write an interval such as [1, 100], dt: [2026-11-01, 2026-12-01) or (-inf, 5): two "
            "whole numbers, two dates of the same form, or two texts (in double quotes where "
            "they hold blanks or commas)."
        ),
        expression=expression,
    )
