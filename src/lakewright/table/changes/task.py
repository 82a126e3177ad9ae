"""One piece of a change stream: what one instant did to one file group."""

from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.files import FileGroupId, FileSlice, LogFile
from lakewright.model.instant import Instant


class ChangeKind(StrEnum):
    """Where the changes are found."""

    REMOVED = "removed"
    """The group was replaced: every row it held is a delete."""

    INSERTED = "inserted"
    """The group is new: every row is an insert."""

    REWRITTEN = "rewritten"
    """A base file followed another: the two are compared."""

    LOGGED = "logged"
    """Log records were added: the rows they name are compared before and after."""

    RECORDED = "recorded"
    """The writer left a change file."""


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """What an instant did to a file group.

    ``before`` is the slice that held before the instant, ``after`` the one that it made; for
    log records both are the slice that the records were added to. ``files`` are the change
    files of the instant.
    """

    kind: ChangeKind
    instant: Instant
    group: FileGroupId
    before: FileSlice | None = None
    after: FileSlice | None = None
    files: tuple[LogFile, ...] = ()

    @property
    def partition(self) -> str:
        """The path of the partition that the group lies in."""
        return self.group.partition

    @property
    def merges(self) -> bool:
        """Whether log records have to be merged."""
        return any(s is not None and s.logs for s in (self.before, self.after))

    @property
    def paths(self) -> tuple[str, ...]:
        """The files to read, relative to the table."""
        slices = [s for s in (self.before, self.after) if s is not None]
        return tuple(
            dict.fromkeys((*(p for s in slices for p in s.paths), *(f.path for f in self.files)))
        )

    @property
    def size(self) -> int:
        """Bytes on storage, as far as known."""
        sizes = [s.size for s in {self.before, self.after} if s is not None]
        return sum(sizes) + sum(f.size for f in self.files if f.size > 0)
