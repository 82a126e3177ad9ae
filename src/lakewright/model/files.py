"""File groups, file slices and their snapshots, in the words of the Hudi specification."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.errors import Invalid
from lakewright.model.instant import Instant


class ReadingMode(StrEnum):
    """How a table is read."""

    SNAPSHOT = "snapshot"
    SNAPSHOT_READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"
    CDC = "cdc"

    @classmethod
    def parse(cls, text: str) -> "ReadingMode":
        """Return the mode of a name or value, in capitals or not; ``Invalid`` lists the values."""
        wanted = str(text).lower()
        for mode in cls:
            if wanted in (mode.value, mode.name.lower()):
                return mode
        raise Invalid(
            f"{text!r} is no reading mode.",
            next_step=f"Use one of {', '.join(cls)}.",
            mode=str(text),
        )


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """A file group: all versions of one set of records."""

    partition: str
    file_id: str

    def __str__(self) -> str:
        return f"{self.partition}/{self.file_id}" if self.partition else self.file_id


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A columnar file that holds one version of a file group.

    ``size`` is -1 where the listing did not ask for it.
    """

    partition: str
    name: str
    file_id: str
    write_token: str
    instant: str
    size: int = -1

    @property
    def path(self) -> str:
        """The path relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of changes on top of a base file.

    ``instant`` is the time in its name: the slice's base instant in layout 1, the delta
    commit's own requested time in layout 2.
    """

    partition: str
    name: str
    file_id: str
    instant: str
    version: int
    write_token: str
    cdc: bool = False
    size: int = -1

    @property
    def path(self) -> str:
        """The path relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: an optional base file and the logs on top, in merge order."""

    group: FileGroupId
    base_instant: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files whose size is known."""
        files = (*((self.base,) if self.base else ()), *self.logs)
        return sum(f.size for f in files if f.size > 0)

    @property
    def paths(self) -> tuple[str, ...]:
        """Relative paths of the base file, then the logs."""
        base = (self.base.path,) if self.base else ()
        return (*base, *(log.path for log in self.logs))


@dataclass(frozen=True, slots=True)
class FileGroup:
    """A file group with its committed slices, newest first."""

    id: FileGroupId
    slices: tuple[FileSlice, ...]


@dataclass(frozen=True, slots=True)
class PartitionDescriptor:
    """A partition: its path relative to the table, and its typed values by column.

    An unpartitioned table has one, with the empty path and no values. ``values`` is empty
    too where the path cannot be split into the partition columns.
    """

    path: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """The state of one partition at an instant: the latest slice of every live file group."""

    descriptor: PartitionDescriptor
    latest_instant: Instant | None
    file_slices: tuple[FileSlice, ...]


@dataclass(frozen=True, slots=True)
class PartitionIncrementalSnapshot:
    """What changed in one partition between two points of the timeline.

    ``timeline`` holds the completed instants of the window that touched the partition;
    ``file_slices`` the latest slices at its end of the file groups they wrote.
    """

    descriptor: PartitionDescriptor
    timeline: tuple[Instant, ...]
    file_slices: tuple[FileSlice, ...]
