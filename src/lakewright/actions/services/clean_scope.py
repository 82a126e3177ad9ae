"""How far a cleaning goes: the earliest instant that stays readable, and where it has to look."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lakewright.actions.services.clean_options import CleanPolicy, CleanSettings
from lakewright.format.hudi.metadata.clean import CleanMetadata
from lakewright.model.instant import Action, Instant, State
from lakewright.table.horizon import last_cleaning
from lakewright.table.pins import Pins
from lakewright.timeline.clock import time_before, time_text
from lakewright.timeline.view import TimelineView

#: Our note in plans and records of cleanings that did not look at all partitions.
FILTERED = "lakewright.partitions"
#: Hudi's note in plans and records of the savepoints that held files; ours of the pins.
SAVEPOINTS = "savepointed_timestamps"
PINS = "lakewright.pins"
#: Our note in plans and records of cleanings that heed pins: the version that planned them.
PLANNED_BY = "lakewright.version"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a cleaning looks.

    ``partitions`` is None for all of them. ``why`` says how they were found.
    """

    partitions: tuple[str, ...] | None
    why: str


def kept_by_policy(view: TimelineView, settings: CleanSettings, now: float) -> Instant | None:
    """Return the earliest write that the policy keeps readable; None where it keeps all.

    Hours go on into the archived history where the active timeline is shorter than they are.
    """
    match settings.policy:
        case CleanPolicy.KEEP_LATEST_COMMITS:
            writes = view.data()
            return None if len(writes) <= settings.commits else writes[-settings.commits]
        case CleanPolicy.KEEP_LATEST_BY_HOURS:
            since = time_before(now, settings.hours * 3600, view.config.timezone)
            return next(iter(view.data_since(since)), None)
        case CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
            return None


def earliest_to_retain(
    view: TimelineView, settings: CleanSettings, settled: Callable[[str], bool], now: float
) -> Instant | None:
    """Return the earliest completed write that can be read after a cleaning; None: nothing goes.

    It is never later than an unfinished write or plan, nor than a write that took effect within
    the readers' grace, be it archived.
    """
    writes, chosen = view.data(), kept_by_policy(view, settings, now)
    if chosen is None:
        return None
    pending = min(
        (i.requested for i in view.pending() if i.action.completes_as.writes_data), default=None
    )
    if pending is not None and chosen.requested > pending:
        before = [i for i in writes if i.requested < pending]
        if not before:
            return None
        chosen = before[-1]
    young = [next((i for i in writes if not settled(i.requested)), chosen)]
    if settings.grace > 0:
        young += view.data_since(time_before(now, settings.grace, view.config.timezone))[:1]
    return min((chosen, *young), key=lambda i: i.requested)


def bounded(
    view: TimelineView, settings: CleanSettings, chosen: Instant | None
) -> Iterator[Instant | None]:
    """Stream how far one cleaning may go at most: a number of commits, then more of them.

    One that finds nothing in the first ones leaves no trace on the timeline from which the next
    could go on.
    """
    if chosen is not None and settings.most_commits is not None:
        last = last_cleaning(view)
        since = "" if last is None else last.earliest_to_retain
        window = [i for i in view.data() if since <= i.requested < chosen.requested]
        for end in range(settings.most_commits, len(window), settings.most_commits):
            yield window[end]
    yield chosen


def settling(view: TimelineView, grace: float, now: float) -> Callable[[str], bool]:
    """Return a lookup of whether a write took effect longer than ``grace`` seconds ago.

    Layout 1 does not note when writes took effect; the age of their files tells.
    """
    if grace <= 0:
        return lambda requested: True
    cutoff = time_before(now, grace, view.config.timezone)
    known: dict[str, bool] = {}
    files = {e.instant.requested: e.files.get(State.COMPLETED) for e in view.entries}

    def took_effect(requested: str) -> str:
        name = files.get(requested)
        if view.config.layout == 1 and name is not None:
            stat = view.storage.stat(f"{view.config.timeline_folder}/{name}")
            if stat is not None and stat.modified is not None:
                return time_text(stat.modified, view.config.timezone)
        return view.completion_of(requested) or requested

    def settled(requested: str) -> bool:
        if requested not in known:
            known[requested] = took_effect(requested) <= cutoff
        return known[requested]

    return settled


def scope_of(
    view: TimelineView, settings: CleanSettings, earliest: Instant | None, pins: Pins
) -> Scope:
    """Return the partitions that may hold something to clean."""
    if settings.selected and (
        earliest is not None or settings.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    ):
        return Scope(tuple(sorted(set(settings.selected))), "the partitions that were selected")
    if settings.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
        return Scope(None, "versions are counted in all partitions")
    if earliest is None:
        return Scope((), "there are too few commits")
    if not settings.incremental:
        return Scope(None, "incremental cleaning is off")
    last = last_cleaning(view)
    reason = _why_all(view, settings, last, pins)
    if last is None or reason is not None:
        return Scope(None, reason or "")
    since, upto = last.earliest_to_retain, earliest.requested
    window = [i for i in view.data() if since <= i.requested < upto]
    # What could not be deleted then is tried again.
    touched = {partition for partition, entry in last.partitions.items() if entry.failed}
    for _, body in view.commits(window):
        touched.update(body.write_stats, body.replaced)
    why = f"{len(window)} commits since the last cleaning"
    return Scope(tuple(sorted(touched)), why)


def _why_all(
    view: TimelineView, settings: CleanSettings, last: CleanMetadata | None, pins: Pins
) -> str | None:
    """Say why all partitions must be looked at; None where those written since are enough."""
    if last is None:
        return "there was no cleaning before"
    if not last.earliest_to_retain:
        return "the last cleaning counted versions"
    if view.start is None or last.earliest_to_retain < view.start:
        return "commits since the last cleaning were archived"
    if noted(last.extra, FILTERED):
        return "the last cleaning looked at some partitions alone"
    policies = {entry.policy for entry in last.partitions.values()}
    if policies - {settings.policy.value}:
        return "the policy has changed"
    if noted(last.extra, SAVEPOINTS) - savepoints(view):
        return "savepoints were dropped since the last cleaning"
    if noted(last.extra, PINS) - pins.ids:
        return "undo pins have ended since the last cleaning"
    if restored_since(view, last.start):
        return "the table was restored since the last cleaning"
    return None


def restored_since(view: TimelineView, instant: str) -> bool:
    """Say whether the table was restored after an instant."""
    return any(i.requested > instant for i in view.by_action(Action.RESTORE))


def savepoints(view: TimelineView) -> frozenset[str]:
    """Return the times of the savepoints."""
    return frozenset(i.requested for i in view.by_action(Action.SAVEPOINT) if i.is_completed)


def noted(extra: Mapping[str, str], key: str) -> frozenset[str]:
    """Read a list that a plan notes in its extra metadata."""
    return frozenset(text for text in extra.get(key, "").split(",") if text)
