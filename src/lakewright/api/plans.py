"""Plans of a table that can be carried out: looked at, applied, undone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from lakewright.actions.services.servicing import Servicing
from lakewright.actions.write.overwrite import partition_paths
from lakewright.api.arguments import text_of
from lakewright.api.buckets import Bucketed
from lakewright.api.maintaining import Options
from lakewright.api.services import user_name
from lakewright.lifecycle.drops.planning import plan_drop
from lakewright.lifecycle.known import kind_of
from lakewright.lifecycle.orphans.options import OLDER_THAN
from lakewright.lifecycle.orphans.planning import plan_orphans
from lakewright.lifecycle.plans.apply import (
    apply_plan,
    check_plan,
    purge_plan,
    undo_notes,
    undo_plan,
    why_not_undoable,
)
from lakewright.lifecycle.plans.plan import Plan, PlanItem
from lakewright.lifecycle.plans.quarantine import Quarantined, held, list_quarantined
from lakewright.lifecycle.plans.records import Applied, PlanRecord, PlanRun, PlanState, Undone
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import Denied, Invalid
from lakewright.model.shown import SHOWN, Shown, first_of

#: Opens a table for one piece of work.
Opened: TypeAlias = "Callable[[Options | None], AbstractContextManager[Servicing]]"


@dataclass(frozen=True, slots=True)
class UndoPreview(Shown):
    """What an undo would bring back; ``why_not`` says why it cannot.

    ``notes`` tell what will not be as it was: rows that stay out because of later writes, and
    deletes that nobody can tell any more.
    """

    plan: str
    targets: tuple[str, ...]
    why_not: str | None
    notes: tuple[str, ...] = ()

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text; ``limit`` targets, None for all."""
        if self.why_not is not None:
            yield f"the plan {self.plan} cannot be undone: {self.why_not}"
            return
        yield f"the plan {self.plan} can be undone: {len(self.targets)} come back"
        yield from (f"  {note}" for note in self.notes)
        told = (f"  {path or '(table)'}" for path in self.targets)
        yield from first_of(told, len(self.targets), limit)


