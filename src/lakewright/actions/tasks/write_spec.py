"""What the tasks of a write share, what they work on, and what they answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakewright.actions.tasks.write_settings import WriteSettings
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.index.layout import IndexLayout
from lakewright.model.files import FileGroupId, FileSlice
from lakewright.model.schema import Struct
from lakewright.model.writing import Operation
from lakewright.storage.open import cached_storage
from lakewright.storage.port import Storage
from lakewright.table.pinned import PinnedTable

#: Columns that rows on their way to files may carry, and files never hold. A row marked by
#: ``ROUTE_DELETE`` deletes its key in its partition whatever is stored there.
ROUTE_DELETE = "_lakewright_delete"
#: Where an engine found that a row belongs: all four columns come together. The group is a file
#: id; one that no live slice of the partition has is a new group. The position is the row of the
#: slice's base file, -1 where the key is not in it, null where nobody looked.
ROUTE_PARTITION = "_lakewright_partition"
ROUTE_GROUP = "_lakewright_group"
ROUTE_POSITION = "_lakewright_position"
ROUTE_COLUMNS = (ROUTE_DELETE, ROUTE_PARTITION, ROUTE_GROUP, ROUTE_POSITION)
#: Names that a table which is written here cannot give its columns: columns of these names
#: travel beside its own, here and on Spark, which does not tell capitals from small letters.
TAKEN_NAMES = frozenset(
    {
        *ROUTE_COLUMNS,
        "_lakewright_bucket",
        "_lakewright_key",
        "_lakewright_path",
        "_lakewright_place",
        "_lakewright_route",
    }
)


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """What all tasks of a write share: enough to write without opening the table again.

    ``schema`` holds the columns that are written, Hudi's own left out: the table's, widened by
    what the rows bring. ``pinned`` is the table as it was when the write began: tasks list
    partitions through it, so that all of them build on the same slices. With ``drop_existing``
    an insert leaves out rows whose key is stored already.
    """

    uri: str
    options: Mapping[str, str]
    config: TableConfig
    schema: Struct
    instant: str
    operation: Operation
    layout: IndexLayout
    settings: WriteSettings
    pinned: PinnedTable
    drop_existing: bool = False
    storage: Storage | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        # An open storage stays where it is; the other side opens its own.
        values = (
            self.uri,
            dict(self.options),
            self.config,
            self.schema,
            self.instant,
            self.operation,
            self.layout,
            self.settings,
            self.pinned,
            self.drop_existing,
        )
        return (WriteSpec, values)

    def open_storage(self) -> Storage:
        """Return the storage of the table, opened once per process."""
        return self.storage or cached_storage(self.uri, self.options)


def looks_up(spec: WriteSpec) -> bool:
    """Whether a write asks what is stored before it adds rows."""
    return spec.operation in (Operation.UPSERT, Operation.DELETE) or spec.drop_existing


@dataclass(frozen=True, slots=True, eq=False)
class KeysToDelete:
    """Records to delete whatever is stored of them: record keys, and where each one lies."""

    keys: pa.Array
    partitions: pa.Array

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True, eq=False)
class GroupWork:
    """What happens to one file group.

    ``slice`` is the group's latest slice, None for a new group. ``rows`` hold the columns of the
    write's schema after ``_hoodie_record_key``, keys that occur twice combined; ``deletes`` are
    keys to delete whatever is stored. ``insert_only`` says that no row of ``rows`` is in the
    slice already, or that it may be in it twice: rows are added, none is replaced. ``positions``
    are the places of the rows in the slice's base file where they are known (-1: not in it).
    ``repeated`` says that the base file holds several rows of some of the keys.
    ``partition_known`` says that the partition's folder has Hudi's metadata file already.
    """

    group: FileGroupId
    slice: FileSlice | None
    rows: pa.Table | None
    deletes: pa.Array | None = None
    insert_only: bool = False
    positions: pa.Array | None = None
    partition_known: bool = False
    repeated: bool = False

    @property
    def size(self) -> int:
        """Bytes to read and write, about."""
        stored = self.slice.size if self.slice is not None else 0
        return stored + (self.rows.nbytes if self.rows is not None else 0)


@dataclass(frozen=True, slots=True)
class FileWritten:
    """One file that a task wrote, as its commit will list it.

    ``inserted``, ``updated`` and ``deleted`` are what the user is told; ``exact`` is False where
    they are Hudi's guess. ``key_range`` are the least and greatest keys among inserted rows
    (Java's order), for finding out whether another writer inserted the same.
    """

    partition: str
    stat: WriteStat
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    exact: bool = True
    key_range: tuple[str, str] | None = None
