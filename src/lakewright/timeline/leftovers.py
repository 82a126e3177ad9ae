"""Files that a settled write leaves behind: those of attempts that did not count, and markers."""

import logging

from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.storage.port import Storage
from lakewright.timeline.heartbeats import drop_heartbeats
from lakewright.timeline.markers import Markers
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


def written_paths(metadata: CommitMetadata) -> frozenset[str]:
    """Return the paths of all files that a commit names as its own."""
    stats = [stat for of_partition in metadata.write_stats.values() for stat in of_partition]
    files = {stat.path for stat in stats if stat.path}
    return frozenset(files.union(*(stat.cdc_stats.keys() for stat in stats)))


def delete_strays(storage: Storage, instant: str, metadata: CommitMetadata) -> None:
    """Delete files that tasks announced by a marker and that the commit does not name.

    They come from attempts that failed or lost against a twin; a file with a marker of this
    instant can belong to nothing else.
    """
    written = written_paths(metadata)
    strays = [p for p in Markers(storage, instant).strays(written) if _is_data(p)]
    if strays:
        log.info(
            "files of other attempts are deleted", extra=facts(instant=instant, files=len(strays))
        )
        storage.delete(strays)


def _is_data(path: str) -> bool:
    folder, name = split(path)
    return (base_file(folder, name) or log_file(folder, name)) is not None


def clear_leftovers(storage: Storage, view: TimelineView, instant: str) -> None:
    """Remove what a settled write left: stray files, where it is known to have completed, then
    its markers, its heartbeat last, which is what leads here."""
    done = [i for i in view.data() if i.requested == instant]
    if done:
        delete_strays(storage, instant, view.commit_metadata(done[0]))
    Markers(storage, instant).clear()
    drop_heartbeats(storage, instant)
