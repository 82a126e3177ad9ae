"""Compaction: base files and their logs become new base files.

A plan is made from slices listed outside the table's lock and brought up to date under it. It is
carried out slice by slice, in tasks of any engine, by whoever finds it on the timeline.
"""

from collections.abc import Sequence

from lakewright.actions.services.compaction_options import PlanSettings
from lakewright.actions.services.compaction_planning import Planner, check_compactable, scheduled
from lakewright.actions.services.compaction_scope import writes_under_way
from lakewright.actions.services.merging import carry_out
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.repairing import repaired
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.settings import check_settings
from lakewright.actions.services.taking import first_free, taken
from lakewright.actions.tasks.compact import compact_group
from lakewright.model.instant import Action, Instant
from lakewright.model.services import Service, ServiceResult
from lakewright.timeline.clock import check_wanted_plan
from lakewright.timeline.view import TimelineView

_OPERATION = "COMPACT"


def schedule_compaction(
    work: Servicing,
    *,
    partitions: Sequence[str] | None = None,
    instant: str | None = None,
    dry_run: bool = False,
) -> ServicePlan | None:
    """Put a compaction on the timeline; None where no slice has logs, or none may be taken.

    Whether one is due is not asked: see ``compaction_due``. ``partitions`` are the only ones
    looked at, ``instant`` is a time that the caller wants. With ``dry_run`` the plan is made and
    not put anywhere. In a version 6 table none is made while writes are under way: their logs
    would lie below the new base files.
    """
    check_compactable(work)
    check_settings(Service.COMPACTION, work.options)
    if not dry_run:
        # A dead write that vanishes from under a plan would look like a writer at work.
        work = repaired(work, writes=True)
    planner = Planner(work, Service.COMPACTION, PlanSettings.of(work.options), partitions)
    if dry_run:
        if instant is not None:
            check_wanted_plan(instant, work.state.timeline)
        found = planner.plan()
        return None if found is None else planner.value(found, None)
    return scheduled(work, Action.COMPACTION, planner, instant, _must_wait)


def compact(work: Servicing, plan: Instant | None = None) -> ServiceResult:
    """Carry out the given compaction, else the oldest one that waits, else a new one.

    Plans of others, Hudi's among them, are carried out too, and those taken over whose executor
    is gone. Plans that somebody works on are left to them.
    """
    check_compactable(work)
    check_settings(Service.COMPACTION, work.options, planning=False)
    work = repaired(work)
    with first_free(work, Action.COMPACTION, plan, _OPERATION) as found:
        if found is not None:
            return carry_out(work, found, Service.COMPACTION, compact_group)
    made = schedule_compaction(work)
    if made is None or made.instant is None:
        return ServiceResult(Service.COMPACTION, None)
    with taken(work, made.instant, _OPERATION) as new:
        return carry_out(work, new, Service.COMPACTION, compact_group)


def _must_wait(view: TimelineView) -> str | None:
    """Say why no plan is made now, None where one may be."""
    writes = writes_under_way(view) if view.config.layout == 1 else []
    return f"writes are under way in a version 6 table: {', '.join(writes)}" if writes else None
