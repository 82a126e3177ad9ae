"""The levels of a table's partition paths: their values, exact and in the order of their types."""

import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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

    def __post_init__(self) -> None:
        # Paths are cut by the hundred thousand.
        object.__setattr__(self, "_prefixes", tuple(f"{level.name}=" for level in self.levels))

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
        """Return what the path says at each level, not decoded; None where it has others."""
        return self._hive(path) if self.hive_style else self._plain(path)

    def order(self, path: str) -> tuple[Key, ...]:
        """Return the typed values of a path, by which partitions compare; none for a stray one."""
        cut = self.cut(path) or ()
        return tuple(
            level.key(self.decode(text)) for level, text in zip(self.levels, cut, strict=False)
        )

    def decode(self, text: str) -> str:
        """Turn a part of a path into the text of its value."""
        return unescape_segment(text) if self.url_encode else text

    def parts(self, cut: list[str]) -> list[str]:
        """Return the decoded segments of a path that was cut, without the names of columns."""
        return [self.decode(segment) for segment in "/".join(cut).split("/")]

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

    def _hive(self, path: str) -> list[str] | None:
        """Cut a path at the names of its columns; a value goes on until the next name."""
        prefixes = self._prefixes
        if len(prefixes) == 1 and "/" not in path:
            return [path[len(prefixes[0]) :]] if path.startswith(prefixes[0]) else None
        segments = path.split("/")
        if len(segments) == len(prefixes):
            for prefix, segment in zip(prefixes, segments, strict=True):
                if not segment.startswith(prefix):
                    return None
            return [
                segment[len(prefix) :] for prefix, segment in zip(prefixes, segments, strict=True)
            ]
        if not prefixes or not path.startswith(prefixes[0]):
            return None
        values, rest = [], path[len(prefixes[0]) :]
        for prefix in prefixes[1:]:
            value, mark, rest = rest.partition(f"/{prefix}")
            if not mark:
                return None
            values.append(value)
        values.append(rest)
        return values if self._may_be(values) else None

    def _plain(self, path: str) -> list[str] | None:
        if not self.levels or not path:
            return None
        segments = path.split("/")
        if len(self.levels) == 1:
            values = [path]
        else:
            surplus = len(segments) - self._taken(segments)
            if surplus and (surplus < 0 or sum(level.slashed for level in self.levels) != 1):
                return None
            values = list(self._by_width(segments, surplus))
        return values if len(values) == len(self.levels) and self._may_be(values) else None

    def _taken(self, segments: list[str]) -> int:
        """Return how many segments the levels take where no value holds a ``/`` of its own."""
        return sum(value.count("/") + 1 for value in self._by_width(segments, 0))

    def _by_width(self, segments: list[str], surplus: int) -> Iterator[str]:
        start = 0
        for level in self.levels:
            if start >= len(segments):
                return
            end = start + level.width + (surplus if level.slashed else 0)
            if segments[start] == DEFAULT_PARTITION:
                end = start + 1
            yield "/".join(segments[start:end])
            start = end

    def _may_be(self, values: list[str]) -> bool:
        return all(
            level.slashed or text == DEFAULT_PARTITION or text.count("/") == level.width - 1
            for level, text in zip(self.levels, values, strict=True)
        )


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