class TablePlan(Shown):
    """A plan of a table: what it does and why, ``apply`` and ``undo``. ``plan`` is its value.

    It is kept with the table, so that another process may apply it or undo it.
    """

    __slots__ = ("_kept", "_opened", "_options", "plan")

    def __init__(
        self, opened: Opened, plan: Plan, options: Options | None = None, *, kept: bool = True
    ) -> None:
        self.plan = plan
        self._opened = opened
        self._options = options
        self._kept = kept

    @property
    def id(self) -> str:
        """The id by which others find it."""
        return self.plan.id

    @property
    def items(self) -> Sequence[PlanItem]:
        """What it is going to do, each with its reason, files and bytes."""
        return self.plan.items

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.plan.empty

    @property
    def state(self) -> PlanState:
        """How far it has come: planned, applied, undone, or between."""
        return self.record().state

    def record(self) -> PlanRecord:
        """Return the plan with what came of it."""
        if not self._kept:
            return PlanRecord(self.plan, PlanState.PLANNED)
        with self._opened(self._options) as work:
            return PlanStore(work.state.storage).record(self.id)

    def runs(self) -> tuple[PlanRun, ...]:
        """Return the record of every run that came to an end, applying and undoing."""
        with self._opened(self._options) as work:
            return PlanStore(work.state.storage).runs(self.id)

    def explain(self, target: str) -> str:
        """Say what becomes of a target, and why; ``NotFound`` where the plan is not about it."""
        return self.plan.explain(target)

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines of text; ``limit`` items, None for all."""
        return self.plan.lines(limit)

    def to_json(self) -> str:
        """Return the whole plan for programs."""
        return self.plan.to_json()

    def apply(self, *, strict: bool = False) -> Applied:
        """Carry the plan out, and return what came of it.

        What has changed since it was made is skipped with the reason; with ``strict`` nothing is
        done then, nor where the plan left something out. ``Conflict`` where the plan must be made
        anew, and says what changed. An attempt that was cut off is finished.
        """
        with self._opened(self._options) as work:
            kind = kind_of(self.plan)
            check_plan(work, kind, self.plan, strict=strict)
            self._keep(work)
            return apply_plan(work, kind, self.id, strict=strict, by=user_name())

    def why_not_undoable(self) -> str | None:
        """Say why it cannot be undone now; None where it can."""
        with self._opened(self._options) as work:
            return why_not_undoable(work, kind_of(self.plan), self.id)

    def preview_undo(self) -> UndoPreview:
        """Say what ``undo`` would bring back, or why it cannot; nothing is changed."""
        applied = self.record().applied
        targets = () if applied is None else applied.done
        why_not = self.why_not_undoable()
        if why_not is not None:
            return UndoPreview(self.id, targets, why_not)
        with self._opened(self._options) as work:
            notes = undo_notes(work, kind_of(self.plan), self.id)
        return UndoPreview(self.id, targets, None, notes)

    def undo(self) -> Undone:
        """Take back what was applied; what others wrote since stays, and so does what they deleted.

        ``HistoryGone`` where what it removed has been cleaned away.
        """
        with self._opened(self._options) as work:
            return undo_plan(work, kind_of(self.plan), self.id, by=user_name())

    def quarantined(self) -> Quarantined | None:
        """Return what it has in quarantine; None where that is nothing."""
        with self._opened(self._options) as work:
            return held(work.state.storage, self.id)

    def purge(self) -> Quarantined:
        """Delete what it has in quarantine for good, and return that; nothing brings it back.

        ``NotFound`` where it has nothing there.
        """
        with self._opened(self._options) as work:
            return purge_plan(work, self.id, by=user_name())

    def _keep(self, work: Servicing) -> None:
        if not self._kept:
            PlanStore(work.state.storage).save(self.plan)
            self._kept = True

    def __repr__(self) -> str:
        return str(self.plan)

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


class Plannable(Bucketed):
    """The plans that are kept with a table."""

    def plans(self) -> Iterator[PlanRecord]:
        """Stream the plans of the table with what came of them, newest first."""
        with self._servicing(None) as work:
            return PlanStore(work.state.storage).list()

    def plan(self, id: str, *, options: Options | None = None) -> TablePlan:
        """Return a plan by its id, to look at it, apply it or undo it."""
        with self._servicing(options) as work:
            found = PlanStore(work.state.storage).load(id)
        return TablePlan(self._servicing, found, options)

    def plan_delete_partitions(
        self,
        partitions: Iterable[str | Mapping[str, object]],
        *,
        reason: str = "it was named",
        options: Options | None = None,
    ) -> TablePlan:
        """Plan to drop partitions, given by paths or values; ``undo`` brings them back.

        What ``delete_partitions`` does at once, with a plan before and the undo window after it.
        """
        with self._servicing(options) as work:
            paths = partition_paths(work.state, partitions)
            why = dict.fromkeys(paths, text_of("reason", reason))
            plan = plan_drop(work, why, by=user_name(), options=options)
            return keep(self._servicing, work, plan, options)

    def plan_orphans(
        self,
        older_than: str | timedelta | None = None,
        *,
        purge: bool = False,
        options: Options | None = None,
    ) -> TablePlan:
        """Plan to remove data files that no instant claims, as writers that died leave them.

        Files that are older than ``older_than``, such as ``"3d"``; at least an hour. ``apply``
        puts them into quarantine, from where ``undo`` brings them back until
        ``lakewright.quarantine.retention`` is over. With ``purge`` it deletes them at once.
        """
        with self._servicing(options) as work:
            plan = _planned(work, older_than, purge=purge)
            return keep(self._servicing, work, plan, options)

    def preview_orphans(
        self,
        older_than: str | timedelta | None = None,
        *,
        purge: bool = False,
        options: Options | None = None,
    ) -> Plan:
        """Return what ``plan_orphans`` would plan, as a value to look at; it is not kept."""
        with self._servicing(options) as work:
            return _planned(work, older_than, purge=purge)

    def quarantined(self) -> list[Quarantined]:
        """Return what lies in quarantine, by plan: files, bytes, until when, and why."""
        with self._servicing(None) as work:
            return list(list_quarantined(work.state.storage))


def _planned(work: Servicing, older_than: str | timedelta | None, *, purge: bool) -> Plan:
    age: timedelta | None
    match older_than:
        case str():
            age = OLDER_THAN.read({OLDER_THAN.key: older_than})
        case timedelta() | None:
            age = older_than
        case _:
            raise Invalid(
                f"older_than={older_than!r} is no span of time.",
                next_step='Give a text such as "3d", or a timedelta.',
                argument="older_than",
            )
    return plan_orphans(work, older_than=age, purge=purge, by=user_name())


def keep(opened: Opened, work: Servicing, plan: Plan, options: Options | None) -> TablePlan:
    """Keep a plan with its table; one without items, or of a table that is read only, is not."""
    kept = not plan.empty
    if kept:
        try:
            PlanStore(work.state.storage).save(plan)
        except Denied:
            kept = False
    return TablePlan(opened, plan, options, kept=kept)
