"""Writes that took effect once and were taken back since, as whoever remembers one must know.

Followers and streams keep the time at which the last write they know of took effect. A rollback
takes back the newest write alone, and a restore all that came after its savepoint: where the write
they remember stands, so does everything before it.
"""

from lakewright.model.instant import BEGINNING, Action, Instant
from lakewright.model.table import TableType
from lakewright.table.horizon import timeline_from
from lakewright.table.state import TableState
from lakewright.timeline.undone import undone_in
from lakewright.timeline.view import TimelineView


def undone_by(state: TableState, end: str) -> Instant | None:
    """Return the rollback or restore that undid the write which took effect at ``end``.

    ``end`` is a completion time (layout 1: an instant time). None where a write of this time
    stands, and where nothing tells that one was undone.
    """
    if end == BEGINNING or _knows(state.timeline, end):
        return None
    timeline = timeline_from(state, end)
    if _knows(timeline, end):
        return None
    for undoing in timeline.by_action(Action.ROLLBACK, Action.RESTORE):
        if undoing.requested > end and _reaches(state, timeline, undoing, end):
            return undoing
    return None


def _knows(timeline: TimelineView, end: str) -> bool:
    return any(end in (i.completed, i.requested) for i in timeline.data())


def _reaches(state: TableState, timeline: TimelineView, undoing: Instant, end: str) -> bool:
    """Say whether it undid a write from before ``end`` that may have changed rows."""
    changing = {Action.DELTACOMMIT, Action.REPLACECOMMIT}
    if state.config.table_type is TableType.COPY_ON_WRITE:
        changing.add(Action.COMMIT)  # elsewhere it is a compaction
    undone = undone_in(timeline, undoing)
    return any(info.time <= end and info.action in changing for info in undone)
