"""Following a table: from what has been read to what is new, a window of commits at a time.

An offset is the completion time up to which everything was read (layout 1: the instant time).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from lakewright.actions.scan import ScanPlan, ScanRequest, plan_scan
from lakewright.model.errors import HistoryGone
from lakewright.model.files import ReadingMode
from lakewright.model.instant import BEGINNING, Action, Instant, State, parse_point_in_time
from lakewright.table.horizon import earliest_retained, window
from lakewright.table.state import TableState
from lakewright.table.undone import undone_by
from lakewright.timeline.moments import whole_second

EARLIEST = "earliest"
LATEST = "latest"


class WhenGone(StrEnum):
    """What a follower does when history that it needs, or has read, is gone."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Follow:
    """What a follower reads: columns and condition of ``request``, its window left open.

    ``limit`` is how many commits a window takes at most, None for all. With ``when_gone`` skip,
    rows are read as they are now where an older state was cleaned away (no key is missed: what
    changed since comes with a later window), changes that cannot be told are left out, and
    what was read and then taken back by a rollback or a restore stays read.
    """

    request: ScanRequest
    limit: int | None = None
    when_gone: WhenGone = WhenGone.FAIL


def first_offset(state: TableState, start: str) -> str:
    """Turn ``earliest``, ``latest``, an instant or a time into the offset to begin after."""
    match start.strip().lower():
        case "earliest":
            return BEGINNING
        case "latest":
            return max((_end(i) for i in settled(state)), default=BEGINNING)
        case _:
            return whole_second(parse_point_in_time(start, state.config.timezone))


def settled(state: TableState) -> Iterator[Instant]:
    """Stream the completed writes that no unfinished one can still precede.

    In layout 2 the order is that of completion. In layout 1 it is that of requested times, and
    an earlier write may end later: what lies behind an unfinished write waits for it.
    """
    timeline = state.timeline
    hollow = "9"
    if state.config.layout == 1:
        hollow = min((i.requested for i in timeline.pending() if _may_add_rows(i)), default="9")
    return (i for i in timeline.data() if i.requested < hollow)


def _may_add_rows(instant: Instant) -> bool:
    if instant.action is Action.REPLACECOMMIT:  # a plan of clustering may wait here for days
        return instant.state is State.INFLIGHT
    return instant.action in (Action.COMMIT, Action.DELTACOMMIT)


def _end(instant: Instant) -> str:
    return instant.completed or instant.requested


def next_offset(state: TableState, follow: Follow, after: str, upto: str | None = None) -> str:
    """Return the end of the window that begins after ``after``; ``after`` if nothing is new.

    ``upto`` bounds it. The limit is exceeded where the state at the end of a shorter window was
    cleaned away: the window then ends where the table can be read.
    """
    done = sorted(settled(state), key=_end)
    new = [i for i in done if _end(i) > after and (upto is None or _end(i) <= upto)]
    if not new:
        return after
    last = _end(new[-1])
    if follow.limit is None or follow.limit >= len(new):
        return last
    if follow.request.mode is ReadingMode.CDC:
        return _end(new[follow.limit - 1])
    first_kept = earliest_retained(state.timeline) or ""
    newest = ""
    for number, instant in enumerate(done):
        newest = max(newest, instant.requested)
        if _end(instant) >= _end(new[follow.limit - 1]) and newest >= first_kept:
            return min(_end(done[number]), last)
    return last


def check_read(state: TableState, follow: Follow, after: str) -> None:
    """Refuse to go on after ``after``, the end of a window, where it was taken back since.

    Whoever read the window keeps rows that the table never had, and nothing that is new in it
    will tell so. ``HistoryGone`` names the rollback or restore.
    """
    undoing = None if follow.when_gone is WhenGone.SKIP else undone_by(state, after)
    if undoing is not None:
        raise HistoryGone(
            f"what was read up to {after} did not last: the {undoing.action} {undoing.requested} "
            "took writes back, and no later change tells which rows that concerns.",
            next_step="Take the table as it is now (scan()) and follow it from latest, or begin "
            "anew from earliest. A stream goes on, with what it read, if the option history is "
            "skip.",
            after=after,
            undone_by=undoing.requested,
        )


def plan_window(state: TableState, follow: Follow, after: str, upto: str) -> ScanPlan:
    """Plan the reading of what took effect after ``after`` up to ``upto``."""
    request = replace(follow.request, start=after, end=upto)
    try:
        return plan_scan(state, request)
    except HistoryGone as gone:
        if follow.when_gone is WhenGone.FAIL:
            raise HistoryGone(
                f"what changed after {after} up to {upto} cannot be read any more: {gone.message}",
                next_step="Retain more commits when cleaning than a reader may lag behind; to go "
                "on with what is left, set the option history to skip, or begin anew from latest.",
                **gone.facts,
            ) from gone
        if request.mode is ReadingMode.CDC:
            return _told_changes(state, request, gone)
    now = plan_scan(state, replace(request, end=None))
    wanted = frozenset(i.requested for i in window(state, after, upto))
    return replace(now, spec=replace(now.spec, changed_by=wanted), request=request)


def _told_changes(state: TableState, request: ScanRequest, gone: HistoryGone) -> ScanPlan:
    """Plan the changes after the instants whose changes cannot be told any more."""
    untold = str(gone.facts.get("instant"))
    ends = {i.requested: _end(i) for i in window(state, request.start, request.end)}
    while untold in ends:
        # Every round begins after an instant of the window, so that there are at most as many.
        shorter = replace(request, start=ends.pop(untold))
        try:
            return plan_scan(state, shorter)
        except HistoryGone as next_gone:
            untold = str(next_gone.facts.get("instant"))
    raise gone
