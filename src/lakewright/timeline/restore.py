"""Going back to an instant: everything that took effect after it is undone, newest first.

The plan is on the timeline before anything is undone, and names the instants. Whoever finds it
cut off goes on: an instant that is undone already is passed over. In between the table is what it
was at an earlier instant, because each one leaves the timeline before its files go.
"""

import logging
import time
from dataclasses import dataclass, field

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.instant_names import instant_file_name
from lakewright.format.hudi.metadata.restore import (
    RestoreMetadata,
    RestorePlan,
    encode_restore,
    encode_restore_plan,
)
from lakewright.format.hudi.metadata.rollback import RollbackMetadata, RollbackPlan
from lakewright.model.errors import Conflict
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.timeline.clock import next_time
from lakewright.timeline.entries import Entry
from lakewright.timeline.heartbeats import drop_heartbeats
from lakewright.timeline.load import load_timeline
from lakewright.timeline.markers import Markers
from lakewright.timeline.plans import find_write
from lakewright.timeline.rollback import Rollback, plan_rollback, plan_undo
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Restore:
    """One restore under way; the caller holds the table's lock."""

    storage: Storage
    config: TableConfig
    instant: str
    plan: RestorePlan
    begun: float = field(default_factory=time.monotonic)

    def request(self) -> None:
        """Write the plan down."""
        if not self.storage.create(self._file(State.REQUESTED), encode_restore_plan(self.plan)):
            raise Conflict(
                f"Another writer has taken the instant {self.instant}.",
                next_step="Try again; use the same lock in all writers.",
                instant=self.instant,
            )

    def run(self, view: TimelineView) -> Instant:
        """Undo what the plan names and is still there, and complete."""
        self.storage.create(self._file(State.INFLIGHT), b"")
        undone: dict[str, tuple[RollbackMetadata | None, ...]] = {}
        for info in self.plan.instants:
            entry = find_write(view, info.time)
            undone[info.time] = () if entry is None else (self._undo(view, entry),)
        metadata = RestoreMetadata(
            start=self.instant,
            millis=int((time.monotonic() - self.begun) * 1000),
            instants=tuple(info.time for info in self.plan.instants),
            rollbacks=undone,
            infos=self.plan.instants,
        )
        after = load_timeline(self.storage, self.config)
        completed = next_time(after, self.instant) if self.config.layout == 2 else self.instant
        self.storage.create(self._file(State.COMPLETED, completed), encode_restore(metadata))
        drop_heartbeats(self.storage, self.instant)
        log.info("the table was restored", extra=facts(by=self.instant, undone=len(undone)))
        return Instant(self.instant, Action.RESTORE, State.COMPLETED, completed)

    def _undo(self, view: TimelineView, entry: Entry) -> RollbackMetadata:
        target = entry.instant.requested
        rollback = Rollback(self.storage, self.config, self.instant, self._planned(view, entry))
        done = rollback.undo(entry)
        Markers(self.storage, target).clear()
        drop_heartbeats(self.storage, target)
        return done

    def _planned(self, view: TimelineView, entry: Entry) -> RollbackPlan:
        if entry.instant.is_completed:
            body = view.commit_metadata(entry.instant)
            return plan_undo(self.storage, self.config, entry, body)
        # A plan that nobody has begun to carry out has made no file.
        begun = State.INFLIGHT in entry.files
        return plan_rollback(self.storage, self.config, entry, announced=not begun)

    def _file(self, state: State, completed: str | None = None) -> str:
        instant = Instant(self.instant, Action.RESTORE, state, completed)
        return f"{self.config.timeline_folder}/{instant_file_name(instant, self.config.layout)}"
