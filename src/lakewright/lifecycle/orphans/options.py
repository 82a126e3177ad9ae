"""The options of plans that remove orphan files."""

from datetime import timedelta

from lakewright.lifecycle.plans.options import parse_span
from lakewright.model.options import declare, parse_positive

#: Younger files are never taken, whatever is asked for: a write may have just begun.
LEAST_AGE = timedelta(hours=1)


def _age(text: str) -> timedelta:
    span = parse_span(text)
    if span < LEAST_AGE:
        raise ValueError(text)
    return span


OLDER_THAN = declare(
    "lakewright.orphans.older-than",
    _age,
    timedelta(days=3),
    doc="How old a file that no instant claims must be before a plan takes it for an orphan: its "
    "instant, and the time at which storage says that it was changed last.",
    since="0.1",
    allowed="a whole number with a unit: 2h, 3d; at least 1h",
)
MAX_FILES = declare(
    "lakewright.orphans.max-files",
    parse_positive,
    100_000,
    doc="How many orphan files one plan takes at most; the next plan takes the others.",
    since="0.1",
    allowed="a whole number from 1",
)
