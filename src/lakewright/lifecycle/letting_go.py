"""What plans hold beyond their time is let go of: savepoints, pins, quarantine, old plans.

It is done before a table is cleaned, whoever cleans it, so that what was dropped goes once its
undo window is over; and after partition TTL ran.
"""

import datetime as dt
import logging
from dataclasses import replace

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.drops.holding import release_ended
from lakewright.lifecycle.plans.apply import purge_overdue
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PLANS_FOLDER, PlanStore
from lakewright.model.errors import LakewrightError
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.table.renamed_logs import forget_renames, other_names
from lakewright.timeline.store_clock import earlier_time

log = logging.getLogger(__name__)

#: Who is said to have done what a service did.
BY_ITSELF = "services"


def freed(work: Servicing) -> Servicing:
    """Let go of what plans hold beyond their time; return the work on the table as it is then.

    A table that never had a plan costs one listing.
    """
    if PLANS_FOLDER not in work.state.storage.folders(split(PLANS_FOLDER)[0]):
        return work
    let_go(work)
    return replace(work, state=work.state.refresh())


def let_go(work: Servicing, now: dt.datetime | None = None) -> tuple[str, ...]:
    """Let go of what plans hold beyond their time: savepoints, pins, quarantine, old plans.

    It is done after what counts, so nothing is raised: what failed is logged, and returned.
    """
    failed = []
    try:
        clock = now or dt.datetime.fromtimestamp(earlier_time(work.state.storage), dt.UTC)
    except LakewrightError as error:
        log.warning("plans could not be looked after", extra=facts(why=str(error)))
        return (str(error),)
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
