"""Taking instants off the active timeline: into the history first, then their files go.

Whoever lists the timeline meanwhile finds each instant here or there: it is in the history before
its first file goes. Its pending files go first, because without the completed one they would tell
of a write that never ended; then the completed ones go, oldest first and one by one, so that no
write is missing between two that are there. Every step may be done twice.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.history import ArchivedInstant, append_history, read_history
from lakewright.model.errors import NotFound
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.timeline.entries import Entry
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: What one step moves, at most: the lock is held while its files go, and its bodies are in memory.
_INSTANTS = 500
_BYTES = 64 << 20

#: Actions whose requested file holds a plan that the history keeps.
_PLANNED = (
    Action.CLEAN,
    Action.COMPACTION,
    Action.LOGCOMPACTION,
    Action.CLUSTERING,
    Action.REPLACECOMMIT,
)


@dataclass(frozen=True, slots=True)
class Leaving:
    """An instant that is about to leave the timeline, with its bodies and its files."""

    entry: Entry
    archived: ArchivedInstant

    @property
    def instant(self) -> Instant:
        """The completed instant."""
        return self.entry.instant


def read_leaving(view: TimelineView, instants: Sequence[Instant]) -> list[Leaving]:
    """Read the bodies of the first of some completed instants: as many as one step moves."""
    entries = {(e.instant.requested, e.instant.action): e for e in view.entries if not e.archived}
    found: list[Leaving] = []
    size = 0
    for instant in instants[:_INSTANTS]:
        entry = entries[instant.requested, instant.action]
        metadata = _read(view, entry, State.COMPLETED)
        if metadata is None:
            continue  # another archiver was quicker
        plan = _read(view, entry, State.REQUESTED) if entry.planned in _PLANNED else None
        found.append(Leaving(entry, ArchivedInstant(instant, metadata or None, plan or None)))
        size += len(metadata) + len(plan or b"")
        if size > _BYTES:
            break
    return found


def archive_instants(
    storage: Storage,
    config: TableConfig,
    leaving: Sequence[Leaving],
    options: Mapping[str, str],
) -> None:
    """Move instants from the timeline into the history; the caller holds the lock."""
    if not leaving:
        return
    append_history(storage, config, [one.archived for one in leaving], options)
    storage.delete(
        [
            _path(config, one.entry, state)
            for one in leaving
            for state in (State.REQUESTED, State.INFLIGHT)
            if state in one.entry.files
        ]
    )
    for one in leaving:
        storage.delete([_path(config, one.entry, State.COMPLETED)])
    log.info(
        "instants archived",
        extra=facts(
            instants=len(leaving),
            first=leaving[0].instant.requested,
            last=leaving[-1].instant.requested,
        ),
    )


def is_cut_off(view: TimelineView) -> bool:
    """Say whether an archiving may have been cut off while the files of its instants went."""
    return any(_is_bare(entry) for entry in view.entries)


def forget_archived(storage: Storage, view: TimelineView) -> None:
    """Finish an archiving that was cut off: what has lost its pending files and is in the history.

    The caller holds the lock.
    """
    bare = [e for e in view.entries if _is_bare(e)]
    if not bare:
        return
    first = bare[0].instant.requested
    past = read_history(storage, view.config, after=f"{int(first) - 1:0{len(first)}d}")
    known = {one.instant for one in past}
    for entry in bare:
        if entry.instant in known:
            storage.delete([_path(view.config, entry, State.COMPLETED)])


def _is_bare(entry: Entry) -> bool:
    instant = entry.instant
    if entry.archived or not instant.is_completed or instant.action is Action.SAVEPOINT:
        return False
    return entry.files.keys() == {State.COMPLETED}


def _read(view: TimelineView, entry: Entry, state: State) -> bytes | None:
    if state not in entry.files:
        return None
    try:
        return view.storage.read(_path(view.config, entry, state))
    except NotFound:
        return None


def _path(config: TableConfig, entry: Entry, state: State) -> str:
    return f"{config.timeline_folder}/{entry.files[state]}"
