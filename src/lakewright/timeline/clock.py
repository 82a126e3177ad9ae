"""Times for instants: strictly after everything that the timeline holds.

They are taken under the table's lock and written to the timeline before it is released, so that
the next taker sees them, whatever its own clock says.
"""

import datetime as dt
import time

from lakewright.model.errors import Corrupt, Invalid
from lakewright.model.instant import instant_datetime, is_instant_time
from lakewright.timeline.moments import whole_second
from lakewright.timeline.view import TimelineView

_MILLISECOND = dt.timedelta(milliseconds=1)


def time_text(seconds: float, zone: dt.tzinfo) -> str:
    """Write seconds since the epoch as an instant time of the table's zone."""
    moment = dt.datetime.fromtimestamp(seconds, zone)
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def time_before(now: float, seconds: float, zone: dt.tzinfo) -> str:
    """Write the time some seconds before ``now``; zeros where no calendar goes back so far."""
    try:
        return time_text(now - seconds, zone)
    except (ValueError, OverflowError, OSError):
        return "0" * 17


def newest_time(view: TimelineView) -> str:
    """Return the greatest requested or completion time on the timeline; ``""`` when empty."""
    times = ((i.requested, i.completed or "") for i in view.instants)
    return max((whole_second(time) for pair in times for time in pair), default="")


def next_time(view: TimelineView, *after: str) -> str:
    """Return a time that is now, or just later than all on the timeline and in ``after``."""
    now = time_text(time.time(), view.config.timezone)
    last = max(newest_time(view), *(whole_second(moment) for moment in after), "")
    return now if now > last else _following(last)


def check_wanted(instant: str, view: TimelineView) -> str:
    """Return an instant that a caller asks for; ``Invalid`` where it cannot be taken.

    It must follow every requested time: older files would count as archived ones. It may precede
    completion times, which are the clock's: histories are replayed under their own times.
    """
    if len(instant) != 17 or not is_instant_time(instant):
        raise Invalid(
            f"{instant!r} is no instant time.",
            next_step="Give 17 digits, yyyyMMddHHmmssSSS.",
            instant=instant,
        )
    instant_datetime(instant)
    last = max((whole_second(i.requested) for i in view.instants), default="")
    if instant <= last:
        raise Invalid(
            f"The instant {instant} is not after {last}, the latest instant on the timeline.",
            next_step="Give a later one, or none: then the next free one is taken.",
            instant=instant,
            latest=last,
        )
    return instant


def _following(last: str) -> str:
    try:
        moment = instant_datetime(last) + _MILLISECOND
    except (Invalid, OverflowError) as cause:
        raise Corrupt(
            f"The timeline holds {last}, which is in the future and no date and time.",
            next_step="Roll that instant back with the software that wrote it.",
            instant=last,
        ) from cause
    # strftime writes years below 1000 without zeros; such an instant is never in the future.
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"
