"""Plans of table services on the timeline: which entries are such, and who works on them."""

import time

from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.model.errors import Conflict, InstantNotFound
from lakewright.model.instant import Action, Instant, State
from lakewright.timeline.entries import Entry
from lakewright.timeline.heartbeats import Tolerance, is_given_up, list_heartbeats, read_record
from lakewright.timeline.store_clock import store_time
from lakewright.timeline.view import TimelineView

#: Actions that are planned apart from being carried out, and complete as writes.
SERVICES = (Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING)


def is_plan(view: TimelineView, entry: Entry) -> bool:
    """Say whether an entry is a plan that waits on the timeline for whoever carries it out.

    Layout 1 requests a clustering as a replace commit; its plan tells it from an overwrite.
    """
    if entry.planned in SERVICES:
        return True
    if entry.planned is not Action.REPLACECOMMIT or view.config.layout != 1:
        return False
    plan = view.plan(entry.instant)
    return isinstance(plan, ReplacePlan) and plan.is_service


def names_groups(view: TimelineView, entry: Entry) -> bool:
    """Say whether an entry may name file groups that it is going to rewrite.

    Plans of services do, and replace commits that move rows.
    """
    return entry.planned is Action.REPLACECOMMIT or is_plan(view, entry)


def find_write(view: TimelineView, requested: str) -> Entry | None:
    """Return the entry of a write or a service of this time, whatever its state."""
    found = (e for e in view.entries if e.instant.requested == requested and not e.archived)
    return next((e for e in found if e.instant.action.completes_as.writes_data), None)


def planned_entry(view: TimelineView, plan: Instant) -> Entry:
    """Return the entry of a plan; ``InstantNotFound`` or ``Conflict`` where it waits no more."""
    for entry in view.entries:
        found = entry.instant
        if (found.requested, found.action.completes_as) != (
            plan.requested,
            plan.action.completes_as,
        ):
            continue
        if found.is_completed:
            raise Conflict(
                f"The plan {plan.requested} has been carried out, as {found}.",
                next_step="There is nothing left to do; open the table again.",
                instant=str(found),
            )
        if is_plan(view, entry):
            return entry
    raise InstantNotFound(
        f"The timeline has no plan {plan.requested} of a {plan.action}.",
        next_step="It may have been rolled back; look at the timeline, or schedule anew.",
        instant=plan.requested,
    )


def check_deserted(view: TimelineView, entry: Entry, tolerance: Tolerance) -> None:
    """Raise ``Conflict`` while somebody may be at work on a plan.

    Services of Hudi have no heartbeat: then the age of the inflight file counts.
    """
    instant = entry.instant.requested
    now = time.time()
    beat = list_heartbeats(view.storage).get(instant)
    heard = None if beat is None else beat.modified
    record = None if beat is None else read_record(view.storage, instant)
    if record is not None:
        if record.until <= now and is_given_up(record):
            return
        heard = max(heard or 0.0, record.until)
    if beat is None:
        file = view.storage.stat(f"{view.config.timeline_folder}/{entry.files[State.INFLIGHT]}")
        heard = None if file is None else file.modified
    # A sign of the future is dated by a clock that is ahead of ours: only that one knows.
    over = heard is None or heard > now or now - heard > tolerance.silence
    if heard is None or (over and store_time(view.storage) - heard > tolerance.silence):
        return
    raise Conflict(
        f"Somebody is carrying out the plan {instant} of a {entry.planned}: last heard of "
        f"{max(now - heard, 0):.0f} s ago.",
        next_step=f"Wait for it; after {tolerance.silence:.0f} s of silence it may be taken over.",
        instant=instant,
    )
