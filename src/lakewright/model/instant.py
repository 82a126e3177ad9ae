"""Instants: the points of a table's history."""

import datetime as dt
import re
from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.errors import Invalid

_DIGITS = re.compile(r"\d{14}(\d{3})?")

#: Sorts before every real instant; "from the beginning".
BEGINNING = "000"
#: Hudi begins some tables with instants of a year that never was, such as 00000000000001.
_BEFORE_TIME = "000"


class Action(StrEnum):
    """What an instant does to the table, in the words of the Hudi specification."""

    COMMIT = "commit"
    DELTACOMMIT = "deltacommit"
    REPLACECOMMIT = "replacecommit"
    COMPACTION = "compaction"
    LOGCOMPACTION = "logcompaction"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"
    SCHEMACOMMIT = "schemacommit"

    @property
    def completes_as(self) -> "Action":
        """The action under which this one is found on the timeline once completed."""
        return _COMPLETES_AS.get(self, self)

    @property
    def writes_data(self) -> bool:
        """Whether a completed instant of this action adds or replaces data files."""
        return self in _DATA_ACTIONS


_COMPLETES_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOGCOMPACTION: Action.DELTACOMMIT,
    Action.CLUSTERING: Action.REPLACECOMMIT,
}
_DATA_ACTIONS = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})


class State(StrEnum):
    """How far an action has got."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One action at one time.

    ``requested`` and ``completed`` are Hudi instant times (17 digits, or 14 in old tables),
    compared as text. ``completed`` is None while the action is pending; in layout 1, whose
    file names carry no completion time, it equals ``requested``.
    """

    requested: str
    action: Action
    state: State
    completed: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether the action took effect."""
        return self.state is State.COMPLETED

    def __str__(self) -> str:
        done = f"_{self.completed}" if self.completed else ""
        return f"{self.requested}{done}.{self.action}.{self.state}"


def is_instant_time(text: str) -> bool:
    """Say whether ``text`` has the form of an instant time (14 or 17 digits)."""
    return _DIGITS.fullmatch(text) is not None


def instant_time(moment: dt.datetime) -> str:
    """Write an aware datetime as an instant time in UTC, cut to milliseconds."""
    if moment.tzinfo is None:
        raise Invalid(
            f"{moment!r} has no time zone.",
            next_step="Give an aware datetime, e.g. datetime.now(timezone.utc).",
        )
    return _digits(moment.astimezone(dt.UTC))


def instant_datetime(time: str, zone: dt.tzinfo = dt.UTC) -> dt.datetime:
    """Read an instant time as an aware datetime; a 14-digit time means its last millisecond."""
    if not is_instant_time(time):
        raise Invalid(f"{time!r} is no instant time.", next_step="Expected 14 or 17 digits.")
    try:
        moment = dt.datetime.strptime(time[:14], "%Y%m%d%H%M%S")
    except ValueError as cause:
        raise Invalid(
            f"{time!r} is no date and time.",
            next_step="The digits are yyyyMMddHHmmss, and SSS for the milliseconds.",
            value=time,
        ) from cause
    millis = int(time[14:]) if len(time) == 17 else 999
    return moment.replace(microsecond=millis * 1000, tzinfo=zone)


def requested_time(instant: "Instant | str | None") -> str | None:
    """Return the time by which time travel counts an instant; texts stay as they are."""
    return instant.requested if isinstance(instant, Instant) else instant


def effective_time(instant: "Instant | str | None") -> str | None:
    """Return the time by which windows count an instant; texts stay as they are.

    ``Invalid`` where it is pending: it has taken no effect yet.
    """
    if not isinstance(instant, Instant):
        return instant
    if instant.completed is None:
        raise Invalid(
            f"the instant {instant} is pending: it is in no window yet.",
            next_step="Give one that has completed, or a time.",
            instant=str(instant),
        )
    return instant.completed


def parse_point_in_time(value: str | dt.datetime | dt.date, zone: dt.tzinfo = dt.UTC) -> str:
    """Turn what a user calls a time into an instant time that bounds it from above.

    Accepted: an instant (14 or 17 digits that are a date and a time, kept as it is),
    ``yyyy-mm-dd`` (the end of that day, so that the day's commits are seen), an ISO timestamp, a
    date, a datetime. Naive times are read in ``zone``, the zone of the table's timeline.
    """
    if isinstance(value, str):
        text = value.strip()
        if is_instant_time(text) or text == BEGINNING:
            if not text.startswith(_BEFORE_TIME):
                instant_datetime(text)
            return text
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return parse_point_in_time(_date(text), zone)
        try:
            value = dt.datetime.fromisoformat(text)
        except ValueError as cause:
            raise Invalid(
                f"{text!r} is neither an instant nor a time.",
                next_step="Give 17 digits (yyyyMMddHHmmssSSS), a date (2026-11-01) "
                "or a time (2026-11-01T12:30:00).",
                value=text,
            ) from cause
    if isinstance(value, dt.datetime):
        return _digits(_local(value, zone) if value.tzinfo else value)
    if isinstance(value, dt.date):
        return f"{value.year:04d}{value.month:02d}{value.day:02d}235959999"
    raise Invalid(
        f"{value!r} ({type(value).__name__}) is neither an instant nor a time.",
        next_step="Give text such as '20261101123000000' or '2026-11-01', a date or a datetime.",
        value=repr(value),
    )


def _digits(moment: dt.datetime) -> str:
    # Year, and not %Y, which writes the year 999 with three digits.
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _local(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError as cause:
        raise Invalid(
            f"{moment.isoformat()} is beyond the calendar in {zone}.",
            next_step="Give a moment between the years 1 and 9999, in that zone as well.",
        ) from cause


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError as cause:
        raise Invalid(
            f"{text!r} is no date.", next_step="Write it as 2026-11-01.", value=text
        ) from cause
