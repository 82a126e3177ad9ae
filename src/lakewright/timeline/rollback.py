"""Taking back a write, one that failed or one that took effect: what goes, then its going.

A plan is written down as the requested file of a rollback before anything is deleted, so that a
rollback that is cut off is finished by whoever comes next. A writer that takes back its own write
before it was published erases it instead, and the timeline tells nothing of it. Everything runs
under the table's lock, and every step may be done twice.

Which files a write made is told by its commit where it took effect, else by its markers. One
without any made no file, if it is ours or a recent Hudi's; otherwise the table is listed for the
files that carry its instant. A write that took effect leaves the timeline first: from then on it
is one that failed, and readers miss none of its files. What it said of buckets goes next, because
the bucket index of a table believes whatever no pending write wrote. Layout 2 deletes the files
all. In layout 1 a log file is named after the slice that it belongs to, and may hold blocks
of other writes: then a block in a new log file says that the failed write's blocks do not count.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.file_names import base_file, log_file, log_file_name
from lakewright.format.hudi.instant_names import instant_file_name
from lakewright.format.hudi.log.blocks import LogBlock
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.format.hudi.log.write import rollback_block
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.format.hudi.metadata.rollback import (
    InstantInfo,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackPartition,
    encode_rollback,
    encode_rollback_plan,
)
from lakewright.format.hudi.simple_hash_meta import bucket_files_of
from lakewright.model.errors import Conflict, Corrupt, NotFound
from lakewright.model.files import BaseFile, LogFile
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.paths import join, split
from lakewright.storage.port import Storage
from lakewright.timeline.entries import Entry
from lakewright.timeline.heartbeats import drop_heartbeats
from lakewright.timeline.leftovers import written_paths
from lakewright.timeline.markers import MarkerKind, Markers

log = logging.getLogger(__name__)

#: The write token of log files that hold a rollback block alone.
_TOKEN = "1-0-1"


def plan_rollback(
    storage: Storage, config: TableConfig, entry: Entry, *, announced: bool
) -> RollbackPlan:
    """Say what the rollback of a pending write has to undo.

    ``announced`` promises that the write announced every file by a marker, so that one without
    markers made none.
    """
    target = entry.instant.requested
    requests = _from_markers(storage, config, target)
    if not requests and not announced:
        # Delta commits name their logs after an unfinished compaction: they are not its files.
        bases_alone = config.layout == 1 and entry.planned is Action.COMPACTION
        requests = _from_listing(storage, config, target, bases_alone)
    return RollbackPlan(InstantInfo(target, entry.planned), tuple(requests))


def plan_undo(
    storage: Storage, config: TableConfig, entry: Entry, metadata: CommitMetadata
) -> RollbackPlan:
    """Say what the rollback of a completed write, whose commit is ``metadata``, has to undo."""
    target = entry.instant.requested
    requests: list[RollbackRequest] = []
    for path in sorted(written_paths(metadata)):
        folder, name = split(path)
        file = log_file(folder, name)
        # A log that is not named after its write may hold blocks of others: all of layout 1 are
        # such, and in layout 2 those from before an upgrade.
        shared = config.layout == 1 or (file is not None and file.instant != target)
        if file is not None and not file.cdc and shared:
            requests.extend(_undone_log(storage, file, target))
        else:
            requests.append(_deletion(storage, path, target))
    return RollbackPlan(InstantInfo(target, entry.instant.action), tuple(requests))


def _from_markers(storage: Storage, config: TableConfig, target: str) -> list[RollbackRequest]:
    requests: dict[str, RollbackRequest] = {}
    for marker in Markers(storage, target).names():
        folder, name = split(marker.path)
        if config.layout == 1 and marker.kind is MarkerKind.APPEND:
            for request in _appended(storage, folder, name, target):
                requests[request.files[0] if request.files else next(iter(request.log_blocks))] = (
                    request
                )
        else:
            requests[storage.locate(marker.path)] = _deletion(storage, marker.path, target)
    return list(requests.values())


def _from_listing(
    storage: Storage, config: TableConfig, target: str, bases_alone: bool
) -> list[RollbackRequest]:
    log.info("a failed write has no markers; the table is listed", extra=facts(instant=target))
    requests = []
    for folder in storage.walk(sizes=False, skip=frozenset({".hoodie"})):
        for name in folder.names:
            file = base_file(folder.path, name) or log_file(folder.path, name)
            if file is None or (bases_alone and isinstance(file, LogFile)):
                continue
            if file.instant == target:
                requests.append(_deletion(storage, file.path, target))
            elif config.layout == 1 and isinstance(file, LogFile) and not file.cdc:
                requests.extend(_undone_log(storage, file, target))
    return requests


def _deletion(storage: Storage, path: str, target: str) -> RollbackRequest:
    folder, name = split(path)
    file = base_file(folder, name) or log_file(folder, name)
    file_id = "" if file is None else file.file_id
    return RollbackRequest(folder, file_id, target, (storage.locate(path),))


def _appended(storage: Storage, folder: str, name: str, target: str) -> Iterator[RollbackRequest]:
    """Resolve an APPEND marker: it names the log file or, by older Hudi, the slice's base file."""
    named = log_file(folder, name)
    if named is not None:
        yield from _undone_log(storage, named, target)
        return
    base = base_file(folder, name)
    if base is None:
        return
    for file in _logs_of(storage, folder, base.file_id, base.instant):
        yield from _undone_log(storage, file, target)


