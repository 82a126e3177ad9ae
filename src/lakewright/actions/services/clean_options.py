"""How a table is cleaned: Hudi's settings, with Hudi's meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.errors import Invalid
from lakewright.model.options import declare, parse_bool, parse_names, parse_positive


class CleanPolicy(StrEnum):
    """By what rule old files are kept."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


def _pattern(text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as cause:
        raise ValueError(text) from cause


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", re.ASCII)


def parse_duration(text: str) -> float:
    """Read ``90s``, ``15m``, ``1.5h`` or ``7d`` as seconds; anything else is a ValueError."""
    if text.strip() == "0":
        return 0.0
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(text)
    return float(match[1]) * _UNITS[match[2]]


POLICY = declare(
    "hoodie.clean.policy",
    lambda text: CleanPolicy(text.strip().upper()),
    CleanPolicy.KEEP_LATEST_COMMITS,
    doc="By what rule cleaning keeps files that are not the latest: those that the last commits "
    "need, the last versions of each file group, or those that the last hours need.",
    since="0.1",
    allowed=", ".join(CleanPolicy),
    old_keys=("hoodie.cleaner.policy",),
)
COMMITS = declare(
    "hoodie.clean.commits.retained",
    parse_positive,
    10,
    doc="With KEEP_LATEST_COMMITS: how many of the latest commits can be read after cleaning.",
    since="0.1",
    allowed="a whole number from 1",
    old_keys=("hoodie.cleaner.commits.retained",),
)
VERSIONS = declare(
    "hoodie.clean.fileversions.retained",
    parse_positive,
    3,
    doc="With KEEP_LATEST_FILE_VERSIONS: how many versions of each file group stay.",
    since="0.1",
    allowed="a whole number from 1",
    old_keys=("hoodie.cleaner.fileversions.retained",),
)
HOURS = declare(
    "hoodie.clean.hours.retained",
    parse_positive,
    24,
    doc="With KEEP_LATEST_BY_HOURS: of how many hours the commits can be read after cleaning.",
    since="0.1",
    allowed="a whole number from 1",
    old_keys=("hoodie.cleaner.hours.retained",),
)
INCREMENTAL = declare(
    "hoodie.clean.incremental.enabled",
    parse_bool,
    True,
    doc="Look only into partitions that were written since the last cleaning, where that is "
    "known to be enough.",
    since="0.1",
    allowed="true, false",
    old_keys=("hoodie.cleaner.incremental.mode",),
)
TRIGGER = declare(
    "hoodie.clean.trigger.max.commits",
    parse_positive,
    1,
    doc="After how many commits since the last cleaning an inline cleaning is due.",
    since="0.1",
    allowed="a whole number from 1",
    old_keys=("hoodie.clean.max.commits",),
)
GRACE = declare(
    "lakewright.clean.grace",
    parse_duration,
    0.0,
    doc="For how long cleaning leaves files that have ceased to be the latest, whatever the "
    "policy says: readers that opened the table before may be at them.",
    since="0.1",
    allowed="a duration: 0, 90s, 15m, 2h, 1d",
)


MOST_COMMITS = declare(
    "hoodie.clean.max.commits.to.clean",
    lambda text: parse_positive(text) if text.strip() else None,
    None,
    doc="The most commits by which one cleaning goes on from where the last one ended, under a "
    "policy that keeps commits or hours; none unless it is set.",
    since="0.1",
    allowed="a whole number from 1",
)
_NO_NAMES: tuple[str, ...] = ()
SELECTED = declare(
    "hoodie.clean.partition.filter.selected",
    parse_names,
    _NO_NAMES,
    doc="The only partitions that are cleaned, by their paths; cleaning must look at all "
    "partitions for that: hoodie.clean.incremental.enabled=false, or a policy by versions.",
    since="0.1",
    allowed="paths of partitions, commas between",
)
PATTERN = declare(
    "hoodie.clean.partition.filter.regex",
    _pattern,
    None,
    doc="The same by a pattern that the whole path of a partition matches; the list wins over it.",
    since="0.1",
    allowed="a regular expression",
)


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """How a table is cleaned; ``grace`` is in seconds.

    ``selected`` and ``pattern`` say which partitions alone; neither is all of them.
    """

    policy: CleanPolicy
    commits: int
    versions: int
    hours: int
    incremental: bool
    grace: float
    most_commits: int | None = None
    selected: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    @property
    def filters(self) -> bool:
        """Whether some partitions alone are cleaned."""
        return bool(self.selected) or self.pattern is not None

    def takes(self, partition: str) -> bool:
        """Say whether a partition is cleaned."""
        if self.selected:
            return partition in self.selected
        return self.pattern is None or self.pattern.fullmatch(partition) is not None

    @staticmethod
    def of(options: Mapping[str, str]) -> "CleanSettings":
        """Read the settings; ``Invalid`` where they contradict each other."""
        found = CleanSettings._read(options)
        looks_at_all = found.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
        if found.filters and found.incremental and not looks_at_all:
            key = (SELECTED if found.selected else PATTERN).key
            raise Invalid(
                f"{key} has no effect while only partitions written since the last cleaning are "
                "looked at.",
                next_step=f"Set {INCREMENTAL.key}=false as well.",
                option=key,
            )
        return found

    @staticmethod
    def _read(options: Mapping[str, str]) -> "CleanSettings":
        return CleanSettings(
            POLICY.read(options),
            COMMITS.read(options),
            VERSIONS.read(options),
            HOURS.read(options),
            INCREMENTAL.read(options),
            GRACE.read(options),
            MOST_COMMITS.read(options),
            SELECTED.read(options),
            PATTERN.read(options),
        )

    def __str__(self) -> str:
        match self.policy:
            case CleanPolicy.KEEP_LATEST_COMMITS:
                kept = f"{self.commits} commits"
            case CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
                kept = f"{self.versions} versions"
            case CleanPolicy.KEEP_LATEST_BY_HOURS:
                kept = f"{self.hours} hours"
        return f"{self.policy} ({kept})"
