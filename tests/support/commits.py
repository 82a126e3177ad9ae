"""Writes of a few bytes through the commit port, and what must hold on storage afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakewright.format.hudi.log.blocks import BlockKind, HeaderKey
from lakewright.format.hudi.log.write import frame
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat
from lakewright.model.instant import Action, Instant
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.committing import Guard, Ticket
from lakewright.timeline.leftovers import written_paths
from lakewright.timeline.markers import MarkerKind, Markers
from lakewright.timeline.storage_committer import StorageCommitter
from support.tiny_tables import SCHEMA


def committer(storage: Storage, **options: str) -> StorageCommitter:
    """Return a committer for the table in ``storage``; option names have ``__`` for dots."""
    config = open_state(storage).config
    return StorageCommitter(storage, config, {k.replace("__", "."): v for k, v in options.items()})


def block(instant: str) -> bytes:
    """Return a log block that says who wrote it."""
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: SCHEMA}
    return frame(BlockKind.DELETE, header, b"")


@dataclass
class Write:
    """One write by hand: files are announced and written, then it is published or given up."""

    storage: Storage
    ticket: Ticket
    by: StorageCommitter
    stats: dict[str, list[WriteStat]] = field(default_factory=dict)
    replaced: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def begin(
        storage: Storage,
        by: StorageCommitter | None = None,
        *,
        action: Action = Action.COMMIT,
        operation: str = "UPSERT",
        **details: object,
    ) -> "Write":
        by = by or committer(storage)
        return Write(storage, by.begin(action, operation, **details), by)

    def base(self, group: str, partition: str = "dt=1", *, counts: bool = True) -> "Write":
        """Write a base file; one that does not count is of an attempt that failed."""
        token = "0-0-1" if counts else "0-0-2"
        name = f"{group}_{token}_{self.ticket.instant}.parquet"
        return self._file(partition, name, group, MarkerKind.CREATE, b"base", counts)

    def log(
        self, group: str, named: str | None = None, version: int = 1, partition: str = "dt=1"
    ) -> "Write":
        """Write a log file; in layout 1 it is ``named`` after its slice."""
        name = f".{group}_{named or self.ticket.instant}.log.{version}_0-0-1"
        kind = MarkerKind.CREATE if named is None else MarkerKind.APPEND
        return self._file(partition, name, group, kind, block(self.ticket.instant), True)

    def _file(
        self, partition: str, name: str, group: str, kind: MarkerKind, data: bytes, counts: bool
    ) -> "Write":
        path = f"{partition}/{name}"
        Markers(self.storage, self.ticket.instant).create(path, kind)
        self.storage.write(path, data)
        if counts:
            stat = WriteStat(group, path, "null", partition_path=partition)
            self.stats.setdefault(partition, []).append(stat)
        return self

    def replacing(self, group: str, partition: str = "dt=1") -> "Write":
        self.replaced.setdefault(partition, []).append(group)
        return self

    def metadata(self, schema: str | None = SCHEMA) -> CommitMetadata:
        return CommitMetadata(
            {p: tuple(stats) for p, stats in self.stats.items()},
            extra={"schema": schema} if schema else {},
            operation=self.ticket.operation,
            replaced={p: tuple(ids) for p, ids in self.replaced.items()},
        )

    def publish(self, guard: Guard | None = None, schema: str | None = SCHEMA) -> Instant:
        return self.by.publish(self.ticket, self.metadata(schema), guard)

    def abandon(self) -> None:
        self.by.abandon(self.ticket)

    def die(self) -> Ticket:
        """Drop the write as if its process had ended, and return its ticket."""
        del self.by
        return self.ticket


def paths(storage: Storage, folder: str = "") -> list[str]:
    """Return every file of a table, or of a folder in it."""
    return sorted(file.path for file in storage.list(folder, recursive=True))


def data_files(storage: Storage) -> set[str]:
    """Return the base and log files that lie in the table."""
    return {p for p in paths(storage) if not p.startswith(".hoodie/") and "_metadata" not in p}


def committed_files(storage: Storage) -> set[str]:
    """Return the files that completed writes name."""
    view = open_state(storage).timeline
    return {p for i in view.data() for p in written_paths(view.commit_metadata(i))}


def leftovers(storage: Storage) -> list[str]:
    """Return what nothing accounts for: stray data, markers, heartbeats, locks, pending files."""
    view = open_state(storage).timeline
    stray = data_files(storage) ^ committed_files(storage)
    hidden = [*paths(storage, ".hoodie/.temp"), *paths(storage, ".hoodie/.heartbeat")]
    held = [".hoodie/lock"] if storage.stat(".hoodie/lock") else []
    return [*sorted(stray), *hidden, *held, *map(str, view.pending())]


def completed(storage: Storage) -> list[str]:
    """Return the requested times of the writes that took effect."""
    return [i.requested for i in open_state(storage).timeline.data()]


def strictly_ordered(instants: Sequence[Instant]) -> bool:
    """Say whether all times differ and each completion follows its request."""
    times = [t for i in instants for t in {i.requested, i.completed}]
    return len(times) == len(set(times)) and all(
        (i.completed or "") >= i.requested for i in instants
    )
