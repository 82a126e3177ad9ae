"""Undoing a drop: the commit is rolled back, or the rows come back in a new one.

It is rolled back where nothing took effect since. Otherwise the old rows are written into new file
groups, beside what was written since, which wins.
"""

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from lakewright.actions.partitions.returning import Gone, bring_back, written_since_drop
from lakewright.actions.services.rolling_back import rollback
from lakewright.actions.services.servicing import Servicing
from lakewright.format.hudi.metadata.commit import UNDO_ENTRY
from lakewright.lifecycle.drops.held import cleaned, dropped_by, names_of, sized
from lakewright.lifecycle.drops.restored import note_restored
from lakewright.lifecycle.plans.kinds import Run
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import Applied, Undone, untold_text
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import (
    AlreadyExists,
    Conflict,
    HistoryGone,
    InstantNotFound,
    LakewrightError,
    NotFound,
)
from lakewright.model.instant import Instant
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.table.pins import Pin, add_pin, drop_pins
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: How often the table is looked at anew after a writer came between.
_ATTEMPTS = 5
#: How long an undo may take; it pins once more what it brings back.
_LONGEST = timedelta(days=1)
_ROLLED_BACK = "by a rollback"


def why_not_back(plan: Plan, applied: Applied, store: PlanStore) -> str | None:
    """Say why the partitions of a plan cannot come back; None where they can."""
    if applied.instant is None:
        return "it changed nothing"
    try:
        gone = dropped_by(store, applied)
    except NotFound:
        return "what it dropped is not written down any more"
    return _why_cleaned(store.storage, gone)


def _why_cleaned(storage: Storage, gone: tuple[Gone, ...]) -> str | None:
    lacking = cleaned(storage, gone)
    if not lacking:
        return None
    named = ", ".join(repr(path) for path in lacking[:5])
    more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
    return f"files of {len(lacking)} of its {len(gone)} partitions were cleaned away: {named}{more}"


def notes_on_undo(applied: Applied, work: Servicing) -> tuple[str, ...]:
    """Say what later writes mean for an undo; nothing where there are none."""
    if applied.instant is None:
        return ()
    since = written_since_drop(
        work.state, work.options, applied.done, applied.instant, (UNDO_ENTRY,)
    )
    if not since.instants:
        return ()
    writes = f"{len(since.instants)} writes" if len(since.instants) > 1 else "1 write"
    told = f"{writes} came since: keys that were written since stay as they are now, deleted or not"
    return (told, untold_text(since.untold)) if since.untold else (told,)


def undo_drop(plan: Plan, applied: Applied, run: Run, pin: str) -> Undone:
    """Let the partitions of a plan come back; ``pin`` is what held their files until now."""
    gone = dropped_by(run.store, applied)
    own = f"{plan.id}-undo-{run.attempt}"
    storage = run.work.state.storage
    _pin(storage, own, plan, gone, run.term(_LONGEST, after=applied.at))
    back_at = run.term(timedelta(0), after=applied.at)
    note_restored(storage, plan.id, run.attempt, back_at, (one.partition for one in gone))
    undone = _Undoing(plan, applied, run, sized(storage, gone)).undo()
    earlier = [f"{plan.id}-undo-{number}" for number in range(1, run.attempt)]
    try:
        drop_pins(storage, pin, own, *earlier)
    except LakewrightError as error:
        log.warning("pins stay until they end", extra=facts(plan=plan.id, why=str(error)))
    return undone


def _pin(storage: Storage, id: str, plan: Plan, gone: tuple[Gone, ...], until: datetime) -> None:
    why = f"the plan {plan.id} is being undone"
    with suppress(AlreadyExists):
        # Put there by a call of ours whose answer was lost.
        add_pin(storage, Pin(id, until.timestamp(), why, names_of(gone)))


class _Undoing:
    def __init__(self, plan: Plan, applied: Applied, run: Run, gone: tuple[Gone, ...]) -> None:
        assert applied.instant is not None
        self._plan = plan
        self._run = run
        self._gone = gone
        self._instant = applied.instant

    def undo(self) -> Undone:
        for left in reversed(range(_ATTEMPTS)):
            work = replace(self._run.work, state=self._run.work.state.refresh())
            view = work.state.timeline
            done = self._done_before(view)
            if done is not None:
                return done
            try:
                return self._rolled_back(work)
            except (Conflict, HistoryGone, InstantNotFound) as refused:
                told = facts(plan=self._plan.id, why=str(refused))
                log.info("an undo writes rows instead of rolling back", extra=told)
                why = refused.message
            try:
                return self._brought_back(work, why)
            except Conflict as conflict:
                # Nothing took effect; the next look builds on what another writer changed.
                if not left:
                    raise
                told = facts(plan=self._plan.id, why=str(conflict))
                log.info("an undo looks at the table anew", extra=told)
        raise AssertionError("the last attempt returns or raises")

    def _done_before(self, view: TimelineView) -> Undone | None:
        """Return what an earlier attempt did, or somebody else who rolled the commit back."""
        since = self._instant
        whole = view.with_history() if view.is_archived(since) else view
        later = [i for i in whole.data() if i.requested > since]
        for instant, body in whole.commits(later):
            if body.extra.get(UNDO_ENTRY) == self._plan.id:
                return self._undone(instant, "by a commit")
        if _stands(view, self._instant):
            return None
        return self._undone(None, _ROLLED_BACK)

    def _rolled_back(self, work: Servicing) -> Undone:
        return self._undone(rollback(work, self._instant), _ROLLED_BACK)

    def _brought_back(self, work: Servicing, why: str) -> Undone:
        missing = _why_cleaned(work.state.storage, self._gone)
        if missing is not None:
            raise HistoryGone(
                f"the plan {self._plan.id} cannot be undone: {missing}.",
                next_step="Nothing was changed. What was cleaned away comes back from a copy "
                "alone.",
                plan=self._plan.id,
            )
        extra = {UNDO_ENTRY: self._plan.id}
        back = bring_back(work, self._gone, self._instant, extra, self._check)
        done = self._undone(back.instant, f"by a commit, because {why.rstrip('.')}")
        return replace(
            done,
            rows=back.rows,
            kept_out=back.kept_out,
            deleted=back.deleted,
            untold=back.untold,
        )

    def _check(self, view: TimelineView) -> None:
        """Refuse where the drop does not stand any more: its rows are back already."""
        if not _stands(view, self._instant):
            raise Conflict(
                f"the commit {self._instant} was taken back meanwhile.",
                next_step="Nothing was changed; try again.",
            )

    def _undone(self, instant: Instant | None, how: str) -> Undone:
        return Undone(
            plan=self._plan.id,
            table=self._plan.table,
            at=self._run.now,
            by=self._run.by,
            instant=None if instant is None else instant.requested,
            how=how,
            restored=tuple(one.partition for one in self._gone),
        )


def _stands(view: TimelineView, instant: str) -> bool:
    """Whether a commit took effect and was not taken back."""
    if instant in view.completions:
        return True
    whole = view.with_history()
    return any(found.requested == instant for found in whole.data())
