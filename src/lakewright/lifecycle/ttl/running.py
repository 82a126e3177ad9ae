"""Partition TTL as a service: what has expired is dropped, and plans let go what they hold."""

import datetime as dt
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from lakewright.actions.services.duties import Done, Duty
from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.drops.holding import release_ended
from lakewright.lifecycle.plans.apply import apply_plan, check_plan, purge_overdue
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import Applied, PlanState
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.lifecycle.ttl.options import DAYS
from lakewright.lifecycle.ttl.planning import plan_ttl, ttl_kind
from lakewright.lifecycle.ttl.policies import KEYS
from lakewright.model.errors import LakewrightError
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.model.services import PartitionServed, Service
from lakewright.model.shown import Shown
from lakewright.table.renamed_logs import forget_renames, other_names
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: Who is said to have made the plans of a service.
BY_ITSELF = "services"


@dataclass(frozen=True, slots=True)
class TtlRun:
    """A plan, and what came of applying it; None where nothing had expired.

    ``notes`` tell what could not be let go of afterwards that plans hold beyond their time, and
    why: it stays, and the next run tries again.
    """

    plan: Plan
    applied: Applied | None
    notes: tuple[str, ...] = ()


def run_ttl(
    work: Servicing, *, now: dt.datetime | None = None, by: str = "", strict: bool = False
) -> TtlRun:
    """Plan, and apply the plan at once; a plan without items is not kept.

    ``strict`` refuses to drop anything where something that has expired would be skipped.
    """
    plan = plan_ttl(work, now=now, by=by)
    check_plan(work, ttl_kind(), plan, strict=strict)
    if plan.empty:
        return TtlRun(plan, None)
    PlanStore(work.state.storage).save(plan)
    return TtlRun(plan, apply_plan(work, ttl_kind(), plan.id, strict=strict, by=by))


def let_go(work: Servicing, now: dt.datetime | None = None) -> tuple[str, ...]:
    """Let go of what plans hold beyond their time: savepoints, pins, quarantine, old plans.

    It is done after what counts, so nothing is raised: what failed is logged, and returned.
    """
    clock = now or dt.datetime.now(dt.UTC)
    failed = []
    for step in (_release, _purge, _expire, _forget_names):
        try:
            step(work, clock)
        except LakewrightError as error:
            log.warning("plans could not be looked after", extra=facts(why=str(error)))
            failed.append(str(error))
    return tuple(failed)


def _release(work: Servicing, now: dt.datetime) -> None:
    for ended in release_ended(work, now):
        log.info("what held files for an undo has gone", extra=facts(plan=ended))


def _purge(work: Servicing, now: dt.datetime) -> None:
    for purged in purge_overdue(work, now, by=BY_ITSELF):
        log.info("files in quarantine are purged", extra=facts(plan=purged.plan))


def _expire(work: Servicing, now: dt.datetime) -> None:
    for old in PlanStore(work.state.storage).expire(work.options, now):
        log.info("an old plan is forgotten", extra=facts(plan=old))


def _forget_names(work: Servicing, now: dt.datetime) -> None:
    """Forget what logs were called before, once nothing that was dropped can come back."""
    storage = work.state.storage
    store = PlanStore(storage)
    ended = (PlanState.PLANNED, PlanState.UNDONE)
    if other_names(storage) and all(store.standing(id).state in ended for id in store.ids()):
        forget_renames(storage)


def _due(view: TimelineView, options: Mapping[str, str]) -> str | None:
    if not view.data():
        return None
    if any(key in options for key in KEYS):
        return "the table has TTL policies"
    if DAYS.read(options) > 0:
        return f"{DAYS.key} is set"
    return "plans are looked after"


def _run(work: Servicing, plan: Instant | None) -> Done:
    assert plan is None
    ran = run_ttl(work, by=BY_ITSELF)
    let_go(work)
    applied = ran.applied
    if applied is None or applied.instant is None:
        return Done(None, "", PartitionServed())
    done = frozenset(applied.done)
    gone = [item for item in ran.plan.items if item.target in done]
    counts = PartitionServed(
        files_deleted=sum(item.files for item in gone),
        bytes_deleted=sum(item.bytes for item in gone),
    )
    instant = Instant(applied.instant, Action.REPLACECOMMIT, State.COMPLETED)
    return Done(instant, next(applied.lines(0)), counts)


def _preview(work: Servicing) -> Shown | None:
    plan = plan_ttl(work, by=BY_ITSELF)
    return None if plan.empty else plan


#: Not planned apart: what has expired now may have been written to by then.
DUTY = Duty(Service.TTL, _due, _run, _preview)
