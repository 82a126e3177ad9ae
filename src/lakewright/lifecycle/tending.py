"""All that is done for tables by itself: the services, and partition TTL before they clean.

Cleaning begins with what plans hold beyond their time.
"""

from collections.abc import Mapping
from dataclasses import replace

from lakewright.actions.services.duties import DUTIES, Done, Duty
from lakewright.actions.services.inline import SERVICES, inline_wishes
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.tending import Wish
from lakewright.lifecycle.letting_go import freed
from lakewright.lifecycle.ttl.options import INLINE
from lakewright.lifecycle.ttl.running import DUTY
from lakewright.model.instant import Instant
from lakewright.model.services import Service


def _after_plans(duty: Duty) -> Duty:
    """Return a duty that cleans what plans hold no more, too; others are as they are."""
    schedule = duty.schedule
    if duty.service is not Service.CLEANING or schedule is None:
        return duty

    def run(work: Servicing, plan: Instant | None) -> Done:
        return duty.run(freed(work) if plan is None else work, plan)

    def plan_it(work: Servicing) -> ServicePlan | None:
        return schedule(freed(work))

    return replace(duty, run=run, schedule=plan_it)


#: In the order in which they are done: each leaves less for the next.
ALL_DUTIES = (DUTY, *map(_after_plans, DUTIES))


def wishes_after_write(options: Mapping[str, str]) -> tuple[Wish, ...]:
    """Return what a write with these settings does when it is due, after its commit."""
    wanted = SERVICES.read(options) and INLINE.read(options)
    ttl = (Wish(DUTY),) if wanted else ()
    return (*ttl, *(replace(w, duty=_after_plans(w.duty)) for w in inline_wishes(options)))
