"""The commit port on storage: Hudi's timeline files under the table's lock.

A write begins with a heartbeat, the requested file and the inflight file; the instant is taken
under the lock, after everything on the timeline. It takes effect when its completed file is
created, again under the lock, after its rivals were looked at. Before the first attempt at that
the heartbeat is given the name of the completed file: an attempt whose answer was lost is repeated
under the same name and settled by reading it back, and a later writer knows until when such an
attempt may still take effect.
"""

import logging
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.instant_names import instant_file_name
from lakewright.format.hudi.metadata.commit import CommitMetadata, encode_commit
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan, encode_replace_plan
from lakewright.format.hudi.properties import (
    CHECKSUM,
    NAME,
    PROPERTIES_PATH,
    load_properties,
    parse_properties,
    recover_properties,
    table_checksum,
)
from lakewright.model.errors import (
    CommitStateUnknown,
    Conflict,
    Invalid,
    LakewrightError,
    NotFound,
    Unavailable,
)
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.fleeting import fleeting
from lakewright.storage.port import Storage
from lakewright.timeline.clock import check_wanted, newest_time, next_time
from lakewright.timeline.committing import Guard, Rivals, Ticket
from lakewright.timeline.conflicts import Touched, check_plans, check_rivals, settled_schema
from lakewright.timeline.entries import Entry
from lakewright.timeline.heartbeats import (
    Heartbeat,
    Record,
    Tolerance,
    drop_heartbeats,
    read_record,
)
from lakewright.timeline.leftovers import clear_leftovers, delete_strays
from lakewright.timeline.load import load_timeline
from lakewright.timeline.locks.choose import open_lock
from lakewright.timeline.locks.port import Lease, TableLock
from lakewright.timeline.markers import Markers
from lakewright.timeline.owner import Owner
from lakewright.timeline.publication import Patience, create_once
from lakewright.timeline.recovery import Recovery, rollback_targets
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

_ACTIONS = (Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT)
_INDEX = "hoodie.index.type"


