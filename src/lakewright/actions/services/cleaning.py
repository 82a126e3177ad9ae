"""Cleaning: deleting files that no reading needs any more, by Hudi's policies.

What goes is worked out before the table's lock is taken, put on the timeline as a plan under it,
and deleted without it. A plan that was cut off is finished by the next cleaning, whoever's it is.
"""

import logging
import time
from collections.abc import Mapping

from lakewright.actions.services.clean_draft import Draft, draft_cleaning
from lakewright.actions.services.clean_options import TRIGGER, CleanSettings
from lakewright.actions.services.clean_running import carry_out
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.repairing import repaired
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.settings import check_settings
from lakewright.actions.write.admission import check_config
from lakewright.format.hudi.metadata.clean import CleanPlan, encode_clean_plan
from lakewright.model.errors import Corrupt
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.services import PartitionServed, Service, ServiceResult
from lakewright.table.horizon import last_cleaning
from lakewright.table.pins import load_pins
from lakewright.table.state import TableState
from lakewright.timeline.clock import check_wanted
from lakewright.timeline.store_clock import earlier_time
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: How often a plan is drafted anew because the table changed under it, before the lock is held.
_DRAFTS = 3
_LOOKED_AT = (Action.CLEAN, Action.SAVEPOINT, Action.RESTORE, Action.ROLLBACK)


class _Outdated(Exception):
    """The timeline changed in a way that a draft does not know."""


def cleaning_due(timeline: TimelineView, options: Mapping[str, str]) -> str | None:
    """Say why an inline cleaning is due, None where it is not.

    Commits are counted as in Hudi: those requested after the last one that the last cleaning
    knew, all of the active timeline where there was none.
    """
    last = last_cleaning(timeline)
    since = "" if last is None else last.last_completed
    count = sum(i.requested > since for i in timeline.data())
    enough = TRIGGER.read(options)
    if count < enough:
        return None
    return f"{count} commits since the last cleaning, {enough} are enough"


def schedule_cleaning(
    work: Servicing, *, instant: str | None = None, dry_run: bool = False
) -> ServicePlan | None:
    """Plan a cleaning and put it on the timeline; None where there is nothing to clean.

    Nothing is planned while an earlier cleaning is unfinished. With ``dry_run`` the plan is
    returned and the timeline left as it is.
    """
    planned = _scheduled(work, instant=instant, dry_run=dry_run)
    return None if planned is None else planned[0]


def clean(work: Servicing, plan: Instant | None = None) -> ServiceResult:
    """Carry out a plan; without one, what is unfinished and then a new one.

    A plan that another one has carried out meanwhile is told of like one's own.
    """
    if plan is not None:
        return carry_out(work, plan)
    check_settings(Service.CLEANING, work.options)
    check_config(work.state.config)
    work = repaired(work)
    partitions: dict[str, PartitionServed] = {}
    last: Instant | None = None
    for pending in _unfinished(work.state.refresh().timeline):
        result = carry_out(work, pending)
        last = result.instant
        _add(partitions, result.partitions)
    planned = _scheduled(work)
    if planned is not None:
        made, draft = planned
        if made.instant is not None:
            result = carry_out(work, made.instant, draft.sizes)
            last = result.instant
            _add(partitions, result.partitions)
    return ServiceResult(Service.CLEANING, last, partitions)


def _add(partitions: dict[str, PartitionServed], more: Mapping[str, PartitionServed]) -> None:
    for partition, served in more.items():
        partitions[partition] = partitions.get(partition, PartitionServed()) + served


def _scheduled(
    work: Servicing, *, instant: str | None = None, dry_run: bool = False
) -> tuple[ServicePlan, Draft] | None:
    check_settings(Service.CLEANING, work.options)
    settings = CleanSettings.of(work.options)
    check_config(work.state.config)
    if dry_run and instant is not None:
        check_wanted(instant, work.state.timeline)
    # To look at a plan changes nothing, and to ask the store's clock writes a file.
    now = time.time() if dry_run else earlier_time(work.state.storage)
    for attempt in range(_DRAFTS + 1):
        state = work.state.refresh()
        waiting = _unfinished(state.timeline)
        if waiting and not dry_run:
            log.info(
                "a cleaning is unfinished; no other is planned",
                extra=facts(instant=waiting[0].requested),
            )
            return None
        draft = draft_cleaning(state, settings, work.progress, now)
        if draft is None:
            log.info("there is nothing to clean", extra=facts(table=work.name))
            return None
        planned = None
        if not dry_run:
            try:
                planned, draft = _put(
                    work, state, settings, draft, now, instant, attempt == _DRAFTS
                )
            except _Outdated:
                continue
            if planned is None:
                return None
        return _shown(work.name, settings, draft, planned), draft
    raise AssertionError("unreachable: the last draft is made under the lock")


def _put(
    work: Servicing,
    state: TableState,
    settings: CleanSettings,
    draft: Draft,
    now: float,
    instant: str | None,
    last: bool,
) -> tuple[Instant | None, Draft]:
    """Put a draft on the timeline; where it is outdated, the ``last`` one is drafted anew there."""
    seen = _fingerprint(state.timeline)
    settled = draft

    def make(view: TimelineView, taken: str) -> bytes | None:
        nonlocal settled
        if _unfinished(view):
            return None
        pins = load_pins(state.storage, now)
        if _fingerprint(view) != seen or pins.ids - draft.pins:
            if not last:
                raise _Outdated
            fresh = TableState(state.storage, state.config, view)
            found = draft_cleaning(fresh, settings, work.progress, now)
            if found is None:
                return None
            settled = found
        return encode_clean_plan(settled.body)

    return work.upkeep.schedule(Action.CLEAN, make, instant=instant), settled


def _fingerprint(view: TimelineView) -> frozenset[Instant]:
    """Return what a draft rests on: writes that complete later give it no file back."""
    pending = view.pending()
    return frozenset(
        (
            *view.by_action(*_LOOKED_AT),
            *(i for i in pending if i.action.completes_as is not i.action),
            *(i for i in pending if i.action is Action.REPLACECOMMIT),
        )
    )


def _unfinished(view: TimelineView) -> list[Instant]:
    """Return the cleanings that wait to be carried out; what has no plan cannot be."""
    found = []
    for instant in view.by_action(Action.CLEAN):
        if instant.is_completed:
            continue
        try:
            plan = view.plan(instant)
        except Corrupt as error:
            log.warning("a cleaning has no readable plan", extra=facts(error=str(error)))
            continue
        if isinstance(plan, CleanPlan):
            found.append(instant)
    return found


def _shown(
    table: str, settings: CleanSettings, draft: Draft, planned: Instant | None
) -> ServicePlan:
    return ServicePlan(
        table=table,
        service=Service.CLEANING,
        instant=planned,
        body=draft.body,
        items=draft.items,
        strategy=f"{settings}, {draft.scope.why}",
        passed_over=draft.passed_over,
    )
