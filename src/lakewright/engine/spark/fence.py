"""Tasks that come too late.

Spark calls a job done while losers of its races, and tasks of a job that failed, still run in
their Python workers, and nobody can wait for those. Whoever ends a write says so in its heartbeat
before it looks for the files that do not count; a task asks after it has put a file in its place.
So a file is either found by the one or taken back by the other.
"""

from collections.abc import Iterable

from lakewright.actions.tasks.write_spec import FileWritten, WriteSpec
from lakewright.model.errors import Conflict
from lakewright.timeline.heartbeats import is_open
from lakewright.timeline.markers import MarkerKind, Markers


def check_in_time(shared: object, made: object) -> None:
    """Take files back that were written when their write was over already, and fail.

    They may be deleted: only an answer of this task would have put them into the commit.
    """
    if not isinstance(shared, WriteSpec):
        return
    files = _files(made)
    storage = shared.open_storage()
    if not files or is_open(storage, shared.instant):
        return
    paths = [file.stat.path for file in files if file.stat.path]
    folder = Markers(storage, shared.instant).folder
    marks = [f"{folder}/{path}.marker.{kind}" for path in paths for kind in MarkerKind]
    storage.delete([*paths, *marks])
    raise Conflict(
        f"the write {shared.instant} was over before this task was done.",
        next_step="Read the error of the write itself; nothing of this task counts.",
        instant=shared.instant,
    )


def _files(made: object) -> list[FileWritten]:
    parts = made if isinstance(made, Iterable) else [made]
    return [part for part in parts if isinstance(part, FileWritten)]
