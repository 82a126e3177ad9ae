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
from functools import partial

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.instant_names import instant_file_name
from lakewright.format.hudi.metadata.commit import CommitMetadata, encode_commit
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan, encode_replace_plan
from lakewright.model.errors import (
    CommitStateUnknown,
    Conflict,
    Invalid,
    LakewrightError,
    Unavailable,
)
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.fleeting import fleeting
from lakewright.storage.port import Storage
from lakewright.timeline.access import TimelineAccess
from lakewright.timeline.clock import check_wanted, newest_time, next_time
from lakewright.timeline.committing import Guard, Rivals, Ticket
from lakewright.timeline.conflicts import (
    Touched,
    check_planned,
    check_plans,
    check_rivals,
    settled_schema,
)
from lakewright.timeline.entries import Entry
from lakewright.timeline.heartbeats import (
    Heartbeat,
    Record,
    drop_heartbeats,
    read_record,
)
from lakewright.timeline.leftovers import clear_leftovers, delete_strays, written_paths
from lakewright.timeline.locks.port import Lease, TableLock
from lakewright.timeline.markers import Markers
from lakewright.timeline.owner import Owner
from lakewright.timeline.plans import check_deserted, planned_entry
from lakewright.timeline.publication import Patience, create_once
from lakewright.timeline.recovery import rollback_targets
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
        self._access = TimelineAccess(storage, config, options, lock)
        self._storage = storage
        self._config = config
        self._lock = self._access.lock
        self._tolerance = self._access.tolerance
        index = self._access.options.get(_INDEX, "")
        self._touched = Touched(index.strip().upper() == "BUCKET", config.layout)
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
        with self._access.repaired() as (view, lease):
            taken = next_time(view) if instant is None else check_wanted(instant, view)
            owner = Owner.nowhere() if detached else Owner.here()
            ticket = Ticket(taken, action, operation, _newest_effect(view), owner.token)
            bodies = {
                State.REQUESTED: plan or self._empty_plan(action),
                State.INFLIGHT: self._inflight_body(operation),
            }
            self._start(ticket, owner, bodies, view, lease)
        log.info("write begun", extra=facts(instant=taken, action=action, operation=operation))
        return ticket

    def take(self, plan: Instant, operation: str) -> Ticket:
        """Start to carry out a plan: see ``Committer.take``."""
        with self._access.repaired() as (view, lease):
            entry = planned_entry(view, plan)
            if State.INFLIGHT in entry.files:
                check_deserted(view, entry, self._tolerance)
                recovery = self._access.recovery(view)
                recovery.undo(entry)
                view = recovery.view
            owner = Owner.here()
            # Whatever took effect since it was planned is a rival.
            ticket = Ticket(
                plan.requested, entry.planned, operation, plan.requested, owner.token, planned=True
            )
            self._start(ticket, owner, {State.INFLIGHT: b""}, view, lease)
        log.info("plan taken", extra=facts(instant=plan.requested, operation=operation))
        return ticket

    def _start(
        self,
        ticket: Ticket,
        owner: Owner,
        bodies: Mapping[State, bytes],
        view: TimelineView,
        lease: Lease,
    ) -> None:
        """Let the heart of a write beat, then put its files on the timeline."""
        heart = self._heart(ticket.instant, Record(owner, _writes_under_way(view, ticket)))
        self._hearts[ticket.token] = heart
        made: list[str] = []
        try:
            heart.start()
            lease.secure(self._patience.request)
            for state, body in bodies.items():
                made.append(self._create(ticket, state, body))
        except BaseException as error:
            self._hearts.pop(ticket.token).stop()
            if not isinstance(error, CommitStateUnknown):
                self._forget(ticket, made)
            raise
        self._views[ticket.token] = view

    def view(self, ticket: Ticket) -> TimelineView | None:
        """Return the timeline from which the write started: see ``Committer.view``."""
        return self._views.get(ticket.token)

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
        with self._access.loaded() as (view, lease):
            entry = _entry_of(view, ticket)
            if entry is not None and entry.instant.is_completed:
                # An earlier attempt succeeded, and its answer was lost: what it wrote counts.
                done = entry.instant
                metadata = self._settled(ticket, metadata, view.commit_metadata(done))
            else:
                try:
                    done = self._published(ticket, metadata, guard, view, entry, lease)
                except CommitStateUnknown:
                    # This attempt is over; whoever comes next finds out what became of it.
                    self._rest(ticket)
                    raise
        self._settle(ticket, metadata)
        return done

    def _settled(
        self, ticket: Ticket, ours: CommitMetadata, stored: CommitMetadata
    ) -> CommitMetadata:
        """Return what was published, which is ours unless another one carried out the plan."""
        if ticket.planned and written_paths(ours) != written_paths(stored):
            raise Conflict(
                f"Another one has carried out the plan {ticket.instant}.",
                next_step="There is nothing left to do; open the table again.",
                instant=ticket.instant,
            )
        return stored

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
        self._check(ticket, metadata, guard, rivals, view)
        if rivals:
            metadata = settled_schema(metadata, rivals, self._schema_before(view, rivals))
        completed = self._completion(ticket, heart.record, view)
        done = Instant(ticket.instant, ticket.action.completes_as, State.COMPLETED, completed)
        body = encode_commit(
            replace(metadata, operation=metadata.operation or ticket.operation),
            self._config.layout,
            replace=ticket.action.completes_as is Action.REPLACECOMMIT,
        )
        secure = partial(lease.secure, self._patience.request)
        secure()
        before = heart.fix(completed, self._settled_at())
        try:
            # Whoever was stopped since, beyond the lease, must not go on as if nothing were.
            secure()
        except LakewrightError:
            heart.unfix(before)
            raise
        path = self._file(ticket, State.COMPLETED, completed)
        if not create_once(self._storage, path, body, again=secure):
            raise Conflict(
                f"{path} is there already, with another content.",
                next_step="Another writer has used this instant; read the timeline.",
                instant=ticket.instant,
            )
        self._keep_or_take_back(ticket, metadata, guard, heart.record, rivals, path, lease)
        log.info("write published", extra=facts(instant=ticket.instant, completed=completed))
        return done

    def _check(
        self,
        ticket: Ticket,
        metadata: CommitMetadata,
        guard: Guard | None,
        rivals: Rivals,
        view: TimelineView,
    ) -> None:
        """Raise ``Conflict`` where rivals, or plans, leave no room for a write."""
        if ticket.planned:
            entry = _entry_of(view, ticket)
            plan = None if entry is None else view.plan(entry.instant)
            check_planned(ticket.action, plan, rivals, self._touched)
        else:
            check_rivals(ticket.instant, metadata, rivals, self._touched)
            check_plans(view, ticket.instant, metadata, self._touched)
        if guard is not None:
            guard(rivals, view)

    def _keep_or_take_back(
        self,
        ticket: Ticket,
        metadata: CommitMetadata,
        guard: Guard | None,
        record: Record,
        known: Rivals,
        path: str,
        lease: Lease,
    ) -> None:
        """Look again where the lock was lost while the completed file was created.

        A process that is stopped in the midst of that goes on when others have taken it for dead,
        or have published what is in conflict with it. Then the file goes again.
        """
        try:
            lease.secure(0.0)
            return
        except LakewrightError as error:
            log.warning(
                "the lock was lost during a publication",
                extra=facts(instant=ticket.instant, error=str(error)),
            )
        lease.release()
        try:
            with self._access.loaded() as (view, _):
                seen = {instant.requested for instant, _ in known}
                found = self._rivals(ticket, record, view)
                try:
                    _check_unbroken(ticket, view, _entry_of(view, ticket))
                    fresh = [rival for rival in found if rival[0].requested not in seen]
                    self._check(ticket, metadata, guard, fresh, view)
                except Conflict:
                    self._storage.delete([path])
                    raise
        except Conflict:
            raise
        except LakewrightError as error:
            raise CommitStateUnknown(
                f"The lock was lost while {path!r} of {self._storage.uri} was written, and whether "
                f"that took effect cannot be found out: {error}",
                next_step="Read the timeline before anything else.",
                path=path,
            ) from error

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
        _check_unbroken(ticket, view, entry)
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
            with self._access.loaded() as (view, _):
                self._undo(ticket, view)
        except LakewrightError as error:
            _log_left(ticket, error)

    def _undo(self, ticket: Ticket, view: TimelineView) -> None:
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
            own = record is not None and record.owner.token == ticket.token
            if ticket.planned and not own:
                return  # another one has taken the plan over
            untried = record is not None and record.completion is None
            self._access.recovery(view).undo(entry, own=own and untried)


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
        found = (entry.instant.requested, entry.instant.action.completes_as)
        if found == (ticket.instant, ticket.action.completes_as):
            return entry
    return None


def _check_unbroken(ticket: Ticket, view: TimelineView, entry: Entry | None) -> None:
    """Raise ``Conflict`` where another writer took the write for dead."""
    rolled_back = entry is None or State.INFLIGHT not in entry.files
    if rolled_back or ticket.instant in rollback_targets(view):
        raise Conflict(
            f"The write {ticket.instant} was rolled back by another writer.",
            next_step="Try it again; nothing of it took effect.",
            instant=ticket.instant,
        )


def _newest_effect(view: TimelineView) -> str | None:
    return max((i.completed for i in view.completed() if i.completed), default=None)


def _writes_under_way(view: TimelineView, ticket: Ticket) -> tuple[str, ...]:
    pending = (i for i in view.pending() if i.action.completes_as.writes_data)
    return tuple(i.requested for i in pending if i.requested != ticket.instant)
