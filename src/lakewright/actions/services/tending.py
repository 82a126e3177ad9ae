"""Looking after one table by itself: what waits first, then what is due, one service at a time."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from lakewright.actions.services.duties import Done, Duty, waiting_plans
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.repairing import cut_off_undoings, repaired
from lakewright.actions.services.servicing import Servicing
from lakewright.model.errors import Conflict, LakewrightError, Unavailable
from lakewright.model.instant import Instant, State
from lakewright.model.logs import facts
from lakewright.model.services import Outcome, Service, ServiceRun
from lakewright.timeline.locks.services_lock import services_lock
from lakewright.timeline.locks.waiting import names_holder

log = logging.getLogger(__name__)

#: Opens the table as it stands, for one service.
Opened: TypeAlias = Callable[[], AbstractContextManager[Servicing]]


@dataclass(frozen=True, slots=True)
class Wish:
    """A service that is to be done where it is due; ``plan_only`` leaves the rest to others."""

    duty: Duty
    plan_only: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    duty: Duty
    instant: Instant
    why: str


class Tending:
    """Looks after one table, once.

    Nothing that goes wrong is raised: it is told in what is streamed, and the next service has
    its turn. ``is_over`` is asked before each service. With ``takes_over``, plans of all services
    that somebody began and deserted are finished, those of services that nobody wishes too.
    """

    def __init__(
        self,
        table: str,
        opened: Opened,
        wishes: Sequence[Wish],
        *,
        takes_over: bool = False,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._table = table
        self._opened = opened
        self._wishes = wishes
        self._takes_over = takes_over
        self._is_over = is_over

    def run(self) -> Iterator[ServiceRun]:
        """Stream what was done, and what not and why."""
        for told in self._run():
            level = logging.WARNING if told.outcome is Outcome.FAILED else logging.INFO
            if told.outcome is Outcome.NOT_DUE:
                level = logging.DEBUG
            log.log(level, "%s", told, extra=facts(**told.facts()))
            yield told

    def preview(self) -> Iterator[ServiceRun]:
        """Stream what would be done now, and what not and why; nothing is written."""
        try:
            with self._opened() as work:
                plans = self._plans(work)
        except Exception as error:  # noqa: BLE001 - one table must not keep the next from its turn
            yield self._failed(None, error)
            return
        for plan in plans:
            yield self._told(plan.duty.service, Outcome.DUE, plan.why, plan.instant)
        for wish in self._wishes:
            yield self._guarded(wish.duty.service, partial(self._foreseen, wish))

    def _foreseen(self, wish: Wish, work: Servicing) -> ServiceRun:
        why = wish.duty.due(work.state.timeline, work.options)
        if why is None:
            return self._idle(wish)
        plan = wish.duty.preview(work)
        if plan is None:
            return self._told(wish.duty.service, Outcome.NOTHING, why)
        return replace(
            self._told(wish.duty.service, Outcome.DUE, why), did=next(iter(plan.lines(0)))
        )

    def _run(self) -> Iterator[ServiceRun]:
        try:
            with self._opened() as work:
                plans = self._plans(work)
                due = [wish for wish in self._wishes if self._is_due(work, wish)]
                cut_off = cut_off_undoings(work)
                lock = services_lock(work.state.storage, work.options)
            if not plans and not due and not cut_off:
                yield from map(self._idle, self._wishes)
                return
            try:
                lease = lock.acquire(0.0)
            except Unavailable as busy:
                if not names_holder(busy):
                    raise
                holder = lock.describe()
                why = f"{holder} looks after it" if holder else str(busy)
                yield self._told(None, Outcome.LEFT, why)
                return
        except Exception as error:  # noqa: BLE001 - one table must not keep the next from its turn
            yield self._failed(None, error)
            return
        with lease:
            yield from self._serve(due)

    def _serve(self, due: Sequence[Wish]) -> Iterator[ServiceRun]:
        try:
            with self._opened() as work:
                work = repaired(work)
                plans = self._plans(work)  # whoever held the lock before may have done some
        except Exception as error:  # noqa: BLE001 - one table must not keep the next from its turn
            yield self._failed(None, error)
            return
        for plan in plans:
            if self._is_over():
                return
            told = self._carry_out(plan)
            yield told
            if told.outcome is Outcome.LEFT:
                return  # one service at a time: somebody is at work on the table
        for wish in self._wishes:
            if self._is_over():
                return
            yield self._do(wish) if wish in due else self._idle(wish)

    def _plans(self, work: Servicing) -> list[_Plan]:
        wished = {wish.duty.service for wish in self._wishes if not wish.plan_only}
        found = []
        for duty, instant in waiting_plans(work.state.timeline):
            if duty.service in wished:
                found.append(_Plan(duty, instant, f"planned {instant.requested}"))
            elif self._takes_over and instant.state is State.INFLIGHT:
                found.append(_Plan(duty, instant, f"begun {instant.requested} and not finished"))
        return found

    @staticmethod
    def _is_due(work: Servicing, wish: Wish) -> bool:
        try:
            return wish.duty.due(work.state.timeline, work.options) is not None
        except LakewrightError:
            return True  # doing it tells what is wrong

    def _carry_out(self, plan: _Plan) -> ServiceRun:
        def carry_out(work: Servicing) -> ServiceRun:
            begun = time.monotonic()
            done = plan.duty.run(work, plan.instant)
            return self._done(plan.duty.service, plan.why, done, begun)

        told = self._guarded(plan.duty.service, carry_out)
        return told if told.instant is not None else replace(told, instant=plan.instant)

    def _do(self, wish: Wish) -> ServiceRun:
        """Do a service, unless those before it have made it needless."""
        duty = wish.duty

        def do(work: Servicing) -> ServiceRun:
            begun = time.monotonic()
            why = duty.due(work.state.timeline, work.options)
            if why is None:
                return self._idle(wish)
            if wish.plan_only and duty.schedule is not None:
                return self._planned(duty.service, why, duty.schedule(work))
            return self._done(duty.service, why, duty.run(work, None), begun)

        return self._guarded(duty.service, do)

    def _guarded(self, service: Service, do: Callable[[Servicing], ServiceRun]) -> ServiceRun:
        try:
            with self._opened() as work:
                return do(work)
        except Conflict as conflict:
            return self._told(service, Outcome.LEFT, str(conflict))
        except Exception as error:  # noqa: BLE001 - one service must not keep the next from its turn
            return self._failed(service, error)

    def _idle(self, wish: Wish) -> ServiceRun:
        return self._told(wish.duty.service, Outcome.NOT_DUE, "")

    def _done(self, service: Service, why: str, done: Done, begun: float) -> ServiceRun:
        if done.instant is None:
            return self._told(service, Outcome.NOTHING, why)
        told = self._told(service, Outcome.DONE, why, done.instant)
        return replace(told, did=done.did, counts=done.counts, seconds=time.monotonic() - begun)

    def _planned(self, service: Service, why: str, plan: ServicePlan | None) -> ServiceRun:
        if plan is None:
            return self._told(service, Outcome.NOTHING, why)
        told = self._told(service, Outcome.PLANNED, why, plan.instant)
        return replace(told, did=next(plan.lines(0)))

    def _told(
        self, service: Service | None, outcome: Outcome, why: str, instant: Instant | None = None
    ) -> ServiceRun:
        return ServiceRun(self._table, service, outcome, why, instant)

    def _failed(self, service: Service | None, error: Exception) -> ServiceRun:
        # What is no error of ours is a defect: its place in the code is told as well.
        level = logging.DEBUG if isinstance(error, LakewrightError) else logging.ERROR
        log.log(level, "a service failed", exc_info=error, extra=facts(table=self._table))
        return self._told(service, Outcome.FAILED, f"{type(error).__name__}: {error}")
