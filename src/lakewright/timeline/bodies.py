"""Reading the bodies of instants: lazily, through a small cache, and past a busy archiver."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.history import ArchivedInstant, read_history
from lakewright.format.hudi.metadata.clean import (
    CleanMetadata,
    CleanPlan,
    decode_clean,
    decode_clean_plan,
)
from lakewright.format.hudi.metadata.commit import CommitMetadata, decode_commit
from lakewright.format.hudi.metadata.compaction import CompactionPlan, decode_compaction_plan
from lakewright.format.hudi.metadata.indexing import (
    IndexCommit,
    IndexPlan,
    decode_index_commit,
    decode_index_plan,
)
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan, decode_replace_plan
from lakewright.format.hudi.metadata.restore import (
    RestoreMetadata,
    RestorePlan,
    SavepointMetadata,
    decode_restore,
    decode_restore_plan,
    decode_savepoint,
)
from lakewright.format.hudi.metadata.rollback import (
    RollbackMetadata,
    RollbackPlan,
    decode_rollback,
    decode_rollback_plan,
)
from lakewright.model.errors import Conflict, Corrupt, Invalid, NotFound
from lakewright.model.instant import Action, Instant, State
from lakewright.storage.port import Storage
from lakewright.timeline.entries import Entry

T = TypeVar("T")
Metadata: TypeAlias = (
    CommitMetadata
    | CleanMetadata
    | RollbackMetadata
    | RestoreMetadata
    | SavepointMetadata
    | IndexCommit
    | None
)
Plan: TypeAlias = (
    CleanPlan | CompactionPlan | ReplacePlan | RollbackPlan | RestorePlan | IndexPlan | None
)


def _decode_written(data: bytes, path: str) -> CommitMetadata:
    """Read the body of a completed write; an empty one was cut off, whatever the write held.

    Taken for a write that wrote nothing, it would hide rows from everyone who reads changes.
    """
    if not data:
        raise Corrupt(
            f"{path} is empty: which files the write made is lost.",
            next_step="Open the table again if its writer is still at it; else restore the file "
            "from a copy.",
            path=path,
            offset=0,
        )
    return decode_commit(data, path)


_COMPLETED: Mapping[Action, Callable[[bytes, str], Metadata]] = {
    Action.COMMIT: _decode_written,
    Action.DELTACOMMIT: _decode_written,
    Action.REPLACECOMMIT: _decode_written,
    Action.CLEAN: decode_clean,
    Action.ROLLBACK: decode_rollback,
    Action.RESTORE: decode_restore,
    Action.SAVEPOINT: decode_savepoint,
    Action.INDEXING: decode_index_commit,
}
_PLANNED: Mapping[Action, Callable[[bytes, str], Plan]] = {
    Action.COMPACTION: decode_compaction_plan,
    Action.LOGCOMPACTION: decode_compaction_plan,
    Action.CLUSTERING: decode_replace_plan,
    Action.REPLACECOMMIT: decode_replace_plan,
    Action.CLEAN: decode_clean_plan,
    Action.ROLLBACK: decode_rollback_plan,
    Action.RESTORE: decode_restore_plan,
    Action.INDEXING: decode_index_plan,
}

#: Actions that cannot be carried out, nor judged by anybody, without the groups of their plan. In
#: version 6 the logs on top of a planned compaction are read by it alone.
_NEVER_EMPTY = (Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING)

#: Bodies kept in memory, measured by their encoded length; larger ones are read again.
CACHE_BYTES = 4 << 20


class Bodies:
    """Decoded bodies by entry. Threads may share one; a pickled copy starts empty."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._config = config
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[int, object]] = OrderedDict()
        self._bytes = 0
        self._archived: _Archived | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (Bodies, (self._storage, self._config))

    def commit(self, entry: Entry) -> CommitMetadata:
        """Return the metadata of a completed write."""
        if not (entry.instant.is_completed and entry.instant.action.writes_data):
            raise Invalid(
                f"{entry.instant} has no commit metadata.",
                next_step="Ask for a completed commit, delta commit or replace commit.",
                instant=str(entry.instant),
            )
        return self._cached(f"{_key(entry)} done", entry, State.COMPLETED, _decode_written)

    def commits(self, entries: Sequence[Entry]) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Stream the metadata of many writes: archived ones first, in one pass, oldest first."""
        archived = {_key(entry): entry.instant for entry in entries if entry.archived}
        if archived:
            earliest = min(instant.requested for instant in archived.values())
            for past in read_history(self._storage, self._config, after=_before(earliest)):
                wanted = archived.get(f"{past.instant.requested} {past.instant.action}")
                if wanted is not None and past.metadata is not None:
                    where = f"{self._config.history_folder}:{wanted}"
                    yield wanted, _decode_written(past.metadata, where)
        for entry in entries:
            if not entry.archived:
                yield entry.instant, self.commit(entry)

    def archived_since(self, requested: str) -> Mapping[str, str]:
        """Return the completion times of archived writes from a requested time on.

        Only that part of the history is read, and it is remembered: who asks about one archived
        write will ask about later ones.
        """
        return self._past(requested).completions

    def is_archived(self, requested: str) -> bool:
        """Whether the history has a write of this requested time."""
        return requested in self.archived_since(requested)

    def archived_writes(self, requested: str) -> tuple[Instant, ...]:
        """Return the archived writes from a requested time on, by requested time."""
        return tuple(i for i in self._past(requested).writes if i.requested >= requested)

    def _past(self, requested: str) -> "_Archived":
        known = self._archived
        if known is None or requested < known.since:
            past = read_history(self._storage, self._config, after=_before(requested))
            writes = (p.instant for p in past if p.instant.action.completes_as.writes_data)
            done = tuple(i for i in writes if i.completed is not None)
            completions = {i.requested: i.completed for i in done if i.completed is not None}
            known = self._archived = _Archived(requested, done, completions)
        return known

    def completed(self, entry: Entry) -> Metadata:
        """Return the body of a completed action; None where its kind has none."""
        decode = _COMPLETED.get(entry.instant.action)
        if decode is None or not entry.instant.is_completed:
            return None
        return self._cached(f"{_key(entry)} done", entry, State.COMPLETED, decode)

    def plan(self, entry: Entry) -> Plan:
        """Return the plan of an action; None where there is none, or it was left empty.

        ``Corrupt`` for a compaction or a clustering that waits and has none.
        """
        decode = _PLANNED.get(entry.planned)
        if decode is None or not (entry.archived or State.REQUESTED in entry.files):
            return None
        needed = entry.planned in _NEVER_EMPTY and not entry.instant.is_completed
        read = _never_empty(decode) if needed else _or_none(decode)
        return self._cached(f"{_key(entry)} plan", entry, State.REQUESTED, read)

    def _cached(self, key: str, entry: Entry, state: State, decode: Callable[[bytes, str], T]) -> T:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]  # type: ignore[return-value]  # one type per key
        data, path = self._bytes_of(entry, state)
        value = decode(data, path)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = (len(data), value)
                self._bytes += len(data)
            while self._bytes > CACHE_BYTES and len(self._kept) > 1:
                _, (length, _) = self._kept.popitem(last=False)
                self._bytes -= length
        return value

    def _bytes_of(self, entry: Entry, state: State) -> tuple[bytes, str]:
        if state in entry.files:
            path = f"{self._config.timeline_folder}/{entry.files[state]}"
            try:
                return self._storage.read(path), path
            except NotFound:
                pass  # archived since it was listed, or rolled back
        past = self._from_history(entry.instant)
        data = None if past is None else past.plan if state is State.REQUESTED else past.metadata
        if data is None:
            raise Conflict(
                f"{entry.instant} has left the timeline since it was listed.",
                next_step="Open the table again: it was rolled back or archived meanwhile.",
                instant=str(entry.instant),
            )
        return data, f"{self._config.history_folder}:{entry.instant}"

    def _from_history(self, instant: Instant) -> ArchivedInstant | None:
        earlier = _before(instant.requested)
        for past in read_history(self._storage, self._config, after=earlier):
            if past.instant.requested > instant.requested:
                return None
            if _same(past.instant, instant):
                return past
        return None


@dataclass(frozen=True, slots=True)
class _Archived:
    """The archived writes requested from ``since`` on, and when they completed."""

    since: str
    writes: tuple[Instant, ...]
    completions: Mapping[str, str]


def _key(entry: Entry) -> str:
    return f"{entry.instant.requested} {entry.instant.action.completes_as}"


def _same(one: Instant, other: Instant) -> bool:
    return one.requested == other.requested and (
        one.action.completes_as is other.action.completes_as
    )


def _before(requested: str) -> str:
    """Return a bound that sorts just before an instant time."""
    return f"{int(requested) - 1:0{len(requested)}d}" if int(requested) else ""


def _or_none(decode: Callable[[bytes, str], Plan]) -> Callable[[bytes, str], Plan]:
    # A replacement that is no clustering may be requested with an empty file.
    return lambda data, path: decode(data, path) if data else None


def _never_empty(decode: Callable[[bytes, str], Plan]) -> Callable[[bytes, str], Plan]:
    def read(data: bytes, path: str) -> Plan:
        if not data:
            raise Corrupt(
                f"{path} is empty: which files it plans for is lost.",
                next_step="Restore it from a copy.",
                path=path,
                offset=0,
            )
        return decode(data, path)

    return read
