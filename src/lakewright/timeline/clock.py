"""Times for instants: strictly after everything that the timeline holds.

They are taken under the table's lock and written to the timeline before it is released, so that
the next taker sees them, whatever its own clock says.
"""

import datetime as dt
import time
from collections.abc import Collection, Iterable

from lakewright.model.errors import Corrupt, Invalid
from lakewright.model.instant import Instant, instant_datetime, is_instant_time
from lakewright.timeline.moments import whole_second
from lakewright.timeline.view import TimelineView

_MILLISECOND = dt.timedelta(milliseconds=1)
#: Given instants stay before it: whatever follows needs a later time, and years have four digits.
_LAST_YEAR = "9999"


def time_text(seconds: float, zone: dt.tzinfo) -> str:
    """Write seconds since the epoch as an instant time of the table's zone."""
    moment = dt.datetime.fromtimestamp(seconds, zone)
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def time_before(now: float, seconds: float, zone: dt.tzinfo) -> str:
    """Write a time before which nothing lies that came in the last ``seconds`` before ``now``.

    Where clocks were put back within the hour that follows, it is as much earlier: the times of
    that hour come twice. Zeros where no calendar goes back so far.
    """
    try:
        return time_text(now - seconds - _put_back(now - seconds, zone), zone)
    except (ValueError, OverflowError, OSError):
        return "0" * 17


def _put_back(seconds: float, zone: dt.tzinfo) -> float:
    """Return by how many seconds clocks of a zone are put back within an hour after a moment."""
    offsets = [dt.datetime.fromtimestamp(seconds + more, zone).utcoffset() for more in (0, 3600)]
    before, after = (dt.timedelta() if offset is None else offset for offset in offsets)
    return max((before - after).total_seconds(), 0.0)


def newest_time(view: TimelineView) -> str:
    """Return the greatest requested or completion time on the timeline; ``""`` when empty."""
    return _newest(view.instants)


def next_time(view: TimelineView, *after: str, undoing: Collection[str] = ()) -> str:
    """Return a time that is now, or just later than all on the timeline and in ``after``.

    ``undoing`` are the requested times of instants that are being taken back: where no time is
    later than theirs, the time follows the others.
    """
    now = time_text(time.time(), view.config.timezone)
    rest = [whole_second(moment) for moment in after]
    last = max(newest_time(view), *rest, "")
    if now > last:
        return now
    if following := _following(last):
        return following
    staying = _newest(i for i in view.instants if i.requested not in undoing)
    last = max(staying, *rest, "")
    if following := now if now > last else _following(last):
        return following
    raise _no_room(view, last)


def _newest(instants: Iterable[Instant]) -> str:
    times = ((i.requested, i.completed or "") for i in instants)
    return max((whole_second(time) for pair in times for time in pair), default="")


def check_wanted(instant: object, view: TimelineView) -> str:
    """Return an instant that a caller asks for; ``Invalid`` where it cannot be taken.

    It must follow every requested time: older files would count as archived ones. It may precede
    completion times, which are the clock's: histories are replayed under their own times. It may
    lie in the future, but not in the last year that can be written.
    """
    if not isinstance(instant, str) or len(instant) != 17 or not is_instant_time(instant):
        raise Invalid(
            f"{instant!r} is no instant time.",
            next_step="Give 17 digits, yyyyMMddHHmmssSSS.",
            instant=instant,
        )
    instant_datetime(instant)
    if instant.startswith(_LAST_YEAR):
        raise Invalid(
            f"The instant {instant} leaves no time for what follows: every later write needs a "
            f"later time, and none is later than the year {_LAST_YEAR}.",
            next_step="Give an earlier one, or none: then the next free one is taken.",
            instant=instant,
        )
    last = max((whole_second(i.requested) for i in view.instants), default="")
    if instant <= last:
        raise Invalid(
            f"The instant {instant} is not after {last}, the latest instant on the timeline.",
            next_step="Give a later one, or none: then the next free one is taken.",
            instant=instant,
            latest=last,
        )
    return instant


def check_wanted_plan(instant: object, view: TimelineView) -> str:
    """Return an instant that a caller asks for a plan; ``Invalid`` where it cannot be taken.

    Since version 8, what completed after a plan was requested belongs on top of it. A plan that
    is requested before the files that it names could never be carried out.
    """
    wanted = check_wanted(instant, view)
    last = max((whole_second(i.completed or "") for i in view.data()), default="")
    if view.config.layout == 2 and wanted <= last:
        raise Invalid(
            f"The instant {wanted} is not after {last}, when the newest write completed.",
            next_step="Give a later one, or none: then the next free one is taken.",
            instant=wanted,
            latest=last,
        )
    return wanted


def _following(last: str) -> str | None:
    """Return the time one millisecond later; None where there is none."""
    try:
        moment = instant_datetime(last) + _MILLISECOND
    except (Invalid, OverflowError):
        return None
    # strftime writes years below 1000 without zeros; such an instant is never in the future.
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def _no_room(view: TimelineView, last: str) -> Corrupt:
    """Return the error that says which write bars the way, and how it goes."""
    # A write that is under way gives its time back on its own.
    writes = (i for i in view.instants if i.action.writes_data and i.is_completed)
    barring = [i.requested for i in writes if last == _newest([i])]
    way = (
        f"Roll the write back that it belongs to: table.rollback({barring[0]!r})."
        if barring
        else "Read the rows and write them to a new table: nothing can be written to this one."
    )
    return Corrupt(
        f"The timeline holds {last}, which is in the future, and no time follows it.",
        next_step=way,
        instant=barring[0] if barring else last,
    )