class StorageCommitter:
    """Commits to the table of ``storage`` by its timeline folder; see ``Committer``.

    ``config`` is the table's as the writer knows it; ``options`` are the caller's, over the
    table's properties. Threads may share one.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        options: Mapping[str, str],
        *,
        lock: TableLock | None = None,
    ) -> None:
        values = {**config.properties, **options}
        self._storage = storage
        self._config = config
        self._lock = lock or open_lock(storage, values)
        self._tolerance = Tolerance.of(values)
        self._touched = Touched(values.get(_INDEX, "").strip().upper() == "BUCKET")
        self._patience = Patience.with_store(storage)
        self._hearts: dict[str, Heartbeat] = {}
        self._views: dict[str, TimelineView] = {}
        # A committer that is dropped with a write under way will never publish it.
        weakref.finalize(self, _stop_all, self._hearts)

    # ------------------------------------------------------------------ begin

    def begin(
        self,
        action: Action,
        operation: str,
        *,
        instant: str | None = None,
        plan: bytes = b"",
        detached: bool = False,
    ) -> Ticket:
        """Start a write: see ``Committer.begin``."""
        if action not in _ACTIONS:
            raise Invalid(
                f"A {action} is not begun as a write.",
                next_step=f"Begin one of {', '.join(_ACTIONS)}.",
                action=str(action),
            )
        with self._lock.acquire() as lease:
            self._check_properties()
            view = self._recovered()
            taken = next_time(view) if instant is None else check_wanted(instant, view)
            owner = Owner.nowhere() if detached else Owner.here()
            ticket = Ticket(taken, action, operation, _newest_effect(view), owner.token)
            heart = self._heart(taken, Record(owner, _writes_under_way(view)))
            self._hearts[ticket.token] = heart
            made: list[str] = []
            try:
                heart.start()
                lease.secure(self._patience.request)
                requested = plan or self._empty_plan(action)
                made.append(self._create(ticket, State.REQUESTED, requested))
                made.append(self._create(ticket, State.INFLIGHT, self._inflight_body(operation)))
            except BaseException as error:
                self._hearts.pop(ticket.token).stop()
                if not isinstance(error, CommitStateUnknown):
                    self._forget(ticket, made)
                raise
        self._views[ticket.token] = view
        log.info("write begun", extra=facts(instant=taken, action=action, operation=operation))
        return ticket

    def view(self, ticket: Ticket) -> TimelineView | None:
        """Return the timeline from which the write started: see ``Committer.view``."""
        return self._views.get(ticket.token)

    def _check_properties(self) -> None:
        """Mend properties that a crash left half-replaced; refuse a table that was changed."""
        values = self._sound_properties()
        if values is None:
            recover_properties(self._storage)
            values = load_properties(self._storage)
        config = TableConfig.of(values)
        known = self._config
        same = (config.version, config.timeline_folder, config.metadata_partitions) == (
            known.version,
            known.timeline_folder,
            known.metadata_partitions,
        )
        if not same:
            raise Conflict(
                f"The table was changed since it was opened: it has version {config.version} now, "
                f"and the metadata partitions {', '.join(config.metadata_partitions) or '(none)'}.",
                next_step="Open it again.",
                version=config.version,
            )

    def _sound_properties(self) -> Mapping[str, str] | None:
        try:
            values = parse_properties(self._storage.read(PROPERTIES_PATH))
        except NotFound:
            return None
        sealed = values.get(CHECKSUM) in (None, str(table_checksum(values)))
        return values if sealed and NAME in values else None

    def _recovered(self) -> TimelineView:
        view = load_timeline(self._storage, self._config)
        return Recovery(self._storage, self._config, view, self._tolerance).run()

    def _heart(self, instant: str, record: Record) -> Heartbeat:
        return Heartbeat(self._storage, instant, record, self._tolerance)

    def _empty_plan(self, action: Action) -> bytes:
        # Avro in both layouts; other writes are requested with an empty file.
        return encode_replace_plan(ReplacePlan()) if action is Action.REPLACECOMMIT else b""

    def _inflight_body(self, operation: str) -> bytes:
        planned = CommitMetadata(operation=operation)
        return encode_commit(planned, self._config.layout, replace=False)

    def _create(self, ticket: Ticket, state: State, body: bytes) -> str:
        # A write that is lost with them in a power cut has no file yet that outlived it.
        path = self._file(ticket, state)
        if not create_once(fleeting(self._storage), path, body, anew=True):
            raise Conflict(
                f"Another writer has taken the instant {ticket.instant}.",
                next_step="Try again; use the same lock in all writers.",
                instant=ticket.instant,
            )
        return path

    def _file(self, ticket: Ticket, state: State, completed: str | None = None) -> str:
        instant = Instant(ticket.instant, ticket.action, state, completed)
        return f"{self._config.timeline_folder}/{instant_file_name(instant, self._config.layout)}"

    def _forget(self, ticket: Ticket, made: Sequence[str]) -> None:
        """Take back the files of a beginning that failed, as far as storage answers."""
        try:
            self._storage.delete(reversed(made))
            drop_heartbeats(self._storage, ticket.instant)
        except LakewrightError as error:
            _log_left(ticket, error)

    # ---------------------------------------------------------------- publish

    def publish(
        self, ticket: Ticket, metadata: CommitMetadata, guard: Guard | None = None
    ) -> Instant:
        """Make the write take effect: see ``Committer.publish``."""
        if not metadata.schema:
            raise Invalid(
                f"The commit {ticket.instant} carries no schema.",
                next_step="Put the table's Avro schema into its extra metadata as 'schema'.",
                instant=ticket.instant,
            )
        if self._is_untried(ticket):
            delete_strays(self._storage, ticket.instant, metadata)
        with self._lock.acquire() as lease:
            view = load_timeline(self._storage, self._config)
            entry = _entry_of(view, ticket)
            if entry is not None and entry.instant.is_completed:
                # An earlier attempt succeeded, and its answer was lost: what it wrote counts.
                done = entry.instant
                metadata = view.commit_metadata(done)
            else:
                try:
                    done = self._published(ticket, metadata, guard, view, entry, lease)
                except CommitStateUnknown:
                    # This attempt is over; whoever comes next finds out what became of it.
                    self._rest(ticket)
                    raise
        self._settle(ticket, metadata)
        return done

    def _is_untried(self, ticket: Ticket) -> bool:
        """Say whether no publication was tried yet: the caller's list is the only one."""
        heart = self._hearts.get(ticket.token)
        record = heart.record if heart else read_record(self._storage, ticket.instant)
        return record is not None and record.completion is None

    def _published(
        self,
        ticket: Ticket,
        metadata: CommitMetadata,
        guard: Guard | None,
        view: TimelineView,
        entry: Entry | None,
        lease: Lease,
    ) -> Instant:
        heart = self._checked_heart(ticket, view, entry)
        rivals = self._rivals(ticket, heart.record, view)
        check_rivals(ticket.instant, metadata, rivals, self._touched)
        check_plans(view, ticket.instant, metadata, self._touched)
        if rivals:
            metadata = settled_schema(metadata, rivals, self._schema_before(view, rivals))
        if guard is not None:
            guard(rivals)
        completed = self._completion(ticket, heart.record, view)
        done = Instant(ticket.instant, ticket.action, State.COMPLETED, completed)
        body = encode_commit(
            replace(metadata, operation=metadata.operation or ticket.operation),
            self._config.layout,
            replace=ticket.action is Action.REPLACECOMMIT,
        )
        lease.secure(self._patience.request)
        heart.fix(completed, self._settled_at())
        path = self._file(ticket, State.COMPLETED, completed)
        if not create_once(self._storage, path, body):
            raise Conflict(
                f"{path} is there already, with another content.",
                next_step="Another writer has used this instant; read the timeline.",
                instant=ticket.instant,
            )
        log.info("write published", extra=facts(instant=ticket.instant, completed=completed))
        return done

    def _completion(self, ticket: Ticket, record: Record, view: TimelineView) -> str:
        """Return the completion time: the one that an earlier attempt fixed, while it may count."""
        if self._config.layout == 1:
            return ticket.instant
        fixed = record.completion
        if fixed is not None and fixed > newest_time(view):
            return fixed
        if fixed is not None and record.until > time.time():
            raise Unavailable(
                f"An earlier attempt to publish {ticket.instant} may still take effect, at a time "
                "that other writes have passed.",
                next_step="Publish it again in a few minutes.",
                instant=ticket.instant,
                until=record.until,
            )
        return next_time(view, ticket.instant)

    def _settled_at(self) -> float:
        """Return when a creation that begins now has taken effect, or never will."""
        return time.time() + self._patience.call if self._patience.call else 0.0

    def _checked_heart(self, ticket: Ticket, view: TimelineView, entry: Entry | None) -> Heartbeat:
        """Return the write's heartbeat after making sure that nobody took the write for dead."""
        rolled_back = entry is None or State.INFLIGHT not in entry.files
        if rolled_back or ticket.instant in rollback_targets(view):
            raise Conflict(
                f"The write {ticket.instant} was rolled back by another writer.",
                next_step="Try it again; nothing of it took effect.",
                instant=ticket.instant,
            )
        heart = self._hearts.get(ticket.token)
        if heart is None:
            record = read_record(self._storage, ticket.instant)
            if record is None or record.owner.token != ticket.token:
                raise Conflict(
                    f"The write {ticket.instant} has lost its heartbeat.",
                    next_step="Try it again; nothing of it took effect.",
                    instant=ticket.instant,
                )
            heart = self._heart(ticket.instant, record)
        elif not heart.is_valid:
            raise Conflict(
                f"The heartbeat of the write {ticket.instant} stood still for more than "
                f"{self._tolerance.silence:.0f} s, so that others may take it for dead.",
                next_step="Try it again; nothing of it took effect.",
                instant=ticket.instant,
            )
        return heart

    def _rivals(self, ticket: Ticket, record: Record, view: TimelineView) -> Rivals:
        """Return the writes that took effect since the ticket was taken, in that order."""
        pending = frozenset(record.pending)
        since = ticket.seen or ""
        found = [
            i
            for i in view.between(None, None)
            if i.action.writes_data
            and i.requested != ticket.instant
            and ((i.completed or "") > since or i.requested in pending)
        ]
        return [(i, view.commit_metadata(i)) for i in found]

    def _schema_before(self, view: TimelineView, rivals: Rivals) -> Mapping[str, str]:
        """Return the extra metadata that the write started from."""
        later = {rival.requested for rival, _ in rivals}
        for instant in reversed(view.between(None, None)):
            if instant.action.writes_data and instant.requested not in later:
                metadata = view.commit_metadata(instant)
                if metadata.schema:
                    return metadata.extra
        created = self._config.create_schema
        return {"schema": created} if created else {}

    def _settle(self, ticket: Ticket, metadata: CommitMetadata) -> None:
        """Remove markers and heartbeat; what stays is removed by the next writer."""
        try:
            self._rest(ticket)
            delete_strays(self._storage, ticket.instant, metadata)
            Markers(self._storage, ticket.instant).clear()
            drop_heartbeats(self._storage, ticket.instant)
        except LakewrightError as error:
            _log_left(ticket, error)

    def _rest(self, ticket: Ticket) -> None:
        """Let the heartbeat of a write stand still: this committer has done with it."""
        self._views.pop(ticket.token, None)
        heart = self._hearts.pop(ticket.token, None)
        if heart is not None:
            heart.stop()

    # ---------------------------------------------------------------- abandon

    def abandon(self, ticket: Ticket) -> None:
        """Take back a write that failed: see ``Committer.abandon``."""
        try:
            self._rest(ticket)
            with self._lock.acquire():
                self._undo(ticket)
        except LakewrightError as error:
            _log_left(ticket, error)

    def _undo(self, ticket: Ticket) -> None:
        view = load_timeline(self._storage, self._config)
        entry = _entry_of(view, ticket)
        record = read_record(self._storage, ticket.instant)
        if record is not None and record.until > time.time():
            log.warning(
                "a write whose publication may still take effect is left to the next writer",
                extra=facts(instant=ticket.instant),
            )
        elif entry is None or entry.instant.is_completed:
            clear_leftovers(self._storage, view, ticket.instant)
        elif ticket.instant not in rollback_targets(view):
            Recovery(self._storage, self._config, view, self._tolerance).undo(entry)


def _stop_all(hearts: dict[str, Heartbeat]) -> None:
    for heart in hearts.values():
        heart.stop()


def _log_left(ticket: Ticket, error: LakewrightError) -> None:
    log.warning(
        "what a write left behind stays for the next writer",
        extra=facts(instant=ticket.instant, error=str(error)),
    )


def _entry_of(view: TimelineView, ticket: Ticket) -> Entry | None:
    for entry in view.entries:
        if (entry.instant.requested, entry.instant.action) == (ticket.instant, ticket.action):
            return entry
    return None


def _newest_effect(view: TimelineView) -> str | None:
    return max((i.completed for i in view.completed() if i.completed), default=None)


def _writes_under_way(view: TimelineView) -> tuple[str, ...]:
    return tuple(i.requested for i in view.pending() if i.action.completes_as.writes_data)
