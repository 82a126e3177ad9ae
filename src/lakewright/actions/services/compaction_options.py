"""The options of compaction and log compaction, under Hudi's names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.options import declare, parse_count, parse_positive


class Strategy(StrEnum):
    """By which rule slices are chosen; the values are the names of Hudi's classes."""

    LOG_FILE_SIZE = "LogFileSizeBasedCompactionStrategy"
    LOG_FILE_NUM = "LogFileNumBasedCompactionStrategy"
    BOUNDED_IO = "BoundedIOCompactionStrategy"
    UNBOUNDED = "UnBoundedCompactionStrategy"
    DAY_BASED = "DayBasedCompactionStrategy"
    BOUNDED_PARTITIONS = "BoundedPartitionAwareCompactionStrategy"
    UNBOUNDED_PARTITIONS = "UnBoundedPartitionAwareCompactionStrategy"
    PARTITION_REGEX = "PartitionRegexBasedCompactionStrategy"

    @property
    def bounds_io(self) -> bool:
        """Whether the bytes to read and write are bounded."""
        return self in (Strategy.LOG_FILE_SIZE, Strategy.LOG_FILE_NUM, Strategy.BOUNDED_IO)


class Trigger(StrEnum):
    """When a compaction is due."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


#: Hudi's package of strategies; a class is named with it or without.
PACKAGE = "org.apache.hudi.table.action.compact.strategy."


@dataclass(frozen=True, slots=True)
class Strategies:
    """One rule after the other: each takes out of what the one before it took, as in Hudi."""

    chain: tuple[Strategy, ...]

    @staticmethod
    def parse(text: str) -> "Strategies":
        """Read names with commas between, of Hudi's classes or ours; else a ValueError."""
        names = [name.strip().removeprefix(PACKAGE) for name in text.split(",")]
        return Strategies(
            tuple(Strategy.__members__.get(name.upper()) or Strategy(name) for name in names)
        )

    def __str__(self) -> str:
        return ",".join(self.chain)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as cause:
        raise ValueError(text) from cause
    return text


STRATEGY = declare(
    "hoodie.compaction.strategy",
    Strategies.parse,
    Strategies((Strategy.LOG_FILE_SIZE,)),
    doc="Which slices a compaction takes: the largest logs first, the most logs first, as they "
    "come (all three up to hoodie.compaction.target.io), all, the newest partitions, those of "
    "the last days, those older than that, or those whose path matches a pattern. Of several "
    "names each takes out of what the one before it took.",
    since="0.1",
    allowed=f"{', '.join(Strategy)}, with Hudi's package before it or without, or several of "
    "them with commas between",
)
TARGET_IO = declare(
    "hoodie.compaction.target.io",
    parse_count,
    500 * 1024,
    doc="Megabytes that one compaction reads and writes, about, under a strategy that bounds them.",
    since="0.1",
    allowed="a whole number of megabytes",
)
TARGET_PARTITIONS = declare(
    "hoodie.compaction.daybased.target.partitions",
    parse_positive,
    10,
    doc="Partitions of one compaction by day: the newest ones, or those of so many days.",
    since="0.1",
    allowed="a whole number, 1 or more",
)
LEAST_LOG_BYTES = declare(
    "hoodie.compaction.logfile.size.threshold",
    parse_count,
    0,
    doc="Slices with smaller logs are left alone by LogFileSizeBasedCompactionStrategy.",
    since="0.1",
    allowed="a whole number of bytes",
)
LEAST_LOGS = declare(
    "hoodie.compaction.logfile.num.threshold",
    parse_count,
    0,
    doc="Slices with fewer logs are left alone by LogFileNumBasedCompactionStrategy.",
    since="0.1",
    allowed="a whole number",
)
PARTITION_PATTERN = declare(
    "hoodie.compaction.partition.path.regex",
    _pattern,
    ".*",
    doc="The whole paths of partitions that PartitionRegexBasedCompactionStrategy takes.",
    since="0.1",
    allowed="a regular expression",
)
MOST_GROUPS = declare(
    "lakewright.compaction.groups",
    parse_positive,
    100_000,
    doc="The most file groups in one plan of a compaction; the rest is left to the next one.",
    since="0.1",
    allowed="a whole number, 1 or more",
)
TRIGGER = declare(
    "hoodie.compact.inline.trigger.strategy",
    lambda text: Trigger(text.strip().upper()),
    Trigger.NUM_COMMITS,
    doc="When a compaction is due that runs by itself: after delta commits since the last "
    "completed or the last requested one, after a time, after both or either.",
    since="0.1",
    allowed=", ".join(Trigger),
)
MAX_DELTA_COMMITS = declare(
    "hoodie.compact.inline.max.delta.commits",
    parse_positive,
    5,
    doc="Delta commits after which a compaction is due.",
    since="0.1",
    allowed="a whole number, 1 or more",
)
MAX_DELTA_SECONDS = declare(
    "hoodie.compact.inline.max.delta.seconds",
    parse_positive,
    3600,
    doc="Seconds after which a compaction is due.",
    since="0.1",
    allowed="a whole number of seconds, 1 or more",
)
LOG_COMPACTION_BLOCKS = declare(
    "hoodie.log.compaction.blocks.threshold",
    parse_positive,
    5,
    doc="A slice with so many log files is worth a log compaction.",
    since="0.1",
    allowed="a whole number, 1 or more",
)


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The options that decide which slices a plan takes."""

    strategy: Strategy = STRATEGY.default.chain[0]
    target_io: int = TARGET_IO.default
    target_partitions: int = TARGET_PARTITIONS.default
    least_log_bytes: int = LEAST_LOG_BYTES.default
    least_logs: int = LEAST_LOGS.default
    partition_pattern: str = PARTITION_PATTERN.default
    most_groups: int = MOST_GROUPS.default
    #: The strategies that take out of what the first one took.
    then: tuple[Strategy, ...] = ()

    @property
    def name(self) -> str:
        """The names of the strategies."""
        return str(Strategies((self.strategy, *self.then)))

    @staticmethod
    def of(options: Mapping[str, str]) -> "PlanSettings":
        """Read the settings."""
        first, *rest = STRATEGY.read(options).chain
        return PlanSettings(
            strategy=first,
            then=tuple(rest),
            target_io=TARGET_IO.read(options),
            target_partitions=TARGET_PARTITIONS.read(options),
            least_log_bytes=LEAST_LOG_BYTES.read(options),
            least_logs=LEAST_LOGS.read(options),
            partition_pattern=PARTITION_PATTERN.read(options),
            most_groups=MOST_GROUPS.read(options),
        )
