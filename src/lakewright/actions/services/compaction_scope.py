"""Which partitions can have logs at all: those written since the last plan that knew all others.

A table has a hundred thousand partitions of which a few are written a day. A plan of ours says in
its extra metadata that every partition which had logs then is in it, or among those that it names
as missing; the next plan looks at these and at what was written since, and at nothing else.
"""

from collections.abc import Mapping

from lakewright.actions.services.slices import partitions_of
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.rollback import RollbackMetadata
from lakewright.model.instant import Action
from lakewright.timeline.entries import Entry
from lakewright.timeline.plans import is_plan
from lakewright.timeline.view import TimelineView

#: Says that a plan knew all partitions; the value lists the writes that were under way.
_COMPLETE = "lakewright.compaction.writes-under-way"


def completeness(view: TimelineView) -> Mapping[str, str]:
    """Return what a plan that knows all partitions with logs says so by."""
    return {_COMPLETE: ",".join(writes_under_way(view))}


def writes_under_way(view: TimelineView) -> list[str]:
    """Return the instants of writes that have begun and not ended; plans are none."""
    return [
        e.instant.requested
        for e in view.entries
        if not e.instant.is_completed
        and e.instant.action.completes_as.writes_data
        and not is_plan(view, e)
    ]


def partitions_with_logs(view: TimelineView) -> frozenset[str] | None:
    """Return the partitions that may have slices with logs; None where no plan tells.

    A plan tells nothing once writes that it does not know of may have been archived, or writes
    before it were taken back: groups that they replaced are there again, with their logs.
    """
    for entry in reversed(view.entries):
        plan = view.plan(entry.instant) if entry.planned is Action.COMPACTION else None
        if isinstance(plan, CompactionPlan) and _COMPLETE in plan.extra:
            return _since(view, entry, plan)
    return None


def _since(view: TimelineView, entry: Entry, plan: CompactionPlan) -> frozenset[str] | None:
    at = entry.instant.requested
    if view.start is None or view.start > at:
        return None
    if _goes_back_before(view, at):
        return None
    pending = {text for text in plan.extra[_COMPLETE].split(",") if text}
    if not pending <= {i.requested for i in view.instants}:
        return None
    later = [
        e.instant
        for e in view.entries
        if e.instant.is_completed
        and e.instant.action.writes_data
        and e.planned is not Action.COMPACTION  # which leaves no logs
        and ((e.instant.completed or "") > at or e.instant.requested in pending)
    ]
    return partitions_of(view, later) | frozenset(plan.missing_partitions)


def _goes_back_before(view: TimelineView, at: str) -> bool:
    """Whether writes from before a time were taken back after it, or may have been."""
    for instant in view.by_action(Action.RESTORE, Action.ROLLBACK):
        if instant.requested < at:
            continue
        body = view.metadata(instant) if instant.is_completed else None
        if not isinstance(body, RollbackMetadata) or any(time < at for time in body.commits):
            return True
    return False
