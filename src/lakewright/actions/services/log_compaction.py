"""Log compaction: many small logs of a slice become one, and its base file stays.

Cheaper than a compaction by the base file, and enough where slices grow many logs between two of
them. It completes as a delta commit; readers pass over the logs that it stands for.
"""

from collections.abc import Sequence
from dataclasses import replace

from lakewright.actions.services.compaction_options import (
    LOG_COMPACTION_BLOCKS,
    PlanSettings,
    Strategy,
)
from lakewright.actions.services.compaction_planning import Planner, check_compactable, scheduled
from lakewright.actions.services.merging import carry_out
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.repairing import repaired
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.settings import check_settings
from lakewright.actions.services.taking import first_free, taken
from lakewright.actions.tasks.compact_logs import compact_logs
from lakewright.model.errors import Unsupported
from lakewright.model.instant import Action, Instant
from lakewright.model.services import Service, ServiceResult
from lakewright.table.merge.policy import MergePolicy
from lakewright.timeline.clock import check_wanted_plan

_OPERATION = "LOG_COMPACT"
#: By this name Hudi knows that a plan merges logs alone.
_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


def schedule_log_compaction(
    work: Servicing,
    *,
    partitions: Sequence[str] | None = None,
    instant: str | None = None,
    dry_run: bool = False,
) -> ServicePlan | None:
    """Put a log compaction on the timeline; None where no slice has logs enough.

    Arguments are as for a compaction.
    """
    _check(work)
    check_settings(Service.LOG_COMPACTION, work.options)
    enough = LOG_COMPACTION_BLOCKS.read(work.options)
    settings = replace(PlanSettings.of(work.options), strategy=Strategy.UNBOUNDED, then=())
    if not dry_run:
        # A dead write that vanishes from under a plan would look like a writer at work.
        work = repaired(work, writes=True)
    planner = Planner(
        work,
        Service.LOG_COMPACTION,
        settings,
        partitions,
        least_logs=enough,
        executor=_EXECUTOR,
    )
    if dry_run:
        if instant is not None:
            check_wanted_plan(instant, work.state.timeline)
        found = planner.plan()
        return None if found is None else planner.value(found, None)
    return scheduled(work, Action.LOGCOMPACTION, planner, instant)


def log_compact(work: Servicing, plan: Instant | None = None) -> ServiceResult:
    """Carry out the given log compaction, else the oldest one that waits, else a new one."""
    _check(work)
    check_settings(Service.LOG_COMPACTION, work.options, planning=False)
    work = repaired(work)
    with first_free(work, Action.LOGCOMPACTION, plan, _OPERATION) as found:
        if found is not None:
            return carry_out(work, found, Service.LOG_COMPACTION, compact_logs)
    made = schedule_log_compaction(work)
    if made is None or made.instant is None:
        return ServiceResult(Service.LOG_COMPACTION, None)
    with taken(work, made.instant, _OPERATION) as new:
        return carry_out(work, new, Service.LOG_COMPACTION, compact_logs)


def _check(work: Servicing) -> None:
    check_compactable(work)
    config = work.state.config
    if config.layout == 1:
        raise Unsupported(
            f"{work.name} has version {config.version}: a log compaction would meet the logs of "
            "writes under way, which such tables cannot tell apart.",
            next_step="Compact it, or upgrade it to version 9.",
            version=config.version,
        )
    if MergePolicy.of(config).by_column:
        raise Unsupported(
            f"{work.name} merges records column by column, so its logs are not merged alone.",
            next_step="Compact it.",
        )
