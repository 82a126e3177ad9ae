"""How a table is cleaned: Hudi's settings, with Hudi's meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.options import declare, parse_bool, parse_positive


class CleanPolicy(StrEnum):
    """By what rule old files are kept."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


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


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """How a table is cleaned; ``grace`` is in seconds."""

    policy: CleanPolicy
    commits: int
    versions: int
    hours: int
    incremental: bool
    grace: float

    @staticmethod
    def of(options: Mapping[str, str]) -> "CleanSettings":
        """Read the settings."""
        return CleanSettings(
            POLICY.read(options),
            COMMITS.read(options),
            VERSIONS.read(options),
            HOURS.read(options),
            INCREMENTAL.read(options),
            GRACE.read(options),
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
