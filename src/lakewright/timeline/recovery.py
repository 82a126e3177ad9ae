"""What the next writer does about those before it: failed writes, cut-off rollbacks, leftovers."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.metadata.restore import RestorePlan
from lakewright.format.hudi.metadata.rollback import RollbackPlan
from lakewright.model.errors import Corrupt
from lakewright.model.instant import Action, Instant, State, instant_datetime
from lakewright.model.logs import facts
from lakewright.storage.port import FileStat, Storage
from lakewright.timeline.clock import next_time
from lakewright.timeline.entries import Entry
from lakewright.timeline.heartbeats import (
    FailedWrites,
    Heartbeat,
    Record,
    Tolerance,
    close,
    drop_heartbeats,
    is_given_up,
    list_heartbeats,
    read_record,
)
from lakewright.timeline.leftovers import clear_leftovers
from lakewright.timeline.load import load_timeline
from lakewright.timeline.owner import Owner
from lakewright.timeline.plans import find_write, is_plan
from lakewright.timeline.restore import Restore
from lakewright.timeline.rollback import Rollback, plan_rollback
from lakewright.timeline.store_clock import store_time
from lakewright.timeline.undone import drop_bucket_files
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

_WRITES = (Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT)


def pending_failed(
    view: TimelineView, now: float, options: Mapping[str, str] | None = None
) -> tuple[Instant, ...]:
    """Return the pending writes, rollbacks and restores that nobody works on any more.

    ``now`` is in seconds since the epoch.
    """
    values = {**view.config.properties, **(options or {})}
    beats = list_heartbeats(view.storage)
    judge = _Judge(view, beats, Tolerance.of(values), now, lambda: now)
    return tuple(e.instant for e in view.entries if _may_fail(view, e) and judge.is_failed(e))


def rollback_targets(view: TimelineView) -> Iterator[str]:
    """Stream the instants that unfinished rollbacks are about to undo."""
    for instant in view.pending():
        if instant.action is Action.ROLLBACK:
            plan = view.plan(instant)
            if isinstance(plan, RollbackPlan) and plan.instant is not None:
                yield plan.instant.time


def _may_fail(view: TimelineView, entry: Entry) -> bool:
    """Say whether somebody ought to be working on an entry: a write, a rollback or a restore.

    Plans of compactions and clusterings wait on the timeline for whoever carries them out.
    """
    if entry.instant.is_completed or entry.archived:
        return False
    if entry.planned in (Action.ROLLBACK, Action.RESTORE):
        return True
    return entry.planned in _WRITES and not is_plan(view, entry)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Decides which pending entries are dead.

    ``now`` is the time by our clock, ``store_now`` asks the one by which the store dates
    heartbeats: nobody counts as dead because our own clock is ahead.
    """

    view: TimelineView
    beats: Mapping[str, FileStat]
    tolerance: Tolerance
    now: float
    store_now: Callable[[], float]

    def is_failed(self, entry: Entry) -> bool:
        heard = self.beats.get(entry.instant.requested)
        if heard is None:
            return self.is_deserted(entry)
        record = read_record(self.view.storage, entry.instant.requested)
        if record is not None:
            if not self.has_passed(record.until):
                return False  # its publication may still take effect
            if is_given_up(record):
                return True
        return heard.modified is not None and self.is_silent(heard.modified)

    def has_passed(self, moment: float) -> bool:
        """Say whether a moment lies in the past by both clocks."""
        return moment <= self.now and (not moment or moment <= self.store_now())

    def is_silent(self, heard: float) -> bool:
        """Say whether a writer that was heard of then has been silent for too long.

        A sign of the future is dated by a clock that is ahead of ours: only that one knows.
        """
        end = heard + self.tolerance.silence
        return end <= self.store_now() if heard > self.now else self.has_passed(end)

    def is_deserted(self, entry: Entry) -> bool:
        """Say whether an unfinished entry that has no heartbeat of its own is dead."""
        if entry.instant.is_completed or entry.archived:
            return False
        eager = self.tolerance.policy is FailedWrites.EAGER
        return eager or self.is_silent(self._touched(entry))

    def _touched(self, entry: Entry) -> float:
        """Return when the pending files were written, else the time in their name."""
        state = State.INFLIGHT if State.INFLIGHT in entry.files else State.REQUESTED
        folder = self.view.config.timeline_folder
        stat = self.view.storage.stat(f"{folder}/{entry.files[state]}")
        if stat is not None and stat.modified is not None:
            return stat.modified
        zone = self.view.config.timezone
        return instant_datetime(entry.instant.requested, zone).timestamp()


