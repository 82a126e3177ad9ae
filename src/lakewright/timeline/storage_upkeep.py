"""The upkeep port on storage: Hudi's timeline files under the table's lock."""

import logging
from collections.abc import Callable, Mapping

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.instant_names import instant_file_name
from lakewright.format.hudi.metadata.compaction import decode_compaction_plan
from lakewright.format.hudi.metadata.replace_plan import decode_replace_plan
from lakewright.format.hudi.metadata.rollback import RollbackPlan
from lakewright.model.errors import Conflict, InstantNotFound
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.timeline.access import TimelineAccess
from lakewright.timeline.archive import (
    archive_instants,
    forget_archived,
    is_cut_off,
    read_leaving,
)
from lakewright.timeline.clock import check_wanted, check_wanted_plan, next_time
from lakewright.timeline.conflicts import Touched
from lakewright.timeline.entries import Entry
from lakewright.timeline.heartbeats import Heartbeat, Record
from lakewright.timeline.load import load_timeline
from lakewright.timeline.locks.port import TableLock
from lakewright.timeline.owner import Owner
from lakewright.timeline.plans import SERVICES, check_deserted, find_write, is_plan, names_groups
from lakewright.timeline.publication import Patience, create_once
from lakewright.timeline.restore import Restore
from lakewright.timeline.rollback import Rollback, plan_rollback, plan_undo
from lakewright.timeline.upkeep import CheckUndo, ChooseArchived, MakePlan, MakeRestore
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

_DECODE = {
    Action.COMPACTION: decode_compaction_plan,
    Action.LOGCOMPACTION: decode_compaction_plan,
    Action.CLUSTERING: decode_replace_plan,
    Action.REPLACECOMMIT: decode_replace_plan,
}


def _completed(view: TimelineView, instant: Instant) -> Instant | None:
    """Return the instant as it was completed, None where it was not yet."""
    same = (i for i in view.by_action(instant.action) if i.requested == instant.requested)
    return next((found for found in same if found.is_completed), None)


