"""Which files of a table nothing names."""

from lakewright.format.hudi.instant_names import parse_instant_name
from lakewright.model.instant import Action, State
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.entries import Entry
from lakewright.timeline.plans import is_plan
from lakewright.timeline.view import TimelineView

PARTITION = ".hoodie_partition_metadata"
#: Files that belong to the table itself, and the lock that any writer may leave behind.
OWN = (
    ".hoodie/hoodie.properties",
    ".hoodie/.locks/",
    ".hoodie/.aux/",
    ".hoodie/lock",
    ".hoodie/.bucket_index/",
    ".hoodie/.hashing_meta/",
)
HISTORY = (".hoodie/timeline/history/", ".hoodie/archived/")


def _waits(view: TimelineView, entry: Entry) -> bool:
    if State.INFLIGHT in entry.files:
        return False
    return entry.planned is Action.CLEAN or is_plan(view, entry)


def strays(storage: Storage) -> list[str]:
    """Data files that no completed commit names, and what unfinished writes left.

    Plans that wait and the archived history are no leftovers.
    """
    state = open_state(storage)
    whole = state.timeline.with_history()
    named = {
        path
        for instant in whole.data()
        for stats in whole.commit_metadata(instant).write_stats.values()
        for stat in stats
        for path in (stat.path, *stat.cdc_stats)
    }
    pending = {
        entry.instant.requested
        for entry in state.timeline.entries
        if not entry.instant.is_completed and not _waits(state.timeline, entry)
    }
    timeline = state.config.timeline_folder
    found = []
    for file in storage.list("", recursive=True):
        path, name = file.path, file.path.rpartition("/")[2]
        if path in named or name == PARTITION or path.startswith((*OWN, *HISTORY)):
            continue
        if path.startswith(f"{timeline}/"):
            instant = parse_instant_name(name, state.config.layout)
            if instant is not None and instant.requested not in pending:
                continue
        found.append(path)
    return sorted(found)


def copy_table(source: Storage, target: Storage) -> None:
    """Copy every file."""
    for file in source.list("", recursive=True):
        target.write(file.path, source.read(file.path))
