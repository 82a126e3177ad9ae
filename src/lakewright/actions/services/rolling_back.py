"""Taking back the newest write, or a plan that shall not be carried out."""

import logging

from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.undoable import check_files, check_quiet, check_unsaved
from lakewright.format.hudi.file_names import log_file
from lakewright.model.errors import Conflict, Unsupported
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.timeline.conflicts import Touched
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


def rollback(work: Servicing, instant: str) -> Instant:
    """Take back the write or the plan of this instant, and return the rollback.

    A completed write must be the newest one: rows that others wrote since are never lost.
    ``HistoryGone`` where the files that it took the place of were cleaned away.
    """

    def check(view: TimelineView, target: Instant) -> None:
        if not target.is_completed:
            _check_plan(view, target)
            return
        check_quiet(view)
        check_unsaved(view, [target])
        _check_newest(view, target)
        _check_unplanned(view, target)
        check_files(view, [target])

    work.progress.stage("rolling back")
    done = work.upkeep.roll_back(instant, check)
    log.info("rolled back", extra=facts(instant=instant, by=done.requested))
    return done


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
