"""The levels of a table's partition paths: their values, exact and in the order of their types."""

import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from lakewright.format.hudi.config import PartitionField, TableConfig
from lakewright.format.hudi.partition_paths import (
    DEFAULT_PARTITION,
    SLASHED_DATES,
    parse_value,
    unescape_segment,
)
from lakewright.format.hudi.time_partitions import OUTPUT_FORMAT, parse_java
from lakewright.model.errors import LakewrightError
from lakewright.model.schema import BINARY, DATE, STRING, DataType, Struct, Timestamp
from lakewright.model.ttl import PartitionSpec, SpecLevel

#: How values of one column compare: nulls first, then values, then NaN, then what is no value of
#: the column's type. Within a rank all are of one type.
Key: TypeAlias = tuple[int, object]

_NULL: Key = (0, "")
_VALUE, _NAN = 1, 2
#: The rank of a text that is no value of its column.
UNREADABLE = 3
_EPOCH = dt.datetime(1970, 1, 1)
_MICROS = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_MICRO = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Level:
    """One partition column: how its values are typed, and how many path segments they take.

    ``pattern`` is that of formatted times. ``slashed`` says that a value may hold a ``/`` of its
    own, so that it may take any number of segments.
    """

    name: str
    kind: DataType | None = None
    pattern: str | None = None
    width: int = 1
    slashed: bool = False

    def key(self, text: str) -> Key:
        """Return the value that a decoded text stands for, as it compares with others."""
        if text == DEFAULT_PARTITION:
            return _NULL
        value = self._value(text)
        if value is None:
            return (UNREADABLE, text)
        if isinstance(value, float) and math.isnan(value):
            return (_NAN, "")
        return (_VALUE, value)

    def _value(self, text: str) -> object:
        if self.pattern is not None:
            return _formatted(text, self.pattern)
        if isinstance(self.kind, Timestamp):
            return _micros(text, self.kind)
        if self.kind == BINARY:
            return text
        try:
            return parse_value(text, self.kind)
        except ValueError:
            return None


def _formatted(text: str, pattern: str) -> object:
    try:
        return parse_java(text, pattern, dt.UTC)
    except (LakewrightError, re.error):
        # A pattern that is not read here: its texts compare as texts.
        return text


