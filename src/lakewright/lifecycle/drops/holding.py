"""What holds the files of a drop for its undo: pins, and a savepoint where others clean the table.

The savepoint is one of the whole write before the drop: whoever reads as of it, or restores the
table to it, finds all that it promises.

Hudi's cleaner heeds a savepoint file by file, but deletes the folder of a partition as a whole once
no file group is left in it. It does not where the folder holds a file of a write under way. So each
dropped partition gets an empty log of a write that never ends: no reader counts it, and it goes
with the savepoint.
"""

import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from lakewright.actions.services.clean_scope import PLANNED_BY
from lakewright.actions.services.savepoints import delete_savepoint, savepoint
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.views import savepoints
from lakewright.format.hudi.metadata.clean import CleanPlan
from lakewright.lifecycle.plans.options import SAVEPOINT
from lakewright.lifecycle.plans.plan import decode, names_of_json
from lakewright.lifecycle.plans.records import PlanState
from lakewright.lifecycle.plans.store import PLANS_FOLDER, PlanStore
from lakewright.model.errors import (
    AlreadyExists,
    Corrupt,
    InstantNotFound,
    LakewrightError,
    NotFound,
)
from lakewright.model.instant import Action
from lakewright.model.logs import facts
from lakewright.storage.port import Storage
from lakewright.storage.streams import map_bounded
from lakewright.table.pins import drop_pins, readable_pins
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: How the note of a savepoint begins that holds files for the undo of a plan.
_NOTE = "for the undo of the plan "
#: The instant of a write that never ends.
_NEVER = "99991231235959999"
#: Files that are made at the same time.
_CREATIONS = 16
#: The pins of a plan: of its attempts to apply it, and to undo it.
_PIN = re.compile(r"(.+-[0-9]{8}T[0-9]{9}-[0-9a-f]{4})(-undo)?-[0-9]+")


def wants_savepoint(view: TimelineView, options: Mapping[str, str]) -> bool:
    """Whether a savepoint is to hold the files of a drop, beside its pins."""
    match SAVEPOINT.read(options):
        case "true":
            return True
        case "false":
            return False
        case _:
            return any(_is_foreign(view.plan(i)) for i in view.by_action(Action.CLEAN))


def _is_foreign(plan: object) -> bool:
    """Whether other software planned a cleaning: ours say so, and heed pins."""
    return isinstance(plan, CleanPlan) and PLANNED_BY not in plan.extra


def hold(work: Servicing, plan: str, partitions: Iterable[str], by: str) -> None:
    """Make a savepoint of the newest write, for a plan that drops partitions.

    One that is there already will do.
    """
    _keep_folders(work.state.storage, plan, list(partitions))
    try:
        savepoint(work, note=f"{_NOTE}{plan}", by=by)
    except AlreadyExists:
        log.info("the newest write has a savepoint already", extra=facts(plan=plan))


def release(work: Servicing, plan: str) -> None:
    """Delete the savepoint of a plan, where there is one; what cannot be deleted now is logged."""
    try:
        state = work.state.refresh()
        _free_folders(state.storage, plan)
        for saved in savepoints(state.timeline):
            if saved.note == f"{_NOTE}{plan}":
                _delete(replace(work, state=state), saved.instant.requested)
    except LakewrightError as error:
        log.warning("a savepoint stays", extra=facts(plan=plan, why=str(error)))


def release_ended(work: Servicing, now: datetime) -> tuple[str, ...]:
    """Delete savepoints and pins of plans that are undone, or can be no more; return those plans.

    A plan that is being applied or undone keeps what it has, and so does one that is damaged.
    """
    state = work.state.refresh()
    store = PlanStore(state.storage)
    ended: set[str] = set()
    for saved in savepoints(state.timeline):
        id = saved.note.removeprefix(_NOTE)
        if id != saved.note and _has_ended(store, id, now):
            _free_folders(state.storage, id)
            _delete(replace(work, state=state), saved.instant.requested)
            ended.add(id)
    for pin in readable_pins(state.storage):
        of_plan = _PIN.fullmatch(pin.id)
        if pin.until <= now.timestamp() or (of_plan and _is_undone(store, of_plan[1])):
            # The pin of an undo that failed ends long before the plan does.
            if of_plan and _has_ended(store, of_plan[1], now):
                _free_folders(state.storage, of_plan[1])
            drop_pins(state.storage, pin.id)
    return tuple(sorted(ended))


def _keep_folders(storage: Storage, plan: str, partitions: list[str]) -> None:
    """Put the empty logs of a plan into the folders of partitions, and write down which."""
    storage.write(_folders_path(plan), json.dumps(partitions, ensure_ascii=False).encode())
    for _ in map_bounded(
        lambda path: storage.create(path, b""), _stays(plan, partitions), threads=_CREATIONS
    ):
        pass


def _free_folders(storage: Storage, plan: str) -> None:
    """Take the empty logs of a plan away."""
    where = _folders_path(plan)
    try:
        partitions = decode(storage.read(where), where, names_of_json)
    except NotFound:
        return
    storage.delete(_stays(plan, partitions))
    storage.delete([where])


def _folders_path(plan: str) -> str:
    return f"{PLANS_FOLDER}/{plan}/folders.json"


def _stays(plan: str, partitions: Iterable[str]) -> list[str]:
    """Return the files of a plan by which Hudi's cleaner leaves the folders of partitions."""
    # In tables with buckets a name begins with the number of one: no table has that many.
    file_id = f"99999999{str(uuid5(NAMESPACE_URL, plan))[8:]}-0"
    name = f".{file_id}_{_NEVER}.log.1_0-0-0"
    return [f"{partition}/{name}" if partition else name for partition in partitions]


def _delete(work: Servicing, instant: str) -> None:
    try:
        delete_savepoint(work, instant)
    except InstantNotFound:
        log.info("a savepoint is gone already", extra=facts(instant=instant))


def _is_undone(store: PlanStore, id: str) -> bool:
    return store.standing(id).state is PlanState.UNDONE


def _has_ended(store: PlanStore, id: str, now: datetime) -> bool:
    try:
        record = store.record(id)
    except NotFound:
        return True
    except Corrupt as error:
        log.warning("a damaged plan keeps what it holds", extra=facts(plan=id, why=str(error)))
        return False
    if record.applied is None or record.state is PlanState.UNDOING:
        return record.state is PlanState.PLANNED
    until = record.applied.undo_until
    return record.state is PlanState.UNDONE or until is None or until <= now
