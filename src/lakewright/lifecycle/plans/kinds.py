"""The port of kinds of plans: what each of them knows of checking, applying and undoing."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.plans.plan import Plan, Skipped
from lakewright.lifecycle.plans.records import Applied, Undone
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.table.state import TableState
from lakewright.timeline.store_clock import later_time

#: In the extra metadata of a commit that applies a plan: the attempt that made it.
ATTEMPT_ENTRY = "lakewright.plan.attempt"


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt to apply a plan, or to undo it.

    ``strict`` refuses the whole plan where a part of it would be skipped. ``by`` is who asked
    for it, ``attempt`` is counted from 1 for each plan, in applying and undoing apart.
    ``undoing`` says that the plan is about to be undone.
    """

    work: Servicing
    store: PlanStore
    attempt: int
    by: str
    strict: bool = False
    undoing: bool = False

    @property
    def now(self) -> datetime:
        """The moment, in UTC."""
        return datetime.now(UTC)

    def term(self, span: timedelta, *, after: datetime | None = None) -> datetime:
        """Return the end of a span that begins now, by whichever clock is ahead.

        It begins at ``after`` or later, which has passed already, even if our clock was set back
        since.
        """
        now = datetime.fromtimestamp(later_time(self.work.state.storage), UTC)
        return max(now, after or now) + span


class Kind(Protocol):
    """What a kind of plans can do. Whoever calls holds the plan's lock."""

    @property
    def name(self) -> str:
        """The name by which plans say that they are of this kind."""
        ...

    def changed(self, plan: Plan, state: TableState) -> tuple[str, ...]:
        """Say what has changed since a plan was made, so that it must be made anew."""
        ...

    def left_out(self, plan: Plan) -> tuple[Skipped, ...]:
        """Return what a plan left out though it was made for it: ``strict`` refuses it then."""
        ...

    def apply(self, plan: Plan, run: Run) -> Applied:
        """Carry a plan out, and say what came of it; on an error nothing of it is left."""
        ...

    def finished(self, plan: Plan, run: Run) -> Applied | None:
        """Return what an earlier attempt did that was cut off before it could say so.

        None where nothing took effect; what it left behind is taken back by the next attempt. A
        kind whose plans take effect bit by bit finishes what was begun, unless it is about to be
        undone: then it tells how far that came.
        """
        ...

    def undoable(self, plan: Plan, applied: Applied, state: TableState) -> str | None:
        """Say why what a plan did cannot be undone; None where it can."""
        ...

    def undo_notes(self, plan: Plan, applied: Applied, work: Servicing) -> tuple[str, ...]:
        """Say what is to be known of an undo beforehand: what will not be as it was."""
        ...

    def undo(self, plan: Plan, applied: Applied, run: Run) -> Undone:
        """Undo what a plan did; what an earlier undo did that was cut off is found and told."""
        ...
