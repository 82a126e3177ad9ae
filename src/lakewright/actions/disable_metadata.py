"""Taking a table's metadata table away, so that writers which do not keep it may write.

The metadata table holds nothing that the table itself does not say: readers list files instead,
and Hudi makes it anew with its next write, unless it is told not to.
"""

from dataclasses import dataclass

from lakewright.format.hudi.config import METADATA_PARTITIONS
from lakewright.format.hudi.properties import load_properties, update_properties
from lakewright.model.options import parse_names
from lakewright.storage.port import Storage
from lakewright.timeline.locks.port import TableLock

METADATA_FOLDER = ".hoodie/metadata"
METADATA_IN_WORK = f"{METADATA_PARTITIONS}.inflight"


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """What there is of a metadata table: the partitions that properties name, and its files."""

    partitions: tuple[str, ...]
    files: int
    bytes: int

    def __bool__(self) -> bool:
        return bool(self.partitions or self.files)


def find_metadata(storage: Storage) -> MetadataTable:
    """Look what a table has of a metadata table."""
    properties = load_properties(storage)
    named = f"{properties.get(METADATA_PARTITIONS, '')},{properties.get(METADATA_IN_WORK, '')}"
    sizes = [file.size for file in storage.list(METADATA_FOLDER, recursive=True)]
    return MetadataTable(parse_names(named), len(sizes), sum(sizes))


def disable_metadata(storage: Storage, lock: TableLock) -> MetadataTable:
    """Take the metadata table away, and return what it was.

    The properties go first: from then on nobody reads the files, and whoever finds this cut off
    calls it again. No writer of Hudi may be at work: it would go on with the files it knows.
    """
    with lock.acquire():
        found = find_metadata(storage)
        if found.partitions:
            update_properties(storage, {METADATA_PARTITIONS: None, METADATA_IN_WORK: None})
        storage.delete(f.path for f in storage.list(METADATA_FOLDER, recursive=True))
    return found
