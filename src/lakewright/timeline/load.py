"""Taking a picture of a table's timeline."""

import logging

from lakewright.format.hudi.config import TableConfig
from lakewright.model.errors import Conflict
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.timeline.bodies import Bodies
from lakewright.timeline.entries import gather
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: How often a listing is taken again when plans vanish between seeing and reading them.
ATTEMPTS = 5


def load_timeline(storage: Storage, config: TableConfig) -> TimelineView:
    """List the active timeline once and return the view of it.

    The plans of unfinished compactions are read at once, because they shape the newest file
    slices: one that vanishes meanwhile was rolled back, and the listing is taken again.
    """
    for attempt in range(ATTEMPTS):
        view = list_timeline(storage, config)
        try:
            for instant in view.pending_compactions():
                view.plan(instant)
        except Conflict:
            if attempt == ATTEMPTS - 1:
                raise
            log.info("a plan vanished while it was read; listing again", extra=facts(try_=attempt))
            continue
        return view
    raise AssertionError("unreachable: the last attempt returns or raises")


def list_timeline(storage: Storage, config: TableConfig) -> TimelineView:
    """List the active timeline once; no body is read, so that one may vanish before it is."""
    folder = config.timeline_folder
    prefix = len(folder) + 1

    def modified(name: str) -> float | None:
        found = storage.stat(f"{folder}/{name}")
        return None if found is None else found.modified

    names = (file.path[prefix:] for file in storage.list(folder, stats=False))
    entries = gather(names, config.layout, config.timezone, modified)
    log.debug("timeline listed", extra=facts(table=storage.uri, instants=len(entries)))
    return TimelineView(storage, config, entries, Bodies(storage, config))
