"""Applying and undoing plans of any kind: one process at a time, and never twice.

Each attempt says that it begins before it changes anything, and a kind of plans finds again what
an attempt did that could not say so any more. So an apply that was cut off is finished by the next
one, and so is an undo.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from lakewright.actions.services.servicing import Servicing
from lakewright.lifecycle.plans.kinds import Kind, Run
from lakewright.lifecycle.plans.options import check_wishes
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.quarantine import Quarantined, overdue, purge
from lakewright.lifecycle.plans.records import Applied, PlanRun, PlanState, Undone
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import (
    Conflict,
    Corrupt,
    HistoryGone,
    Invalid,
    LakewrightError,
    NotFound,
    Unavailable,
)
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.timeline.locks.services_lock import side_lock
from lakewright.timeline.locks.waiting import names_holder
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Why a plan without quarantine cannot be undone.
PURGES = "it deletes files at once, without quarantine (purge)"
#: Where the locks of plans lie, each for as long as its plan is applied or undone.
_LOCKS = ".hoodie/.aux/lakewright/plans"


def apply_plan(
    work: Servicing, kind: Kind, id: str, *, strict: bool = False, by: str = ""
) -> Applied:
    """Carry out a plan that is kept with the table, and return what came of it.

    ``Conflict`` where the table has changed so that the plan must be made anew (it says what
    changed), where another process is at it, and where it was applied before. An attempt that was
    cut off is finished. ``strict`` refuses the plan where a part of it would be skipped.
    """
    store = PlanStore(work.state.storage)
    plan = _of_kind(store, kind, id)
    check_plan(work, kind, plan)
    with _held(work, id):
        standing = store.standing(id)
        _check_unapplied(store, id, standing.state)
        work = _fresh(work)
        tried = standing.attempts("applying")
        if tried:
            found = kind.finished(plan, Run(work, store, tried[-1], by, strict))
            if found is not None:
                store.finish_applying(found)
                log.info("a plan that was cut off had been applied", extra=facts(plan=id))
                return found
        changed = (*_other_base(plan, work.state.timeline), *kind.changed(plan, work.state))
        if changed:
            raise Conflict(
                f"the table is not as it was when the plan {id} was made: {'; '.join(changed)}.",
                next_step="Nothing was changed; plan again.",
                plan=id,
                changed=list(changed),
            )
        check_plan(work, kind, plan, strict=strict)
        number = store.begin(id, "applying", by, datetime.now(UTC))
        run = Run(work, store, number, by, strict)
        applied = _noted(store, id, run, "applying", lambda: kind.apply(plan, run))
        _ended(id, lambda: store.finish_applying(applied))
    told = facts(
        plan=id, instant=applied.instant, done=len(applied.done), skipped=len(applied.skipped)
    )
    log.info("plan applied", extra=told)
    return applied


def check_plan(work: Servicing, kind: Kind, plan: Plan, *, strict: bool = False) -> None:
    """Refuse a plan before anything of it is kept or done: wrong options, and with ``strict`` a
    plan that leaves out a part of what it was made for."""
    check_wishes({**work.options, **plan.options}, work.state.config.properties)
    left = kind.left_out(plan) if strict else ()
    if left:
        raise Conflict(
            f"{len(left)} of {len(left) + len(plan.items)} are left out of the plan {plan.id}, "
            f"the first is {left[0].target!r}: {left[0].reason}.",
            next_step="Nothing was changed; do it without strict, or plan again later.",
            plan=plan.id,
            target=left[0].target,
        )


def undo_plan(work: Servicing, kind: Kind, id: str, *, by: str = "") -> Undone:
    """Undo what a plan did, and return how.

    ``Invalid`` where the plan was not applied or is undone already, ``HistoryGone`` where what it
    removed is not there any more, ``Conflict`` where others are at work on the same.
    """
    store = PlanStore(work.state.storage)
    plan = _of_kind(store, kind, id)
    check_wishes(work.options, work.state.config.properties)
    with _held(work, id):
        applied = _finished(store, kind, plan, _fresh(work), by)
        if store.undone(id) is not None:
            raise Invalid(
                f"the plan {id} is undone already.",
                next_step="Plan again to do the same once more.",
                plan=id,
            )
        if not applied.done:
            raise Invalid(
                f"the plan {id} changed nothing, so there is nothing to undo.",
                next_step="What it skipped, and why, is told by its record.",
                plan=id,
            )
        work = _fresh(work)
        tried = store.standing(id).attempts("undoing")
        why = None if tried else kind.undoable(plan, applied, work.state)
        if why is not None:
            raise HistoryGone(
                f"the plan {id} cannot be undone: {why}.",
                next_step="What was cleaned away comes back from a copy alone.",
                plan=id,
            )
        number = store.begin(id, "undoing", by, datetime.now(UTC))
        run = Run(work, store, number, by)
        undone = _noted(store, id, run, "undoing", lambda: kind.undo(plan, applied, run))
        _ended(id, lambda: store.finish_undoing(undone))
    log.info("plan undone", extra=facts(plan=id, instant=undone.instant, how=undone.how))
    return undone


def why_not_undoable(work: Servicing, kind: Kind, id: str) -> str | None:
    """Say why a plan cannot be undone now; None where it can."""
    store = PlanStore(work.state.storage)
    plan = _of_kind(store, kind, id)
    if plan.purge:
        return PURGES
    applied = store.applied(id)
    if applied is None:
        return "it was not applied"
    if store.undone(id) is not None:
        return "it is undone already"
    return kind.undoable(plan, applied, work.state.refresh())


def undo_notes(work: Servicing, kind: Kind, id: str) -> tuple[str, ...]:
    """Say what is to be known of an undo beforehand; nothing where the plan was not applied."""
    store = PlanStore(work.state.storage)
    applied = store.applied(id)
    if applied is None:
        return ()
    return kind.undo_notes(_of_kind(store, kind, id), applied, _fresh(work))


def purge_plan(work: Servicing, id: str, *, by: str = "") -> Quarantined:
    """Delete what a plan has in quarantine for good, before its retention ends; return it.

    ``NotFound`` where it has nothing there, ``Conflict`` where the plan is being applied or undone,
    or was cut off in that: it must be finished first.
    """
    store = PlanStore(work.state.storage)
    store.load(id)
    with _held(work, id):
        state = store.standing(id).state
        if state in (PlanState.APPLYING, PlanState.UNDOING):
            verb = "apply" if state is PlanState.APPLYING else "undo"
            raise Conflict(
                f"the plan {id} was cut off while it was {state}.",
                next_step=f"Nothing was purged; {verb} it again, which finishes that.",
                plan=id,
            )
        began = datetime.now(UTC)
        found = purge(work.state.storage, id)
        told = f"purged {len(found.files)} files of {found.bytes} bytes"
        _note(store, id, PlanRun(1, "purging", by, began, datetime.now(UTC), told))
    return found


def purge_overdue(work: Servicing, now: datetime, *, by: str = "") -> tuple[Quarantined, ...]:
    """Purge what has lain in quarantine for its time, and return it.

    What belongs to a plan that is being applied or undone, or was cut off in that, is left alone.
    """
    purged = []
    for one in overdue(work.state.storage, now):
        try:
            purged.append(purge_plan(work, one.plan, by=by))
        except Conflict as conflict:
            log.info("quarantine is left alone", extra=facts(plan=one.plan, why=str(conflict)))
        except NotFound:
            with suppress(NotFound):  # the plan is forgotten, or somebody else came first
                purged.append(purge(work.state.storage, one.plan))
        except Corrupt as error:
            told = facts(plan=one.plan, why=str(error))
            log.warning("quarantine of a damaged plan is left alone", extra=told)
    return tuple(purged)


def _of_kind(store: PlanStore, kind: Kind, id: str) -> Plan:
    plan = store.load(id)
    if plan.kind != kind.name:
        raise Invalid(
            f"the plan {id} is of the kind {plan.kind!r}, not {kind.name!r}.",
            next_step=f"Apply it by what knows plans of the kind {plan.kind!r}.",
            plan=id,
        )
    return plan


def _other_base(plan: Plan, view: TimelineView) -> tuple[str, ...]:
    """Say that the table lacks the write on which a plan was made, where it does."""
    base = plan.base.requested
    if base is None or any(i.requested == base for i in view.data()):
        return ()
    if any(i.requested == base for i in view.with_history().data()):
        return ()
    return (
        f"it lacks the write {base}, on which the plan was made, so that the plan is of another "
        "table, or that write was taken back",
    )


def _check_unapplied(store: PlanStore, id: str, state: PlanState) -> None:
    if state in (PlanState.PLANNED, PlanState.APPLYING):
        return
    applied = store.applied(id)
    by = "" if applied is None or applied.instant is None else f" by {applied.instant}"
    told = "undone" if state is PlanState.UNDONE else f"applied{by}"
    raise Conflict(
        f"the plan {id} was {told} already.",
        next_step="Plan again to do what is to be done now.",
        plan=id,
    )


def _finished(store: PlanStore, kind: Kind, plan: Plan, work: Servicing, by: str) -> Applied:
    """Return what came of applying the plan, be it that the process died that could say so."""
    applied = store.applied(plan.id)
    if applied is not None:
        return applied
    tried = store.standing(plan.id).attempts("applying")
    run = Run(work, store, tried[-1] if tried else 0, by, undoing=True)
    found = kind.finished(plan, run) if tried else None
    if found is None:
        raise Invalid(
            f"the plan {plan.id} was not applied, so there is nothing to undo.",
            next_step="Apply it, or leave it.",
            plan=plan.id,
        )
    store.finish_applying(found)
    return found


@contextmanager
def _held(work: Servicing, id: str) -> Iterator[None]:
    """Keep other processes from applying or undoing the same plan."""
    storage: Storage = work.state.storage
    lock = side_lock(storage, work.options, f"{_LOCKS}/{id}.lock", f"plan-{id}")
    try:
        lease = lock.acquire()
    except Unavailable as cause:
        if not names_holder(cause):
            raise
        raise Conflict(
            f"another process is applying or undoing the plan {id}.",
            next_step="Wait for it, and look what came of the plan.",
            plan=id,
            holder=cause.facts.get("holder"),
        ) from cause
    with lease:
        yield


def _noted(store: PlanStore, id: str, run: Run, verb: str, do: Callable[[], T]) -> T:
    """Do it, and keep a record of how it ended."""
    began = run.now
    try:
        result = do()
    except LakewrightError as error:
        told = f"{error.code}: {error}"
        _note(store, id, PlanRun(run.attempt, verb, run.by, began, run.now, told))
        raise
    told = next(result.lines(0)) if isinstance(result, Applied | Undone) else ""
    _note(store, id, PlanRun(run.attempt, verb, run.by, began, run.now, told))
    return result


def _ended(id: str, say: Callable[[], None]) -> None:
    """Say how far a plan has come, after it took effect: that counts for more.

    Where it cannot be said, the next apply or undo finds what was done, and says it then.
    """
    try:
        say()
    except LakewrightError as error:
        log.warning("what came of a plan could not be kept", extra=facts(plan=id, why=str(error)))


def _note(store: PlanStore, id: str, run: PlanRun) -> None:
    """Keep a record; what came of the run counts for more than whether that can be done."""
    try:
        store.note(id, run)
    except LakewrightError as error:
        log.warning("a run could not be recorded", extra=facts(plan=id, why=str(error)))


def _fresh(work: Servicing) -> Servicing:
    return replace(work, state=work.state.refresh())
