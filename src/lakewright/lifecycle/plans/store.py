"""Plans as they are kept with a table: one folder per plan, one file per change of its state.

Every file is created once and never changed, so that of two processes which want the same change
one is told that it came second. What a plan has come to is read off the names.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from lakewright.lifecycle.plans.options import RETENTION
from lakewright.lifecycle.plans.plan import Json, Plan, check_plan_id, decode, unread_plan
from lakewright.lifecycle.plans.records import Applied, PlanRecord, PlanRun, PlanState, Undone
from lakewright.model.errors import AlreadyExists, Conflict, Corrupt, Invalid, NotFound
from lakewright.storage.port import Storage
from lakewright.timeline.owner import Owner

T = TypeVar("T")

PLANS_FOLDER = ".hoodie/.lakewright/plans"

_PLAN = "plan.json"
_APPLIED = "applied.json"
_UNDONE = "undone.json"
_NEEDED = (
    "The undo of the plan needs it, and so does an apply that was cut off: restore it from a copy."
)
#: The end of a plan's file: a checksum of all before it, so that nobody applies what was edited.
_SEAL = re.compile(rb', "seal": "([0-9a-f]{64})"\}\s*')
_SEALED = b'"seal"'
_SEAL_BYTES = 256
_NUMBERED = re.compile(r"(applying|undoing|prepared|run)-([0-9]+)\.json")


@dataclass(frozen=True, slots=True)
class Standing:
    """Which files a plan has: how far it has come, and how often that was tried."""

    names: frozenset[str]

    @property
    def state(self) -> PlanState:
        """How far the plan has come."""
        if _UNDONE in self.names:
            return PlanState.UNDONE
        if _APPLIED in self.names:
            return PlanState.UNDOING if self.attempts("undoing") else PlanState.APPLIED
        return PlanState.APPLYING if self.attempts("applying") else PlanState.PLANNED

    def attempts(self, verb: str) -> tuple[int, ...]:
        """Return the numbers of the attempts at ``applying`` or ``undoing``, in order."""
        found = (_NUMBERED.fullmatch(name) for name in self.names)
        return tuple(sorted(int(match[2]) for match in found if match and match[1] == verb))


@dataclass(frozen=True, slots=True)
class PlanStore:
    """The plans of one table."""

    storage: Storage

    def save(self, plan: Plan) -> None:
        """Keep a plan; ``AlreadyExists`` where its id is taken."""
        if not self._create(plan.id, _PLAN, _sealed(plan.to_json())):
            raise AlreadyExists(
                f"There is already a plan {plan.id}.", next_step="Plan again.", plan=plan.id
            )

    def load(self, id: str) -> Plan:
        """Return a plan; ``NotFound`` where there is none of this id, ``Corrupt`` for one that is
        not as it was made."""
        path = self._path(id, _PLAN)
        try:
            data = self.storage.read(path)
        except NotFound as cause:
            raise NotFound(
                f"There is no plan {id}.", next_step="plans() lists those there are.", plan=id
            ) from cause
        _check_seal(data, path)
        plan = Plan.from_json(data, path)
        if plan.id != id:
            raise _edited(path, f"it is the plan {plan.id}")
        return plan

    def record(self, id: str) -> PlanRecord:
        """Return a plan with what came of it."""
        plan, standing = self.load(id), self.standing(id)
        return PlanRecord(plan, standing.state, self.applied(id), self.undone(id))

    def list(self) -> Iterator[PlanRecord]:
        """Stream all plans, newest first; one that is deleted meanwhile is left out.

        One that cannot be read is listed as damaged, and says why.
        """
        for id in self.ids():
            try:
                yield self.record(id)
            except NotFound:
                continue
            except Corrupt as error:
                yield self._damaged(id, error)

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all plans, newest first."""
        dated = []
        for path in self.storage.folders(PLANS_FOLDER):
            name = path.rpartition("/")[2]
            try:
                dated.append((check_plan_id(name), name))
            except Invalid:
                continue  # somebody else's
        return tuple(name for _, name in sorted(dated, reverse=True))

    def standing(self, id: str) -> Standing:
        """Return how far a plan has come, by one listing."""
        folder = self._path(id, "")
        files = self.storage.list(folder.rstrip("/"), stats=False)
        return Standing(frozenset(file.path.rpartition("/")[2] for file in files))

    def applied(self, id: str) -> Applied | None:
        """Return what came of applying a plan; None where it was not applied."""
        data = self._read(id, _APPLIED)
        return None if data is None else Applied.from_json(data, self._path(id, _APPLIED))

    def undone(self, id: str) -> Undone | None:
        """Return what an undo of a plan did; None where it was not undone."""
        data = self._read(id, _UNDONE)
        return None if data is None else Undone.from_json(data, self._path(id, _UNDONE))

    def runs(self, id: str) -> tuple[PlanRun, ...]:
        """Return the records of all runs that came to an end, in order."""
        found = []
        for number in self.standing(id).attempts("run"):
            data = self._read(id, f"run-{number}.json")
            if data is not None:
                found.append(PlanRun.from_json(data, self._path(id, f"run-{number}.json")))
        return tuple(found)

    def begin(self, id: str, verb: str, by: str, now: datetime) -> int:
        """Say that ``applying`` or ``undoing`` begins; return the number of the attempt.

        ``Conflict`` where another process began in the same moment.
        """
        number = max(self.standing(id).attempts(verb), default=0) + 1
        body = {"by": by, "at": now.isoformat(), "owner": str(Owner.here())}
        if not self._create(id, f"{verb}-{number}.json", json.dumps(body, ensure_ascii=False)):
            raise Conflict(
                f"another process began {verb} the plan {id} in the same moment.",
                next_step="Wait for it, and look what came of the plan.",
                plan=id,
            )
        return number

    def prepare(self, id: str, attempt: int, body: Mapping[str, Json]) -> None:
        """Write down what an attempt is going to do, before it does it."""
        path = self._path(id, f"prepared-{attempt}.json")
        self.storage.write(path, json.dumps(body, ensure_ascii=False).encode())

    def prepared(self, id: str, attempt: int, read: Callable[[Json], T]) -> T:
        """Return what an attempt wrote down, picked apart by ``read``.

        ``NotFound`` where it did not come so far.
        """
        path = self._path(id, f"prepared-{attempt}.json")
        return decode(self.storage.read(path), path, read, _NEEDED)

    def finish_applying(self, applied: Applied) -> None:
        """Say that a plan was applied; ``Conflict`` where another process said so already."""
        self._finish(applied.plan, _APPLIED, applied.to_json())

    def finish_undoing(self, undone: Undone) -> None:
        """Say that a plan was undone; ``Conflict`` where another process said so already."""
        self._finish(undone.plan, _UNDONE, undone.to_json())

    def note(self, id: str, run: PlanRun) -> None:
        """Keep the record of a run."""
        number = max(self.standing(id).attempts("run"), default=0) + 1
        while not self._create(id, f"run-{number}.json", run.to_json()):
            number += 1

    def delete(self, id: str) -> None:
        """Forget a plan; the plan itself goes last, so that a crash leaves it to be found."""
        names = sorted(self.standing(id).names - {_PLAN})
        self.storage.delete([self._path(id, name) for name in names])
        self.storage.delete([self._path(id, _PLAN)])

    def expire(self, options: Mapping[str, str], now: datetime) -> tuple[str, ...]:
        """Forget plans that are older than the retention, and return their ids.

        One that is under way stays, and so does one that can still be undone, or is damaged.
        """
        kept: timedelta = RETENTION.read(options)
        gone = []
        for record in self.list():
            if record.state in (PlanState.APPLYING, PlanState.UNDOING, PlanState.DAMAGED):
                continue
            until = None if record.applied is None else record.applied.undo_until
            undoable = record.state is PlanState.APPLIED and until is not None and until > now
            if record.plan.created_at + kept < now and not undoable:
                self.delete(record.plan.id)
                gone.append(record.plan.id)
        return tuple(gone)

    def _damaged(self, id: str, error: Corrupt) -> PlanRecord:
        try:
            plan = self.load(id)
        except (Corrupt, NotFound):
            plan = unread_plan(id)
        return PlanRecord(plan, PlanState.DAMAGED, damage=str(error))

    def _finish(self, id: str, name: str, text: str) -> None:
        if not self._create(id, name, text):
            raise Conflict(
                f"another process wrote {name} of the plan {id} first.",
                next_step="Look what came of the plan.",
                plan=id,
            )

    def _create(self, id: str, name: str, text: str) -> bool:
        return self.storage.create(self._path(id, name), text.encode())

    def _read(self, id: str, name: str) -> bytes | None:
        try:
            return self.storage.read(self._path(id, name))
        except NotFound:
            return None

    def _path(self, id: str, name: str) -> str:
        check_plan_id(id)
        return f"{PLANS_FOLDER}/{id}/{name}"


def _sealed(text: str) -> str:
    """Add the checksum of a JSON object to its end, as one more member."""
    return f'{text[:-1]}, "seal": "{hashlib.sha256(text.encode()).hexdigest()}"}}'


def _check_seal(data: bytes, path: str) -> None:
    """Refuse a plan that was edited; those of earlier builds have no seal."""
    end = _SEAL.search(data, max(len(data) - _SEAL_BYTES, 0))
    if end is None or end.end() != len(data):
        if _SEALED in data[-_SEAL_BYTES:]:
            raise _edited(path, "its seal is not at its end")
        return
    if hashlib.sha256(data[: end.start()] + b"}").hexdigest().encode() != end[1]:
        raise _edited(path, "its seal is that of another text")


def _edited(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path} is not as it was made: {why}.",
        next_step="Plans are not edited: plan again. Where it was applied, an undo needs it: "
        "restore it from a copy.",
        path=path,
    )
