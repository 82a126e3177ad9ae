"""Finishing what was cut off before anything else is done to a table."""

import time
from collections.abc import Sequence
from dataclasses import replace

from lakewright.actions.services.servicing import Servicing
from lakewright.model.instant import Action, Instant
from lakewright.timeline.recovery import pending_failed

_UNDOING = (Action.ROLLBACK, Action.RESTORE)


def cut_off_undoings(work: Servicing) -> Sequence[Instant]:
    """Return the restores and rollbacks that nobody works on any more.

    Until somebody finishes them, readers see a table on its way back.
    """
    view = work.state.timeline
    if not any(i.action in _UNDOING for i in view.pending()):
        return ()
    failed = pending_failed(view, time.time(), work.options)
    return [i for i in failed if i.action in _UNDOING]


def repaired(work: Servicing, *, writes: bool = False) -> Servicing:
    """Finish restores and rollbacks that were cut off, with all that a writer repairs then.

    Without one nothing is touched; with ``writes``, a dead write is enough of a reason. Returns
    the work on the table as it stands after that.
    """
    dead = pending_failed(work.state.timeline, time.time(), work.options) if writes else ()
    if not dead and not cut_off_undoings(work):
        return work
    work.upkeep.repair()
    return replace(work, state=work.state.refresh())
