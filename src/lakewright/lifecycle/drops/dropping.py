"""Dropping the partitions of a plan: one commit for all of them, whose files stay for the undo.

The files are pinned, and written down with the plan, before the commit takes effect. Partitions
whose rows changed since the plan was made are left alone, and so are those on which a service is
planned: the next plan takes them.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from lakewright.actions.partitions.returning import Gone
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.write.bucket_admission import admit_index
from lakewright.actions.write.request import WriteRequest
from lakewright.actions.write.write import write
from lakewright.format.hudi.metadata.commit import PLAN_ENTRY
from lakewright.lifecycle.drops.held import (
    mark_of,
    moved_since,
    names_of,
    planned_services,
    prepared_of,
    slices_of,
    to_json,
    writes_since,
)
from lakewright.lifecycle.drops.holding import hold, release, wants_savepoint
from lakewright.lifecycle.drops.planning import DELETE_PARTITIONS, DUE, EMPTY, MARK, RETURNED
from lakewright.lifecycle.drops.restored import restored_partitions
from lakewright.lifecycle.drops.undoing import notes_on_undo, undo_drop, why_not_back
from lakewright.lifecycle.plans.kinds import ATTEMPT_ENTRY, Run
from lakewright.lifecycle.plans.options import UNDO_WINDOW
from lakewright.lifecycle.plans.plan import (
    Plan,
    PlanItem,
    Skipped,
    lacking,
    moment_of,
    skipped_json,
)
from lakewright.lifecycle.plans.records import Applied, Undone
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import AlreadyExists, Conflict, Invalid, LakewrightError
from lakewright.model.files import FileSlice
from lakewright.model.instant import Instant, instant_datetime
from lakewright.model.logs import facts
from lakewright.model.writing import Operation
from lakewright.storage.port import Storage
from lakewright.table.pins import Pin, add_pin, drop_pins
from lakewright.table.state import TableState
from lakewright.timeline.clock import newest_time
from lakewright.timeline.committing import Rivals
from lakewright.timeline.store_clock import earlier_time
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: How often the table is looked at anew after a writer came between.
_ATTEMPTS = 5

#: Times on the timeline that are so far ahead of the clock are no mistake of a clock.
_FAR = timedelta(days=366)

#: Says of a plan what of all it was made by has changed.
Changed = Callable[[Plan, TableState], tuple[str, ...]]


def _nothing_else(plan: Plan, state: TableState) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class DropKind:
    """Plans that drop partitions.

    ``looks`` says what has changed of whatever a plan was made by, policies for example; that the
    partitions themselves changed is no reason to refuse the whole plan.
    """

    name: str = DELETE_PARTITIONS
    looks: Changed = _nothing_else

    def changed(self, plan: Plan, state: TableState) -> tuple[str, ...]:
        """Say what else has changed since the plan was made, and what an undo brought back."""
        return (*_brought_back(plan, state), *self.looks(plan, state))

    def left_out(self, plan: Plan) -> tuple[Skipped, ...]:
        """Return the partitions that wait for a service, or are in doubt.

        Those that hold no rows are none of them, nor is what goes beyond the most of one run.
        """
        return tuple(one for one in plan.skipped if not one.rest and one.reason != EMPTY)

    def apply(self, plan: Plan, run: Run) -> Applied:
        """Drop the partitions of the plan that are as they were, in one commit."""
        for left in reversed(range(_ATTEMPTS)):
            dropping = _Dropping(plan, run)
            dropping.check_strict()
            try:
                return dropping.apply()
            except Conflict as conflict:
                # Nothing took effect; what another writer changed is left alone by the next look.
                if not left:
                    raise
                told = facts(plan=plan.id, why=str(conflict))
                log.info("partitions are looked at anew before they are dropped", extra=told)
        raise AssertionError("the last attempt returns or raises")

    def finished(self, plan: Plan, run: Run) -> Applied | None:
        """Find the commit of an attempt that was cut off; without one, let its pins go."""
        state = run.work.state.refresh()
        found = commit_of(plan, state.timeline)
        numbers = run.store.standing(plan.id).attempts("applying")
        if found is None:
            _drop_pins(state, [_pin_id(plan, number) for number in numbers])
            release(run.work, plan.id)
            return None
        instant, attempt = found
        prepared = run.store.prepared(plan.id, attempt, prepared_of)
        return Applied(
            plan=plan.id,
            table=plan.table,
            at=run.now,
            by=run.by,
            instant=instant.requested,
            done=tuple(one.partition for one in prepared.gone),
            skipped=prepared.skipped,
            undo_until=prepared.until,
            attempt=attempt,
            resumed=True,
        )

    def undoable(self, plan: Plan, applied: Applied, state: TableState) -> str | None:
        """Say which partitions cannot come back, and why."""
        return why_not_back(plan, applied, PlanStore(state.storage))

    def undo_notes(self, plan: Plan, applied: Applied, work: Servicing) -> tuple[str, ...]:
        """Say which rows stay out for later writes, and which of these cannot be told."""
        return notes_on_undo(applied, work)

    def undo(self, plan: Plan, applied: Applied, run: Run) -> Undone:
        """Let the partitions come back."""
        undone = undo_drop(plan, applied, run, pin=_pin_id(plan, applied.attempt))
        release(run.work, plan.id)
        return undone


def _brought_back(plan: Plan, state: TableState) -> tuple[str, ...]:
    """Name partitions that came back since a plan was made: somebody wants them, as it seems.

    They are counted, since the clocks of who planned and who undid may differ.
    """
    restored = restored_partitions(state.storage)
    back = [
        (item.target, restored[item.target].at)
        for item in plan.items
        if item.target in restored
        and str(restored[item.target].times) != item.facts.get(RETURNED, "0")
    ]
    return tuple(
        f"an undo brought {path!r} back {str(at)[:19]} UTC, after it was made"
        for path, at in back[:3]
    )


def commit_of(plan: Plan, view: TimelineView) -> tuple[Instant, int] | None:
    """Return the commit that applied a plan, and by which attempt; None where there is none."""
    since = plan.base.completed or ""
    whole = view.with_history() if view.is_archived(since) else view
    fresh = [i for i in whole.data() if (i.completed or "") > since]
    for instant, body in whole.commits(fresh):
        if body.extra.get(PLAN_ENTRY) == plan.id:
            return instant, int(body.extra.get(ATTEMPT_ENTRY, "0"))
    return None


class _Dropping:
    """One look at the table, and the commit that builds on it."""

    def __init__(self, plan: Plan, run: Run) -> None:
        self._plan = plan
        self._run = run
        self._state = run.work.state.refresh()
        self._options = {**run.work.options, **plan.options}
        self._window = UNDO_WINDOW.read(self._options)
        self._until: datetime = run.term(self._window, after=_passed(plan, self._state.timeline))
        self._early = _early(plan, self._state.storage)
        self._chosen, self._skipped = self._choose(self._state)

    def check_strict(self) -> None:
        """Refuse, where that is asked for, to do a part of the plan."""
        if self._run.strict and self._skipped:
            first = self._skipped[0]
            raise Conflict(
                f"{len(self._skipped)} of {len(self._plan.items)} partitions would be skipped, "
                f"the first is {first.target!r}: {first.reason}.",
                next_step="Nothing was changed; apply it without strict, or plan again.",
                plan=self._plan.id,
                partition=first.target,
            )

    def apply(self) -> Applied:
        """Drop what is as it was planned."""
        if not self._chosen:
            return self._applied(None)
        work = self._run.work
        if self._window and wants_savepoint(self._state.timeline, self._options):
            hold(replace(work, state=self._state), self._plan.id, self._chosen, self._run.by)
        request: WriteRequest[object] = WriteRequest(
            operation=Operation.DELETE_PARTITION,
            options=work.options,
            partitions=tuple(sorted(self._chosen)),
            metadata={
                PLAN_ENTRY: self._plan.id,
                ATTEMPT_ENTRY: str(self._run.attempt),
            },
            check=self._check,
            guard=self._guard,
        )
        try:
            result = write(self._state, work.executor, None, request, work.committer, work.progress)
        except Conflict:
            # After any other error it may be that the commit took effect.
            _drop_pins(self._state, [_pin_id(self._plan, self._run.attempt)])
            release(work, self._plan.id)
            raise
        instant = result.instant
        return self._applied(None if instant is None else instant.requested)

    def _applied(self, instant: str | None) -> Applied:
        return Applied(
            plan=self._plan.id,
            table=self._plan.table,
            at=self._run.now,
            by=self._run.by,
            instant=instant,
            done=tuple(sorted(self._chosen)) if instant is not None else (),
            skipped=self._skipped,
            undo_until=None if instant is None else self._until,
            attempt=self._run.attempt,
        )

    def _choose(
        self, state: TableState
    ) -> tuple[dict[str, Sequence[FileSlice]], tuple[Skipped, ...]]:
        """Return the slices of the partitions that go, and what is left alone."""
        view = state.timeline
        held = slices_of(state, [item.target for item in self._plan.items])
        busy = planned_services(state)
        written = writes_since(self._plan, view)
        # Where times of completion are not told, a write may have come before the plan and taken
        # effect after it: then files that are others are all that can be known.
        moved = moved_since(self._plan, view) if state.config.layout == 2 else frozenset()
        chosen: dict[str, Sequence[FileSlice]] = {}
        skipped: list[Skipped] = []
        for item in self._plan.items:
            path, slices = item.target, held.get(item.target, ())
            why = busy.get(path) or self._early.get(path)
            why = why or _why_left(item, slices, written.get(path), path in moved)
            if why is None:
                chosen[path] = slices
            else:
                skipped.append(Skipped(path, why))
        return chosen, tuple(skipped)

    def _check(self, state: TableState) -> None:
        """Look at the table that the commit builds on; pin what goes, and write it down."""
        chosen, _ = self._choose(state)
        if {p: mark_of(s) for p, s in chosen.items()} != {
            p: mark_of(s) for p, s in self._chosen.items()
        }:
            raise _overtaken("partitions changed while they were about to be dropped")
        buckets = admit_index(state, self._run.work.options).buckets
        gone = [
            Gone(path, tuple(slices), None if buckets is None else buckets.number_of(path))
            for path, slices in sorted(chosen.items())
        ]
        self._pin(gone)
        body = {
            "until": self._until.isoformat(),
            "skipped": [skipped_json(one) for one in self._skipped],
            "partitions": to_json(gone),
        }
        self._run.store.prepare(self._plan.id, self._run.attempt, body)

    def _pin(self, gone: Sequence[Gone]) -> None:
        storage = self._state.storage
        pin = Pin(
            id=_pin_id(self._plan, self._run.attempt),
            until=self._until.timestamp(),
            why=f"the plan {self._plan.id} can be undone",
            files=names_of(gone),
        )
        drop_pins(storage, pin.id)
        with suppress(AlreadyExists):
            # Put there by a call of ours whose answer was lost.
            add_pin(storage, pin)

    def _guard(self, rivals: Rivals) -> None:
        """Refuse where others wrote to the partitions since: their rows stay."""
        for rival, body in rivals:
            both = sorted(self._chosen.keys() & {*body.write_stats, *body.replaced})
            if both:
                raise _overtaken(f"{rival.requested} wrote to partition {both[0]!r}")


def _why_left(
    item: PlanItem, slices: Sequence[FileSlice], written: str | None, moved: bool
) -> str | None:
    if not slices:
        return EMPTY
    if written is not None:
        return f"it was written by {written} since the plan was made"
    if mark_of(slices) != item.facts.get(MARK) and not moved:
        return "its files are others than when the plan was made"
    return None


def _passed(plan: Plan, view: TimelineView) -> datetime:
    """Return a moment that has passed, whatever our clock says: the plan's, or the last write's.

    A write of a far future tells nothing: somebody chose that time, and the window would never end.
    """
    try:
        written = instant_datetime(newest_time(view), view.config.timezone).astimezone(UTC)
    except Invalid:
        return plan.created_at
    far = datetime.now(UTC) + _FAR
    return plan.created_at if written > far else max(plan.created_at, written)


def _early(plan: Plan, storage: Storage) -> dict[str, str]:
    """Return what is not due yet by the clocks of now, and why that is so.

    It is asked where a clock has gone back since the plan was made. Who gave a clock to plan by
    meant it.
    """
    told = {item.target: item.facts[DUE] for item in plan.items if DUE in item.facts}
    now = datetime.fromtimestamp(earlier_time(storage), UTC) if told else plan.created_at
    if plan.created_at <= now:
        return {}
    due = {target: _moment(plan, text) for target, text in told.items()}
    return {
        target: f"it goes after {str(moment)[:19]} UTC, and the clock shows {str(now)[:19]} UTC "
        "now: the one by which the plan was made was ahead"
        for target, moment in due.items()
        if moment >= now
    }


def _moment(plan: Plan, text: str) -> datetime:
    try:
        return moment_of(text)
    except ValueError as cause:
        raise lacking(plan, f"{text!r} is no moment") from cause


def _pin_id(plan: Plan, attempt: int) -> str:
    return f"{plan.id}-{attempt}"


def _drop_pins(state: TableState, ids: Sequence[str]) -> None:
    """Let pins of attempts go that came to nothing; those that stay end by themselves."""
    try:
        drop_pins(state.storage, *ids)
    except LakewrightError as error:
        log.warning("pins stay until they end", extra=facts(pins=list(ids), why=str(error)))


def _overtaken(what: str) -> Conflict:
    return Conflict(f"{what}.", next_step="Nothing was changed; try again.")
