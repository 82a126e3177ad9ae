"""The options of plans: how long an undo is possible, and how long plans are kept."""

import re
from collections.abc import Mapping
from datetime import timedelta

from lakewright.model.options import check_values, declare

_SPAN = re.compile(r"([0-9]+)\s*(s|m|h|d)", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
#: A longer span counts as this one: no calendar goes on for so long.
FOR_EVER = timedelta(days=1000 * 365)
_ALLOWED = "a whole number with a unit: 90s, 30m, 12h, 7d"


def parse_span(text: str) -> timedelta:
    """Read a span of time: a whole number and one of the units s, m, h, d.

    A thousand years are as good as for ever.
    """
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    try:
        return min(timedelta(**{_UNITS[found[2]]: int(found[1])}), FOR_EVER)
    except OverflowError as cause:
        raise ValueError(text) from cause


def span_text(span: timedelta) -> str:
    """Write a span so that ``parse_span`` reads it, in the largest unit that tells it whole."""
    for letter, unit in reversed(_UNITS.items()):
        whole, rest = divmod(span, timedelta(**{unit: 1}))
        if not rest:
            return f"{whole}{letter}"
    return f"{span // timedelta(seconds=1)}s"


UNDO_WINDOW = declare(
    "lakewright.undo.window",
    parse_span,
    timedelta(days=7),
    doc="How long what a plan removed can come back: until then cleaning leaves its files.",
    since="0.1",
    allowed=_ALLOWED,
)


def _savepoint(text: str) -> str:
    choice = text.strip().lower()
    if choice not in ("auto", "true", "false"):
        raise ValueError(text)
    return choice


SAVEPOINT = declare(
    "lakewright.undo.savepoint",
    _savepoint,
    "true",
    doc="Whether a savepoint of the write before a drop keeps its files for the undo window, so "
    "that the cleaner of other software leaves them too; `auto` makes one where the timeline holds "
    "a cleaning of other software. It goes when the window ends; until then cleaning keeps all "
    "files of that write, and archiving stops at it unless `hoodie.archive.beyond.savepoint` says "
    "otherwise.",
    since="0.1",
    allowed="auto, true, false",
)
RETENTION = declare(
    "lakewright.plans.retention",
    parse_span,
    timedelta(days=90),
    doc="How long plans are kept with the table after they were made; those that are under way, "
    "or can still be undone, stay longer.",
    since="0.1",
    allowed=_ALLOWED,
)
QUARANTINE = declare(
    "lakewright.quarantine.retention",
    parse_span,
    timedelta(days=7),
    doc="How long files that a plan removed lie in quarantine before a purge takes them.",
    since="0.1",
    allowed=_ALLOWED,
)


def check_wishes(options: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Refuse wrong values before anything is kept or changed.

    Of ``options``, all that a call gave are looked at, and of the table's ``own`` properties,
    which other software may read in its way, those that plans obey.
    """
    check_values({key: value for key, value in options.items() if own.get(key) != value})
    for option in (UNDO_WINDOW, SAVEPOINT, RETENTION, QUARANTINE):
        option.read(options)
