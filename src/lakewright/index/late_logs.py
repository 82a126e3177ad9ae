"""Slices whose logs may hold keys that their base file does not.

A writer of a merge-on-read table without buckets looks keys up in the base files that it sees.
Where a compaction was planned or at work meanwhile, and logs had deleted a key before, the next
base file is without it: what the writer added to the key is in logs alone, and no base file tells.
"""

import datetime as dt

from lakewright.model.files import FileSlice
from lakewright.model.instant import Action, Instant, State, instant_datetime
from lakewright.table.pinned import PinnedTable
from lakewright.timeline.view import TimelineView

#: How far the clocks of writers and of the storage may lie apart.
_CLOCKS = dt.timedelta(minutes=1)


def has_late_logs(pinned: PinnedTable, piece: FileSlice) -> bool:
    """Whether some log of a slice may be of a writer that did not know its base file.

    Such a writer began before the action ended that made the base file. Whatever leaves a doubt
    counts as one: archived writes, and logs that compactions of logs joined.
    """
    if piece.base is None or not piece.logs:
        return False
    view = pinned.state.timeline
    known, base = view.completions, piece.base.instant
    if pinned.state.config.layout == 1:
        # A log is named after its base file, and not after who wrote it.
        return base not in known or _overlapped(pinned, base)
    writers = {log.instant for log in piece.logs}
    if not writers <= known.keys():
        return True
    ended = view.completion_of(base)
    return ended is None or min(writers) < ended or _are_joined(view, writers)


def _are_joined(view: TimelineView, writers: set[str]) -> bool:
    made = (i for i in view.data() if i.requested in writers)
    return any(view.planned_as(i) is Action.LOGCOMPACTION for i in made)


def _overlapped(pinned: PinnedTable, base: str) -> bool:
    """Whether some write began before an action of layout 1 ended, which only its file tells."""
    if base not in pinned.overlapped:
        pinned.overlapped[base] = _began_before_it_ended(pinned.state.timeline, base)
    return pinned.overlapped[base]


def _began_before_it_ended(view: TimelineView, base: str) -> bool:
    later = [i.requested for i in view.data() if i.requested > base]
    if not later:
        return False
    entry = next(e for e in view.entries if e.instant.requested == base and _is_write(e.instant))
    file = view.storage.stat(f"{view.config.timeline_folder}/{entry.files[State.COMPLETED]}")
    if file is None or file.modified is None:
        return True
    zone = view.config.timezone
    ended = dt.datetime.fromtimestamp(file.modified, dt.UTC) + _CLOCKS
    # Instants that lie ahead of the clock tell nothing by it.
    return instant_datetime(base, zone) >= ended or instant_datetime(min(later), zone) < ended


def _is_write(instant: Instant) -> bool:
    return instant.is_completed and instant.action.writes_data