class StorageUpkeep:
    """Schedules and completes services of the table in ``storage``; see ``Upkeep``."""

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
        self._patience = Patience.with_store(storage)

    def schedule(
        self, action: Action, make: MakePlan, *, instant: str | None = None
    ) -> Instant | None:
        """Put a plan on the timeline: see ``Upkeep.schedule``."""
        if action is Action.CLUSTERING and self._config.layout == 1:
            action = Action.REPLACECOMMIT
        with self._access.repaired() as (view, lease):
            check = check_wanted_plan if action in SERVICES else check_wanted
            taken = next_time(view) if instant is None else check(instant, view)
            body = make(view, taken)
            if body is None:
                return None
            self._check_disjoint(view, action, body)
            planned = Instant(taken, action, State.REQUESTED)
            lease.secure(self._patience.request)
            self._create(planned, body)
        log.info("service planned", extra=facts(instant=taken, action=action))
        return planned

    def start(self, instant: Instant) -> None:
        """Say that the work on an instant has begun: see ``Upkeep.start``."""
        self._storage.create(self._path(instant, State.INFLIGHT), b"")

    def complete(
        self, instant: Instant, body: bytes, check: Callable[[TimelineView], None] | None = None
    ) -> Instant:
        """Complete an instant that is no write: see ``Upkeep.complete``."""
        with self._access.loaded() as (view, lease):
            found = _completed(view, instant)
            if found is not None:
                return found
            if check is not None:
                check(view)
            lease.secure(self._patience.request)
            done = self._completion(view, instant)
            self._create(done, body)
        log.info("service completed", extra=facts(instant=str(done)))
        return done

    def make_savepoint(
        self, requested: str, body: bytes, check: Callable[[TimelineView], None]
    ) -> Instant:
        """Put a savepoint on the timeline: see ``Upkeep.make_savepoint``."""
        begun = Instant(requested, Action.SAVEPOINT, State.INFLIGHT)
        with self._access.repaired() as (view, lease):
            found = _completed(view, begun)
            if found is not None:
                return found
            check(view)
            lease.secure(self._patience.request)
            # Both under the lock: whoever holds it next knows a lone first one for a dead one.
            self.start(begun)
            done = self._completion(view, begun)
            self._create(done, body)
        log.info("service completed", extra=facts(instant=str(done)))
        return done

    def _completion(self, view: TimelineView, instant: Instant) -> Instant:
        layout_2 = self._config.layout == 2
        completed = next_time(view, instant.requested) if layout_2 else instant.requested
        return Instant(instant.requested, instant.action, State.COMPLETED, completed)

    def repair(self) -> None:
        """Finish or take back what is dead: see ``Upkeep.repair``."""
        with self._access.repaired():
            pass

    def roll_back(self, requested: str, check: CheckUndo) -> Instant:
        """Take back a write or a plan: see ``Upkeep.roll_back``."""
        with self._access.repaired() as (view, lease):
            entry = find_write(view, requested)
            if entry is None:
                raise InstantNotFound(
                    f"The timeline has no write {requested}.",
                    next_step="Archived writes cannot be taken back; see the timeline.",
                    instant=requested,
                )
            plan = self._undoing(view, entry)
            check(view, entry.instant)
            gone = (requested,)
            taken = next_time(view, undoing=gone)
            rollback = Rollback(self._storage, self._config, taken, plan)
            with self._beating(rollback.instant):
                lease.secure(self._patience.request)
                rollback.request()
                completed = next_time(view, rollback.instant, undoing=gone)
                rollback.run(entry, completed)
        done = completed if self._config.layout == 2 else rollback.instant
        return Instant(rollback.instant, Action.ROLLBACK, State.COMPLETED, done)

    def _undoing(self, view: TimelineView, entry: Entry) -> RollbackPlan:
        if entry.instant.is_completed:
            metadata = view.commit_metadata(entry.instant)
            return plan_undo(self._storage, self._config, entry, metadata)
        if not is_plan(view, entry):
            raise Conflict(
                f"The write {entry.instant.requested} is under way.",
                next_step="Stop its writer; once that is dead, the next write takes it back.",
                instant=str(entry.instant),
            )
        begun = State.INFLIGHT in entry.files
        if begun:
            check_deserted(view, entry, self._access.tolerance)
        return plan_rollback(self._storage, self._config, entry, announced=not begun)

    def restore(self, make: MakeRestore) -> Instant:
        """Take back several: see ``Upkeep.restore``."""
        with self._access.repaired() as (view, lease):
            plan = make(view)
            taken = next_time(view, undoing=[info.time for info in plan.instants])
            restore = Restore(self._storage, self._config, taken, plan)
            for info in restore.plan.instants:
                entry = find_write(view, info.time)
                if entry is not None and set(entry.files) == {State.REQUESTED, State.INFLIGHT}:
                    check_deserted(view, entry, self._access.tolerance)
            with self._beating(restore.instant):
                lease.secure(self._patience.request)
                restore.request()
                return restore.run(view)

    def _beating(self, instant: str) -> Heartbeat:
        return Heartbeat(self._storage, instant, Record(Owner.here()), self._access.tolerance)

    def archive(self, choose: ChooseArchived) -> tuple[Instant, ...]:
        """Move instants into the history: see ``Upkeep.archive``."""
        done: list[Instant] = []
        while True:
            view = load_timeline(self._storage, self._config)
            if not done and is_cut_off(view):
                with self._access.loaded() as (view, _):
                    forget_archived(self._storage, view)
                view = load_timeline(self._storage, self._config)
            leaving = read_leaving(view, choose(view))
            if not leaving:
                return tuple(done)
            with self._access.repaired() as (view, lease):
                chosen = frozenset(choose(view))
                going = [one for one in leaving if one.instant in chosen]
                lease.secure(self._patience.request)
                archive_instants(self._storage, self._config, going, self._access.options)
            if not going:
                return tuple(done)
            done.extend(one.instant for one in going)

    def drop_savepoint(self, requested: str) -> None:
        """Remove a savepoint: see ``Upkeep.drop_savepoint``."""
        folder = self._config.timeline_folder
        with self._access.loaded() as (view, _):
            for entry in view.entries:
                found = entry.instant
                if (found.requested, found.action) == (requested, Action.SAVEPOINT):
                    # The completed file goes last: whoever is cut off finds it, and removes it.
                    states = (s for s in (State.INFLIGHT, State.COMPLETED) if s in entry.files)
                    for state in states:
                        self._storage.delete([f"{folder}/{entry.files[state]}"])
                    return
        raise InstantNotFound(
            f"There is no savepoint {requested}.",
            next_step="See the savepoints of the table for those that are.",
            instant=requested,
        )

    def _create(self, instant: Instant, body: bytes) -> None:
        path = self._path(instant, instant.state)
        if not create_once(self._storage, path, body):
            raise Conflict(
                f"{path} is there already, with another content.",
                next_step="Open the table again; use the same lock in all writers.",
                instant=str(instant),
            )

    def _path(self, instant: Instant, state: State) -> str:
        at = Instant(instant.requested, instant.action, state, instant.completed)
        return f"{self._config.timeline_folder}/{instant_file_name(at, self._config.layout)}"

    def _check_disjoint(self, view: TimelineView, action: Action, body: bytes) -> None:
        """Refuse a plan on a file group that another plan is going to rewrite."""
        decode = _DECODE.get(action)
        if decode is None:
            return
        touched = Touched(buckets=False, layout=self._config.layout)
        ours = touched.planned(decode(body, f"the plan of a {action}"))
        for entry in view.entries:
            if entry.instant.is_completed or not names_groups(view, entry):
                continue
            both = ours & touched.planned(view.plan(entry.instant))
            if both:
                partition, group = min(both)
                raise Conflict(
                    f"The {entry.planned} {entry.instant.requested} is planned for {len(both)} of "
                    f"the same file groups, the first is {group} of partition {partition!r}.",
                    next_step="Carry that plan out first, or schedule without those groups.",
                    instant=str(entry.instant),
                )
