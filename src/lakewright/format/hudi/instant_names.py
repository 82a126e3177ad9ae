"""Names of timeline files, in both layouts.

A pending action is ``<time>.<action>.<state>``; a commit in flight is ``<time>.inflight``
alone. A completed one is ``<time>.<action>`` in layout 1 and ``<time>_<completion>.<action>``
in layout 2, where tables that were upgraded may still hold the old form.
"""

import re

from lakewright.model.errors import Invalid
from lakewright.model.instant import Action, Instant, State

_NAME = re.compile(r"([0-9]+)(?:_([0-9]+))?\.([a-z.]+)", re.ASCII)

_PENDING_ONLY = (Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING)

_SUFFIXES: dict[str, tuple[Action, State]] = {
    **{a.value: (a, State.COMPLETED) for a in Action if a not in _PENDING_ONLY},
    **{f"{a}.requested": (a, State.REQUESTED) for a in Action if a is not Action.SAVEPOINT},
    **{f"{a}.inflight": (a, State.INFLIGHT) for a in Action if a is not Action.COMMIT},
    "inflight": (Action.COMMIT, State.INFLIGHT),
}


def parse_instant_name(name: str, layout: int) -> Instant | None:
    """Read the name of a timeline file; None where it is none.

    A completed file of layout 2 without a completion time gives ``completed=None`` with the
    state COMPLETED: the time at which the file was last changed stands in for it. The digits
    need not form a date, because Hudi compares instants as text.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    requested, completed, suffix = match.groups()
    found = _SUFFIXES.get(suffix)
    if found is None:
        return None
    action, state = found
    if completed is not None:
        if layout == 1 or state is not State.COMPLETED:
            return None
        return Instant(requested, action, state, completed)
    done = requested if layout == 1 and state is State.COMPLETED else None
    return Instant(requested, action, state, done)


def instant_file_name(instant: Instant, layout: int) -> str:
    """Return the file name of an instant; a completed compaction or clustering has the name of
    the action it completes as."""
    action, state = instant.action, instant.state
    if state is State.COMPLETED:
        if layout == 1 or instant.completed is None:
            return f"{instant.requested}.{action.completes_as}"
        return f"{instant.requested}_{instant.completed}.{action.completes_as}"
    if action is Action.COMMIT and state is State.INFLIGHT:
        return f"{instant.requested}.inflight"
    suffix = f"{action}.{state}"
    if suffix not in _SUFFIXES:
        raise Invalid(
            f"a {action} has no state {state}.", next_step="Write its inflight file first."
        )
    return f"{instant.requested}.{suffix}"
