"""When a compaction that runs by itself is due."""

import datetime as dt
from collections.abc import Mapping

from lakewright.actions.services.compaction_options import (
    LOG_COMPACTION_BLOCKS,
    MAX_DELTA_COMMITS,
    MAX_DELTA_SECONDS,
    TRIGGER,
    Trigger,
)
from lakewright.model.instant import Action, Instant, instant_datetime
from lakewright.model.table import TableType
from lakewright.timeline.view import TimelineView


def compaction_due(
    timeline: TimelineView, options: Mapping[str, str], now: dt.datetime | None = None
) -> str | None:
    """Say why a compaction is due, None where it is not; ``options`` over the table's properties.

    Delta commits are counted as in Hudi: those that took effect after the last compaction was
    requested, all of the active timeline where there was none.
    """
    if timeline.config.table_type is not TableType.MERGE_ON_READ:
        return None
    trigger = TRIGGER.read(options)
    unfinished = trigger is Trigger.NUM_COMMITS_AFTER_LAST_REQUEST
    count, since = _since(timeline, unfinished=unfinished)
    if since is None:
        return None
    enough, long = MAX_DELTA_COMMITS.read(options), MAX_DELTA_SECONDS.read(options)
    moment = now or dt.datetime.now(dt.UTC)
    age = (moment - instant_datetime(since, timeline.config.timezone)).total_seconds()
    by_count, by_time = count >= enough, age >= long
    counted = f"{count} delta commits since the last compaction, {enough} are enough"
    waited = f"{age:.0f} s since {since}, {long} are enough"
    match trigger:
        case Trigger.NUM_COMMITS | Trigger.NUM_COMMITS_AFTER_LAST_REQUEST:
            return counted if by_count else None
        case Trigger.TIME_ELAPSED:
            return waited if by_time else None
        case Trigger.NUM_AND_TIME:
            return f"{counted}; {waited}" if by_count and by_time else None
        case Trigger.NUM_OR_TIME:
            return counted if by_count else waited if by_time else None


def log_compaction_due(timeline: TimelineView, options: Mapping[str, str]) -> str | None:
    """Say why it is worth looking for slices with many logs, None where it is not.

    A slice cannot have more logs than there were delta commits since the last compaction of
    either kind, give or take those that wrote several.
    """
    if timeline.config.table_type is not TableType.MERGE_ON_READ or timeline.config.layout == 1:
        return None
    last = max(
        (
            e.instant.requested
            for e in timeline.entries
            if e.planned in (Action.COMPACTION, Action.LOGCOMPACTION)
        ),
        default="",
    )
    count = len(_delta_commits(timeline, last))
    enough = LOG_COMPACTION_BLOCKS.read(options)
    return f"{count} delta commits, {enough} are enough" if count >= enough else None


def _since(timeline: TimelineView, *, unfinished: bool) -> tuple[int, str | None]:
    """Return the number of delta commits since the last compaction, and the time to count from."""
    requested = (
        e.instant.requested
        for e in timeline.entries
        if e.planned is Action.COMPACTION and (unfinished or e.instant.is_completed)
    )
    last = max(requested, default=None)
    commits = _delta_commits(timeline, last or "")
    if last is None and not commits:
        return 0, None
    return len(commits), last or commits[0].requested


def _delta_commits(timeline: TimelineView, after: str) -> list[Instant]:
    return [
        e.instant
        for e in timeline.entries
        if e.planned is Action.DELTACOMMIT
        and e.instant.is_completed
        and (e.instant.completed or "") > after
    ]
