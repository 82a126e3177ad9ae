"""Taking back the newest write, or a plan that shall not be carried out."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from lakewright.actions.services.repairing import cut_off_undoings, repaired
from lakewright.actions.services.restoring import UndoneInstant, describe_undone
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.undoable import (
    check_files,
    check_not_last,
    check_quiet,
    check_unsaved,
)
from lakewright.format.hudi.file_names import log_file
from lakewright.format.hudi.metadata.rollback import RollbackPlan
from lakewright.model.errors import Conflict, Corrupt, InstantNotFound, Unsupported
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.shown import SHOWN, Shown
from lakewright.storage.paths import split
from lakewright.timeline.conflicts import Touched
from lakewright.timeline.plans import find_write
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RollbackPreview(Shown):
    """What a rollback would take back."""

    table: str
    undone: UndoneInstant

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text: there is one."""
        gone = self.undone
        yield (
            f"rollback of {self.table}: {gone.instant.requested} {gone.operation} is undone, "
            f"{gone.files} files of {gone.bytes} bytes deleted"
        )

    def to_json(self) -> str:
        """Return it for programs."""
        gone = self.undone
        value = {
            "table": self.table,
            "instant": gone.instant.requested,
            "operation": gone.operation,
            "files": gone.files,
            "bytes": gone.bytes,
        }
        return json.dumps(value, ensure_ascii=False)


def plan_rollback(work: Servicing, instant: str) -> RollbackPreview:
    """Say what ``rollback`` would take back; nothing is written. It raises where that would.

    Whether somebody is at work on a plan is asked when it is rolled back.
    """
    view = work.state.timeline
    entry = find_write(view, instant)
    if entry is None:
        raise InstantNotFound(
            f"The timeline has no write {instant}.",
            next_step="Archived writes cannot be taken back; see the timeline.",
            instant=instant,
        )
    _check(view, entry.instant)
    return RollbackPreview(work.name, describe_undone(view, entry.instant))


def rollback(work: Servicing, instant: str) -> Instant:
    """Take back the write or the plan of this instant, and return the rollback.

    A completed write must be the newest one: rows that others wrote since are never lost.
    ``HistoryGone`` where the files that it took the place of were cleaned away. A rollback of it
    that was cut off is finished.
    """
    work.progress.stage("rolling back")
    begun = {i.requested for i in cut_off_undoings(work) if _undoes(work, i, instant)}
    if begun:
        for found in repaired(work).state.timeline.by_action(Action.ROLLBACK):
            if found.requested in begun and found.is_completed:
                return found
    done = work.upkeep.roll_back(instant, _check)
    log.info("rolled back", extra=facts(instant=instant, by=done.requested))
    return done


def _undoes(work: Servicing, undoing: Instant, target: str) -> bool:
    """Say whether an unfinished rollback is one of this instant; one without a plan is of none."""
    try:
        plan = work.state.timeline.plan(undoing)
    except Corrupt:
        return False
    return (
        isinstance(plan, RollbackPlan) and plan.instant is not None and plan.instant.time == target
    )


def _check(view: TimelineView, target: Instant) -> None:
    if not target.is_completed:
        _check_plan(view, target)
        return
    check_quiet(view)
    check_unsaved(view, [target])
    _check_newest(view, target)
    _check_unplanned(view, target)
    check_not_last(view, target)
    check_files(view, [target])


def _check_newest(view: TimelineView, target: Instant) -> None:
    later = [i for i in view.data() if (i.completed or "") > (target.completed or "")]
    if later:
        newest = max(later, key=lambda i: i.completed or "")
        raise Conflict(
            f"{len(later)} writes took effect after {target.requested}, the newest is "
            f"{newest.requested}.",
            next_step=f"Roll back {newest.requested} first, or restore the table to an earlier "
            "instant.",
            instant=target.requested,
            newest=newest.requested,
        )


def _check_unplanned(view: TimelineView, target: Instant) -> None:
    """Refuse where an unfinished plan reads what the target wrote."""
    touched = Touched(buckets=False, layout=view.config.layout)
    ours = touched.by(view.commit_metadata(target))
    for pending in view.pending():
        if pending.action.completes_as.writes_data and ours & touched.planned(view.plan(pending)):
            raise Conflict(
                f"The {pending.action} {pending.requested} is planned on files of "
                f"{target.requested}.",
                next_step=f"Carry it out, or roll back {pending.requested} first.",
                instant=pending.requested,
            )


def _check_plan(view: TimelineView, target: Instant) -> None:
    """Refuse to drop a compaction after which logs are named already."""
    if view.config.layout == 2 or target.action is not Action.COMPACTION:
        return
    touched = Touched(buckets=False, layout=1)
    for partition in sorted({partition for partition, _ in touched.planned(view.plan(target))}):
        for stat in view.storage.list(partition, stats=False):
            file = log_file(partition, split(stat.path)[1])
            if file is not None and file.instant == target.requested:
                raise Unsupported(
                    f"{stat.path} was written on top of the planned compaction {target.requested}.",
                    next_step="Carry the compaction out.",
                    instant=target.requested,
                )
