"""What a write is asked to do, and what it did."""

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.model.instant import Instant
from lakewright.model.services import ServiceRun


class Operation(StrEnum):
    """The kinds of writes, under the names that Hudi's commits carry."""

    INSERT = "INSERT"
    BULK_INSERT = "BULK_INSERT"
    UPSERT = "UPSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"

    @property
    def replaces(self) -> bool:
        """Whether file groups vanish by it, so that it is a replace commit."""
        return self in _REPLACING


_REPLACING = frozenset(
    {Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION}
)


@dataclass(frozen=True, slots=True)
class PartitionWritten:
    """What a write did to one partition."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files: int = 0
    bytes: int = 0
    replaced_groups: int = 0


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did.

    ``instant`` is None where nothing had to be written (no rows, no such partition): the table
    has no new commit then. Counts are of keys after duplicates were combined. With
    ``exact=False`` some rows went into logs of buckets without a look at what is stored; such
    a row counts as updated, as in Hudi, even where its key is new, and a delete counts even where
    there was nothing to delete. ``attempts`` is how often the write ran before no other writer
    was in its way. ``absent`` are partitions that were to be deleted and are not there.
    ``services`` are those that ran after it, as the table or the write asked for; one that failed
    is told there and changes nothing about the write.
    """

    operation: Operation
    instant: Instant | None
    partitions: Mapping[str, PartitionWritten] = field(default_factory=dict)
    exact: bool = True
    attempts: int = 1
    absent: tuple[str, ...] = ()
    services: tuple[ServiceRun, ...] = ()

    @property
    def inserted(self) -> int:
        """Rows whose key was not there before."""
        return sum(p.inserted for p in self.partitions.values())

    @property
    def updated(self) -> int:
        """Rows that took the place of one with the same key."""
        return sum(p.updated for p in self.partitions.values())

    @property
    def deleted(self) -> int:
        """Rows that are gone, those of replaced file groups not counted."""
        return sum(p.deleted for p in self.partitions.values())

    @property
    def files(self) -> int:
        """Files written."""
        return sum(p.files for p in self.partitions.values())

    @property
    def bytes(self) -> int:
        """Bytes written."""
        return sum(p.bytes for p in self.partitions.values())

    def __str__(self) -> str:
        when = "nothing to write" if self.instant is None else self.instant.requested
        counts = f"{self.inserted} inserted, {self.updated} updated, {self.deleted} deleted"
        about = "" if self.exact else "about "
        where = f"{self.files} files, {self.bytes} bytes, {len(self.partitions)} partitions"
        return f"{self.operation} {when}: {about}{counts}; {where}"

    def __rich_repr__(self) -> Iterator[tuple[object, ...]]:
        yield "operation", self.operation.value
        yield "instant", None if self.instant is None else self.instant.requested
        yield from (("inserted", self.inserted), ("updated", self.updated))
        yield from (("deleted", self.deleted), ("files", self.files), ("bytes", self.bytes))
        yield from (("exact", self.exact, True), ("attempts", self.attempts, 1))
        yield from (("absent", self.absent, ()), ("services", self.services, ()))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(path) or '(table)'}</td><td>{p.inserted}</td><td>{p.updated}"
            f"</td><td>{p.deleted}</td><td>{p.files}</td><td>{p.bytes}</td></tr>"
            for path, p in sorted(self.partitions.items())
        )
        head = "".join(
            f"<th>{name}</th>"
            for name in ("partition", "inserted", "updated", "deleted", "files", "bytes")
        )
        when = "nothing written" if self.instant is None else self.instant.requested
        return f"<b>{self.operation}</b> {when}<table><tr>{head}</tr>{rows}</table>"
