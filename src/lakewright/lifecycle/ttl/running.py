"""Partition TTL as a service: what has expired is dropped, and plans let go what they hold."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from lakewright.actions.services.duties import Done, Duty
from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.letting_go import BY_ITSELF, let_go
from lakewright.lifecycle.plans.apply import apply_plan, check_plan
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import Applied
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.lifecycle.ttl.options import DAYS
from lakewright.lifecycle.ttl.planning import plan_ttl, ttl_kind
from lakewright.lifecycle.ttl.policies import KEYS
from lakewright.model.instant import Action, Instant, State
from lakewright.model.services import PartitionServed, Service
from lakewright.model.shown import Shown
from lakewright.timeline.view import TimelineView


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
