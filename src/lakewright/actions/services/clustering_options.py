"""The options of clustering, under Hudi's names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.actions.tasks.cluster_order import Order
from lakewright.model.options import declare, parse_bool, parse_count, parse_names, parse_positive


class Strategy(StrEnum):
    """How file slices are put together; the values are the names of Hudi's classes."""

    SIZE = "SparkSizeBasedClusteringPlanStrategy"
    RECENT_DAYS = "SparkRecentDaysClusteringPlanStrategy"
    SELECTED = "SparkSelectedPartitionsClusteringPlanStrategy"
    SINGLE_FILE = "SparkSingleFileSortPlanStrategy"
    STREAM_COPY = "SparkStreamCopyClusteringPlanStrategy"


class FilterMode(StrEnum):
    """Which partitions are looked at."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


#: Hudi's package of plan strategies; a class is named with it or without.
_PACKAGE = "org.apache.hudi.client.clustering.plan.strategy."
_PREFIX = "hoodie.clustering.plan.strategy."


def _strategy(text: str) -> Strategy:
    return Strategy(text.strip().removeprefix(_PACKAGE))


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as cause:
        raise ValueError(text) from cause
    return text


_NO_NAMES: tuple[str, ...] = ()
_SIZE = "a whole number of bytes"
_NUMBER = "a whole number, 1 or more"

STRATEGY = declare(
    "hoodie.clustering.plan.strategy.class",
    _strategy,
    Strategy.SIZE,
    doc="How a clustering puts file slices together: small files of a partition up to a size, "
    "each by itself, or small files whose pages are copied; two old names also choose partitions.",
    since="0.1",
    allowed=f"{', '.join(Strategy)}, with Hudi's package before it or without",
)
SMALL_FILE = declare(
    f"{_PREFIX}small.file.limit",
    parse_count,
    300 << 20,
    doc="Slices whose base file is smaller than this are clustered.",
    since="0.1",
    allowed=_SIZE,
)
TARGET_FILE = declare(
    f"{_PREFIX}target.file.max.bytes",
    parse_positive,
    1 << 30,
    doc="About how large the files become that a clustering writes.",
    since="0.1",
    allowed=_SIZE,
)
GROUP_BYTES = declare(
    f"{_PREFIX}max.bytes.per.group",
    parse_positive,
    2 << 30,
    doc="The most bytes that one task of a clustering rewrites, about.",
    since="0.1",
    allowed=_SIZE,
)
MOST_GROUPS = declare(
    f"{_PREFIX}max.num.groups",
    parse_positive,
    30,
    doc="The most tasks in one plan of a clustering; the rest is left to the next one.",
    since="0.1",
    allowed=_NUMBER,
)
SINGLE_GROUP = declare(
    f"{_PREFIX}single.group.clustering.enabled",
    parse_bool,
    True,
    doc="Whether a file that is alone in its task is rewritten. One that has nothing to be "
    "sorted by, no logs and no need to be divided never is: it would stay what it was.",
    since="0.1",
    allowed="true or false",
)
FILTER_MODE = declare(
    "hoodie.clustering.plan.partition.filter.mode",
    lambda text: FilterMode(text.strip().upper()),
    FilterMode.NONE,
    doc="Which partitions a clustering looks at: all, the last ones by name, those between two, "
    "or by the hour of the day every twenty-fourth.",
    since="0.1",
    allowed=", ".join(FilterMode),
)
LOOKBACK = declare(
    f"{_PREFIX}daybased.lookback.partitions",
    parse_count,
    2,
    doc="How many of the last partitions are clustered in the mode RECENT_DAYS; 0 for all.",
    since="0.1",
    allowed="a whole number",
)
SKIPPED = declare(
    f"{_PREFIX}daybased.skipfromlatest.partitions",
    parse_count,
    0,
    doc="How many of the very last partitions are left out in the mode RECENT_DAYS.",
    since="0.1",
    allowed="a whole number",
)
BEGIN = declare(
    f"{_PREFIX}cluster.begin.partition",
    str,
    "",
    doc="The first partition, by name, of the mode SELECTED_PARTITIONS.",
    since="0.1",
    allowed="the path of a partition",
)
END = declare(
    f"{_PREFIX}cluster.end.partition",
    str,
    "",
    doc="The last partition, by name, of the mode SELECTED_PARTITIONS; empty for no end.",
    since="0.1",
    allowed="the path of a partition",
)
SELECTED = declare(
    f"{_PREFIX}partition.selected",
    parse_names,
    _NO_NAMES,
    doc="The only partitions that a clustering looks at.",
    since="0.1",
    allowed="paths of partitions, with commas between",
)
PATTERN = declare(
    f"{_PREFIX}partition.regex.pattern",
    _pattern,
    "",
    doc="A clustering looks at partitions alone whose whole path matches this.",
    since="0.1",
    allowed="a regular expression",
)
MAX_COMMITS = declare(
    "hoodie.clustering.inline.max.commits",
    parse_positive,
    4,
    doc="Commits after which a clustering that runs by itself is due.",
    since="0.1",
    allowed=_NUMBER,
)


@dataclass(frozen=True, slots=True)
class ClusteringSettings:
    """The options that decide what a plan of a clustering takes, and how it is laid out."""

    strategy: Strategy = STRATEGY.default
    small_file: int = SMALL_FILE.default
    target_file: int = TARGET_FILE.default
    group_bytes: int = GROUP_BYTES.default
    most_groups: int = MOST_GROUPS.default
    order: Order = field(default_factory=Order)
    single_group: bool = SINGLE_GROUP.default
    mode: FilterMode = FILTER_MODE.default
    lookback: int = LOOKBACK.default
    skipped: int = SKIPPED.default
    begin: str = ""
    end: str = ""
    selected: tuple[str, ...] = ()
    pattern: str = ""

    @staticmethod
    def of(options: Mapping[str, str]) -> "ClusteringSettings":
        """Read the settings; strategies of old that choose partitions set the mode."""
        strategy = STRATEGY.read(options)
        mode = FILTER_MODE.read(options)
        if strategy is Strategy.RECENT_DAYS:
            mode = FilterMode.RECENT_DAYS
        elif strategy is Strategy.SELECTED:
            mode = FilterMode.SELECTED_PARTITIONS
        return ClusteringSettings(
            strategy=strategy,
            small_file=SMALL_FILE.read(options),
            target_file=TARGET_FILE.read(options),
            group_bytes=GROUP_BYTES.read(options),
            most_groups=MOST_GROUPS.read(options),
            order=Order.of(options),
            single_group=SINGLE_GROUP.read(options),
            mode=mode,
            lookback=LOOKBACK.read(options),
            skipped=SKIPPED.read(options),
            begin=BEGIN.read(options),
            end=END.read(options),
            selected=SELECTED.read(options),
            pattern=PATTERN.read(options),
        )