@dataclass(slots=True)
class Recovery:
    """Repairs under the table's lock; ``view`` is the timeline as it stands then."""

    storage: Storage
    config: TableConfig
    view: TimelineView
    tolerance: Tolerance

    def run(self) -> TimelineView:
        """Finish cut-off rollbacks, roll back failed writes, remove what crashed writers left.

        Returns the timeline after that.
        """
        beats = list_heartbeats(self.storage)
        clock = cache(partial(store_time, self.storage))
        judge = _Judge(self.view, beats, self.tolerance, time.time(), clock)
        if self.tolerance.policy is not FailedWrites.NEVER:
            for entry in self._failed(judge, Action.RESTORE):
                self._restore(entry)
            for entry in self._failed(judge, Action.ROLLBACK):
                self.resume(entry)
            self._drop_savepoints(judge)
            rolling = frozenset(rollback_targets(self.view))
            for entry in self._failed(judge, *_WRITES):
                if entry.instant.requested not in rolling:
                    self.undo(entry)
        self._tidy(judge)
        drop_bucket_files(self.storage, self.view)
        return self.view

    def _drop_savepoints(self, judge: _Judge) -> None:
        """Remove savepoints that were cut off before they were complete: they keep nothing."""
        folder = self.config.timeline_folder
        dead = [
            f"{folder}/{name}"
            for entry in self.view.entries
            if entry.planned is Action.SAVEPOINT and judge.is_deserted(entry)
            for name in entry.files.values()
        ]
        if dead:
            log.info("savepoints that were cut off are removed", extra=facts(files=dead))
            self.storage.delete(dead)
            self._refresh()

    def undo(self, entry: Entry, *, own: bool = False) -> None:
        """Roll back one pending write.

        Nothing on the timeline tells of one that made no file, nor of an ``own`` one: its writer
        takes it back and never tried to publish it. Only blocks in logs of others need a rollback
        then, whose instant they name. An undo that is cut off leaves the write pending until its
        files are gone, and its markers say which those are.
        """
        target = entry.instant.requested
        record = read_record(self.storage, target)
        if record is not None:
            close(self.storage, target, record)
        plan = plan_rollback(self.storage, self.config, entry, announced=record is not None)
        rollback = self._rollback(next_time(self.view, undoing=(target,)), plan, entry)
        shares_logs = any(request.log_blocks for request in plan.requests)
        if record is not None and (not plan.requests or (own and not shares_logs)):
            rollback.erase(entry)
            self._refresh()
            return
        record = Record(Owner.here())
        with Heartbeat(self.storage, rollback.instant, record, self.tolerance):
            rollback.request()
            self._complete(rollback, entry)

    def resume(self, entry: Entry) -> None:
        """Finish a rollback that was cut off.

        One without a readable plan is dropped, and so is one that must not take place: Hudi plans
        a rollback first, refuses then to carry it out, and leaves the plan.
        """
        instant = entry.instant.requested
        plan = self._plan(entry)
        if plan is None or self._must_stay(plan):
            folder = self.config.timeline_folder
            self.storage.delete([f"{folder}/{name}" for name in entry.files.values()])
            drop_heartbeats(self.storage, instant)
            self._refresh()
            return
        target = "" if plan.instant is None else plan.instant.time
        found = find_write(self.view, target)
        self._complete(self._rollback(instant, plan, found), found)

    def _must_stay(self, plan: RollbackPlan) -> bool:
        """Say whether a write that shall be undone is complete, and saved or built upon.

        A rollback takes a write off the completed ones before it touches anything else: as long
        as it is among them, nothing is undone.
        """
        target = "" if plan.instant is None else plan.instant.time
        done = next((i for i in self.view.data() if i.requested == target), None)
        if done is None:
            return False
        saved = self.view.by_action(Action.SAVEPOINT)
        return any(i.requested == target and i.is_completed for i in saved) or any(
            (i.completed or "") > (done.completed or "") for i in self.view.data()
        )

    def _restore(self, entry: Entry) -> None:
        """Finish a restore that was cut off; one without a readable plan undid nothing."""
        plan = self._restore_plan(entry)
        if plan is None:
            folder = self.config.timeline_folder
            self.storage.delete([f"{folder}/{name}" for name in entry.files.values()])
        else:
            Restore(self.storage, self.config, entry.instant.requested, plan).run(self.view)
        self._refresh()

    def _restore_plan(self, entry: Entry) -> RestorePlan | None:
        try:
            plan = self.view.plan(entry.instant)
        except Corrupt as error:
            log.warning("a restore has no readable plan", extra=facts(error=str(error)))
            return None
        return plan if isinstance(plan, RestorePlan) else None

    def _rollback(self, instant: str, plan: RollbackPlan, entry: Entry | None) -> Rollback:
        pending = entry is not None and not entry.instant.is_completed
        keeps_plan = pending and entry is not None and is_plan(self.view, entry)
        return Rollback(self.storage, self.config, instant, plan, keeps_plan)

    def _plan(self, entry: Entry) -> RollbackPlan | None:
        try:
            plan = self.view.plan(entry.instant)
        except Corrupt as error:
            log.warning("a rollback has no readable plan", extra=facts(error=str(error)))
            return None
        return plan if isinstance(plan, RollbackPlan) and plan.instant is not None else None

    def _complete(self, rollback: Rollback, entry: Entry | None) -> None:
        gone = () if entry is None else (entry.instant.requested,)
        rollback.run(entry, next_time(self.view, rollback.instant, undoing=gone))
        self._refresh()

    def _refresh(self) -> None:
        self.view = load_timeline(self.storage, self.config)

    def _failed(self, judge: _Judge, *actions: Action) -> list[Entry]:
        return [
            entry
            for entry in self.view.entries
            if entry.planned in actions and _may_fail(self.view, entry) and judge.is_failed(entry)
        ]

    def _tidy(self, judge: _Judge) -> None:
        """Remove heartbeat and markers of writes that are settled and whose writer is gone."""
        pending = {i.requested for i in self.view.pending()}
        done = {i.requested for i in self.view.completed()}
        for instant in judge.beats.keys() - pending:
            record = read_record(self.storage, instant)
            if record is None:
                continue
            if instant not in done and not judge.has_passed(record.until):
                continue  # its publication may still take effect
            if is_given_up(record) or judge.is_silent(judge.beats[instant].modified or 0.0):
                clear_leftovers(self.storage, self.view, instant)