def _logs_of(storage: Storage, folder: str, file_id: str, instant: str) -> list[LogFile]:
    found = (log_file(folder, split(f.path)[1], f.size) for f in storage.list(folder))
    return [f for f in found if f is not None and (f.file_id, f.instant) == (file_id, instant)]


def _undone_log(storage: Storage, file: LogFile, target: str) -> Iterator[RollbackRequest]:
    """Delete a log file that the write made alone; one that it shares gets a block against it."""
    stat = storage.stat(file.path)
    if stat is None:
        return
    wrote = _writers(storage, file.path, stat.size)
    if file.instant == target or wrote <= {target}:
        yield RollbackRequest(file.partition, file.file_id, target, (storage.locate(file.path),))
    elif target in wrote:
        blocks = {storage.locate(file.path): stat.size}
        yield RollbackRequest(file.partition, file.file_id, file.instant, (), blocks)


def _writers(storage: Storage, path: str, size: int) -> set[str]:
    """Return the instants whose blocks lie in a log file."""
    return {b.instant for b in _blocks(storage, path, size) if b.instant is not None}


def _blocks(storage: Storage, path: str, size: int) -> list[LogBlock]:
    """Return the blocks of a log file; one that was cut off while it was written has none."""
    try:
        with storage.open(path) as file:
            return list(scan_blocks(file, size, path))
    except (Corrupt, NotFound):
        return []


