"""Which files of a table nothing names."""

from lakewright.format.hudi.instant_names import parse_instant_name
from lakewright.storage.port import Storage
from lakewright.table.state import open_state

PARTITION = ".hoodie_partition_metadata"
#: Files that belong to the table itself, and the lock that any writer may leave behind.
OWN = (".hoodie/hoodie.properties", ".hoodie/.locks/", ".hoodie/.aux/", ".hoodie/lock")


def strays(storage: Storage) -> list[str]:
    """Data files that no completed commit names, and what unfinished writes left."""
    state = open_state(storage)
    named = {
        path
        for instant in state.timeline.data()
        for stats in state.timeline.commit_metadata(instant).write_stats.values()
        for stat in stats
        for path in (stat.path, *stat.cdc_stats)
    }
    pending = {instant.requested for instant in state.timeline.pending()}
    timeline = state.config.timeline_folder
    found = []
    for file in storage.list("", recursive=True):
        path, name = file.path, file.path.rpartition("/")[2]
        if path in named or name == PARTITION or path.startswith(OWN):
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