def _micros(text: str, kind: Timestamp) -> int | None:
    """Read either form that Hudi writes: microseconds since the epoch, or a time."""
    if _MICROS.fullmatch(text):
        return int(text)
    moment = parse_value(text, kind)
    if not isinstance(moment, dt.datetime):
        return None
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICRO


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a table's partition paths, and the zone of its instants.

    ``hive_style`` and ``url_encode`` say how the table writes its paths; nothing else is taken
    for a name or an escape, so that every value is told from every other.
    """

    levels: tuple[Level, ...]
    hive_style: bool = True
    url_encode: bool = False
    zone: dt.tzinfo = dt.UTC
    _prefixes: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _single: bool = field(init=False, repr=False, compare=False)
    _keys: tuple[dict[str, Key], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Paths are cut by the hundred thousand, and values typed.
        object.__setattr__(self, "_keys", tuple({} for _ in self.levels))
        object.__setattr__(self, "_prefixes", tuple(f"{level.name}=" for level in self.levels))
        object.__setattr__(self, "_single", all(level.width == 1 for level in self.levels))

    @staticmethod
    def of(config: TableConfig, schema: Struct) -> "Levels":
        """Return the levels of a table; a column that the schema does not know is text."""
        levels = tuple(_level(field, config, schema) for field in config.partition_fields)
        return Levels(levels, config.hive_style, config.url_encode, config.timezone)

    @property
    def names(self) -> tuple[str, ...]:
        """The partition columns."""
        return tuple(level.name for level in self.levels)

    @property
    def segments(self) -> int:
        """How many segments a path has, where no value holds a ``/`` of its own."""
        return sum(level.width for level in self.levels)

    def texts(self, path: str) -> tuple[str, ...] | None:
        """Return the decoded text of each level; None where the path has other levels."""
        raw = self.cut(path)
        return None if raw is None else tuple(map(self.decode, raw))

    def cut(self, path: str) -> list[str] | None:
        """Return what the path says at each level, not decoded.

        None where it has other levels, and where it cannot be told for sure what belongs to
        which: a value that holds a ``/`` of its own may leave that open.
        """
        segments = path.split("/")
        if len(segments) == len(self._prefixes) and path:
            # Each level takes one segment at least, so that there is no other way.
            if not self.hive_style:
                return segments if self._single else self._only_cut(path)
            for number, prefix in enumerate(self._prefixes):
                segment = segments[number]
                if not segment.startswith(prefix):
                    return None
                segments[number] = segment[len(prefix) :]
            return segments
        return self._only_cut(path)

    def _only_cut(self, path: str) -> list[str] | None:
        found = self._first_cuts(path)
        return found[0] if len(found) == 1 else None

    def order(self, path: str) -> tuple[Key, ...]:
        """Return the typed values of a path, by which partitions compare; none for a stray one."""
        cut = self.cut(path)
        return self.keys(cut, len(cut)) if cut else ()

    def keys(self, cut: Sequence[str], depth: int) -> tuple[Key, ...]:
        """Return the typed values of the first levels of a path that was cut."""
        found = []
        for number in range(depth):
            known, text = self._keys[number], cut[number]
            key = known.get(text)
            if key is None:
                key = known[text] = self.levels[number].key(self.decode(text))
            found.append(key)
        return tuple(found)

    def decode(self, text: str) -> str:
        """Turn a part of a path into the text of its value."""
        return unescape_segment(text) if self.url_encode else text

    def parse(self, text: str) -> PartitionSpec:
        """Read a spec of this table."""
        slashed = [level.name for level in self.levels if level.slashed or level.width > 1]
        return PartitionSpec.parse(text, self.names, slashed)

    def spec_of(self, path: str) -> PartitionSpec | None:
        """Return the spec that names one partition by its path, if the path has these levels."""
        raw = self.cut(path)
        if raw is None:
            return None
        return PartitionSpec(tuple(map(SpecLevel, self.names, raw)))

    def is_unsure(self, path: str) -> bool:
        """Say whether the path can be cut into these levels in more ways than one."""
        return len(self._first_cuts(path)) > 1

    def _first_cuts(self, path: str) -> list[list[str]]:
        """Return the ways to cut a path, the first two where there are more."""
        segments = path.split("/") if path and self.levels else []
        return list(islice(self._cuts(segments, 0, 0), 2))

    def _cuts(self, segments: list[str], number: int, start: int) -> Iterator[list[str]]:
        """Stream the ways to cut segments, from one on, into the levels from a number on."""
        if number == len(self.levels):
            if start == len(segments):
                yield []
            return
        level, prefix = self.levels[number], self._prefixes[number] if self.hive_style else ""
        rest = len(segments) - start - (len(self.levels) - number - 1)
        if rest < 1 or not segments[start].startswith(prefix):
            return
        if level.slashed:
            sizes: Iterable[int] = range(1, rest + 1)
        elif segments[start] == f"{prefix}{DEFAULT_PARTITION}":
            sizes = (1,)
        else:
            sizes = (level.width,)
        for size in sizes:
            text = "/".join(segments[start : start + size])[len(prefix) :]
            for others in self._cuts(segments, number + 1, start + size):
                yield [text, *others]


def _level(field: PartitionField, config: TableConfig, schema: Struct) -> Level:
    if field.kind == "TIMESTAMP":
        pattern = config.properties.get(OUTPUT_FORMAT)
        width = 1 + (pattern or "").count("/") * (not config.url_encode)
        return Level(field.name, None, pattern, width, slashed=pattern is None)
    kind = schema.find(field.name)
    slashed_dates = config.properties.get(SLASHED_DATES, "").lower() == "true"
    if slashed_dates and kind == DATE and not config.url_encode:
        return Level(field.name, kind, "yyyy/MM/dd", 3)
    slashed = not config.url_encode and (kind is None or kind == STRING)
    return Level(field.name, kind, slashed=slashed)