@dataclass(slots=True)
class Rollback:
    """One rollback under way: ``instant`` undoes ``plan`` in the table of ``storage``.

    The caller holds the lock, and has written the requested file or found it. With
    ``keeps_plan`` the target's own requested file stays: it waits to be carried out again.
    """

    storage: Storage
    config: TableConfig
    instant: str
    plan: RollbackPlan
    keeps_plan: bool = False
    begun: float = field(default_factory=time.monotonic)

    @property
    def target(self) -> str:
        """The instant that is undone."""
        if self.plan.instant is None:
            raise Corrupt(
                f"The rollback {self.instant} does not say what it undoes.",
                next_step="Delete its requested and inflight files.",
                instant=self.instant,
            )
        return self.plan.instant.time

    def request(self) -> None:
        """Write the plan down."""
        if not self.storage.create(self._file(State.REQUESTED), encode_rollback_plan(self.plan)):
            raise Conflict(
                f"Another writer has taken the instant {self.instant}.",
                next_step="Try again; use the same lock in all writers.",
                instant=self.instant,
            )

    def run(self, entry: Entry | None, completed: str) -> RollbackMetadata:
        """Undo everything and complete; ``entry`` is the target while it is on the timeline."""
        self.storage.create(self._file(State.INFLIGHT), b"")
        metadata = self.undo(entry)
        self.storage.create(self._file(State.COMPLETED, completed), encode_rollback(metadata))
        Markers(self.storage, self.target).clear()
        drop_heartbeats(self.storage, self.target, self.instant)
        return metadata

    def undo(self, entry: Entry | None) -> RollbackMetadata:
        """Take the target off the timeline, and its files away; return what went."""
        if entry is not None and State.COMPLETED in entry.files:
            if len(entry.files) == 1:
                self._drop_buckets()  # nothing would say that they are pending
            done = f"{self.config.timeline_folder}/{entry.files[State.COMPLETED]}"
            self.storage.delete([done])
        self._drop_buckets()
        partitions = self._undo()
        if entry is not None:
            self.storage.delete(self._pending_files(entry))
        metadata = RollbackMetadata(
            start=self.instant,
            millis=int((time.monotonic() - self.begun) * 1000),
            total_deleted=sum(len(p.deleted) for p in partitions.values()),
            commits=(self.target,),
            partitions=partitions,
            instants=(self.plan.instant,) if self.plan.instant else (),
        )
        log.info(
            "a write was rolled back",
            extra=facts(instant=self.target, by=self.instant, files=metadata.total_deleted),
        )
        return metadata

    def erase(self, entry: Entry) -> None:
        """Delete the files of a write and take it off the timeline, without a trace.

        The markers go after the pending files: until then whoever comes next, Hudi too, can roll
        the write back.
        """
        self._drop_buckets()
        self.storage.delete(self._files())
        self.storage.delete(self._pending_files(entry))
        Markers(self.storage, self.target).clear()
        drop_heartbeats(self.storage, self.target)

    def _drop_buckets(self) -> None:
        """Delete what the write said of buckets, the hashing config first: others believe it.

        It counts for nobody while the write is pending, and for everybody once it is unknown.
        """
        believed, *others = bucket_files_of(self.target)
        self.storage.delete([believed])
        self.storage.delete(others)

    def _file(self, state: State, completed: str | None = None) -> str:
        done = completed if self.config.layout == 2 else self.instant
        instant = Instant(
            self.instant, Action.ROLLBACK, state, done if state is State.COMPLETED else None
        )
        return f"{self.config.timeline_folder}/{instant_file_name(instant, self.config.layout)}"

    def _pending_files(self, entry: Entry) -> list[str]:
        """Return what goes from the timeline when the files are gone."""
        states = [State.INFLIGHT]
        if not self.keeps_plan:
            states.append(State.REQUESTED)
        folder = self.config.timeline_folder
        return [f"{folder}/{entry.files[state]}" for state in states if state in entry.files]

    def _undo(self) -> dict[str, RolledBackPartition]:
        deleted: dict[str, list[str]] = {}
        blocks: dict[str, dict[str, int]] = {}
        for request in self.plan.requests:
            deleted.setdefault(request.partition, []).extend(request.files)
            if request.log_blocks and self._are_shared(request):
                blocks.setdefault(request.partition, {}).update(self._append(request))
        self.storage.delete(self._files())
        return {
            partition: RolledBackPartition(partition, tuple(files), (), blocks.get(partition, {}))
            for partition, files in deleted.items()
        }

    def _files(self) -> Iterator[str]:
        """Stream the paths to delete: a table may have moved since, so partition and name count."""
        for request in self.plan.requests:
            # In layout 2 the blocks of a write are alone in their log file, which Hudi plans so.
            logs = () if self._are_shared(request) else tuple(request.log_blocks)
            for full in (*request.files, *logs):
                path = join(request.partition, split(full)[1])
                self._check(path, request)
                yield path

    def _are_shared(self, request: RollbackRequest) -> bool:
        """Whether logs are named after a slice: in layout 1, and from before an upgrade."""
        names = (log_file("", split(full)[1]) for full in request.log_blocks)
        older = any(file is not None and file.instant != self.target for file in names)
        return self.config.layout == 1 or older

    def _check(self, path: str, request: RollbackRequest) -> None:
        """Refuse to delete what cannot be a file of the undone write."""
        folder, name = split(path)
        file = base_file(folder, name) or log_file(folder, name)
        if not self._is_of_target(file):
            raise Corrupt(
                f"The rollback {self.instant} of {self.target} wants to delete {path!r}, which is "
                "no file of that instant.",
                next_step="Nothing of it was deleted; look at its requested file.",
                path=path,
                instant=self.instant,
            )

    def _is_of_target(self, file: BaseFile | LogFile | None) -> bool:
        if file is None or file.instant == self.target:
            return file is not None
        if not isinstance(file, LogFile):
            return False
        if self.config.layout == 1:
            return True
        stat = self.storage.stat(file.path)
        return stat is None or _writers(self.storage, file.path, stat.size) <= {self.target}

    def _append(self, request: RollbackRequest) -> dict[str, int]:
        """Write the block that undoes blocks of the target in one slice, once."""
        file_id, base_instant = request.file_id or "", request.base_instant or ""
        logs = _logs_of(self.storage, request.partition, file_id, base_instant)
        if self._is_undone(logs):
            return {}
        block = rollback_block(self.instant, self.target)
        version = max((file.version for file in logs), default=0) + 1
        while True:
            name = log_file_name(file_id, base_instant, version, _TOKEN)
            path = join(request.partition, name)
            if self.storage.create(path, block):
                return {self.storage.locate(path): len(block)}
            version += 1

    def _is_undone(self, logs: Sequence[LogFile]) -> bool:
        return any(
            block.is_rollback and block.target_instant == self.target
            for file in logs
            for block in _blocks(self.storage, file.path, file.size)
        )
