"""What is done for a table by itself: when each service is due, and how it is called."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from lakewright.actions.services.archiving import archive, archiving_due, plan_archive
from lakewright.actions.services.cleaning import clean, cleaning_due, schedule_cleaning
from lakewright.actions.services.clustering import cluster, schedule_clustering
from lakewright.actions.services.clustering_triggers import clustering_due
from lakewright.actions.services.compaction import compact, schedule_compaction
from lakewright.actions.services.compaction_triggers import compaction_due, log_compaction_due
from lakewright.actions.services.log_compaction import log_compact, schedule_log_compaction
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.servicing import Servicing
from lakewright.format.hudi.metadata.clean import CleanPlan
from lakewright.model.errors import Corrupt
from lakewright.model.instant import Action, Instant
from lakewright.model.services import PartitionServed, Service, ServiceResult
from lakewright.model.shown import Shown
from lakewright.timeline.plans import is_plan
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a service; ``instant`` is None where there was nothing to do."""

    instant: Instant | None
    did: str
    counts: PartitionServed


Due: TypeAlias = Callable[[TimelineView, Mapping[str, str]], str | None]


@dataclass(frozen=True, slots=True)
class Duty:
    """One service: ``due`` says why it is to be done now, None where it is not.

    ``run`` carries out the given plan, or makes one and carries it out. ``preview`` says what a
    new one would be, None where there is nothing to do. ``schedule`` is None for what is not
    planned apart.
    """

    service: Service
    due: Due
    run: Callable[[Servicing, Instant | None], Done]
    preview: Callable[[Servicing], Shown | None]
    schedule: Callable[[Servicing], ServicePlan | None] | None = None


def _served(
    run: Callable[[Servicing, Instant | None], ServiceResult],
) -> Callable[[Servicing, Instant | None], Done]:
    def carry_out(work: Servicing, plan: Instant | None) -> Done:
        result = run(work, plan)
        return Done(result.instant, str(result), result.total)

    return carry_out


def _archive(work: Servicing, plan: Instant | None) -> Done:
    assert plan is None
    result = archive(work)
    return Done(result.instants[-1] if result.instants else None, str(result), PartitionServed())


def _archivable(work: Servicing) -> Shown | None:
    plan = plan_archive(work)
    return plan if plan.instants else None


def _duty(
    service: Service,
    due: Due,
    run: Callable[[Servicing, Instant | None], ServiceResult],
    schedule: Callable[..., ServicePlan | None],
) -> Duty:
    return Duty(service, due, _served(run), partial(schedule, dry_run=True), schedule)


#: In the order in which they are done: each leaves less for the next.
DUTIES = (
    _duty(Service.COMPACTION, compaction_due, compact, schedule_compaction),
    _duty(Service.LOG_COMPACTION, log_compaction_due, log_compact, schedule_log_compaction),
    _duty(Service.CLUSTERING, clustering_due, cluster, schedule_clustering),
    _duty(Service.CLEANING, cleaning_due, clean, schedule_cleaning),
    Duty(Service.ARCHIVING, archiving_due, _archive, _archivable),
)
_BY_SERVICE = {duty.service: duty for duty in DUTIES}
_PLANNED = {
    Action.COMPACTION: Service.COMPACTION,
    Action.LOGCOMPACTION: Service.LOG_COMPACTION,
    Action.CLUSTERING: Service.CLUSTERING,
    # Layout 1 requests a clustering as a replace commit.
    Action.REPLACECOMMIT: Service.CLUSTERING,
}


def duty_of(service: Service) -> Duty:
    """Return how a service is done."""
    return _BY_SERVICE[service]


def waiting_plans(view: TimelineView) -> Iterator[tuple[Duty, Instant]]:
    """Stream the plans that nobody has carried out yet, oldest first, begun or not."""
    for entry in view.entries:
        if entry.instant.is_completed:
            continue
        if entry.planned is Action.CLEAN:
            if _has_plan(view, entry.instant):
                yield _BY_SERVICE[Service.CLEANING], entry.instant
        elif is_plan(view, entry):
            yield _BY_SERVICE[_PLANNED[entry.planned]], entry.instant


def _has_plan(view: TimelineView, instant: Instant) -> bool:
    try:
        return isinstance(view.plan(instant), CleanPlan)
    except Corrupt:  # cleaning tells of it in the log, and plans anew
        return False
