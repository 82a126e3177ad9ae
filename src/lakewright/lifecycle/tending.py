"""All that is done for tables by itself: the services, and partition TTL before they clean."""

from collections.abc import Mapping

from lakewright.actions.services.duties import DUTIES
from lakewright.actions.services.inline import SERVICES, inline_wishes
from lakewright.actions.services.tending import Wish
from lakewright.lifecycle.ttl.options import INLINE
from lakewright.lifecycle.ttl.running import DUTY

#: In the order in which they are done: each leaves less for the next.
ALL_DUTIES = (DUTY, *DUTIES)


def wishes_after_write(options: Mapping[str, str]) -> tuple[Wish, ...]:
    """Return what a write with these settings does when it is due, after its commit."""
    wanted = SERVICES.read(options) and INLINE.read(options)
    return (*((Wish(DUTY),) if wanted else ()), *inline_wishes(options))
