"""Savepoints: instants whose files no cleaning takes and no archiving passes."""

import logging
import time

from lakewright.actions.services.servicing import Servicing
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.metadata.clean import CleanPlan
from lakewright.format.hudi.metadata.restore import (
    SavepointMetadata,
    SavepointPartition,
    encode_savepoint,
)
from lakewright.model.errors import AlreadyExists, Conflict, Invalid
from lakewright.model.instant import Action, Instant, State
from lakewright.model.logs import facts
from lakewright.storage.paths import split
from lakewright.table.file_index import FileIndex
from lakewright.table.horizon import check_retained
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


def savepoint(work: Servicing, instant: str | None = None, note: str = "", by: str = "") -> Instant:
    """Keep the files of an instant, by default the newest write, until the savepoint is deleted.

    ``HistoryGone`` where they were cleaned away, ``AlreadyExists`` where they are kept already.
    A cleaning that is planned at the same time either leaves them or makes this a ``Conflict``.
    """
    view = work.state.timeline
    target = _write(view, instant)
    check_retained(view, target.requested)
    if any(i.requested == target.requested for i in _savepoints(view) if i.is_completed):
        raise AlreadyExists(
            f"There is a savepoint {target.requested} already.",
            next_step="Delete it first to give it another note.",
            instant=target.requested,
        )
    work.progress.stage("listing the files to keep")
    partitions = {}
    for snapshot in FileIndex(work.state).list_files_at(target.requested):
        names = tuple(split(path)[1] for piece in snapshot.file_slices for path in piece.paths)
        work.progress.advance(files=len(names))
        path = snapshot.descriptor.path
        partitions[path] = SavepointPartition(path, names)
    body = SavepointMetadata(by, int(time.time() * 1000), note, partitions)
    begun = Instant(target.requested, Action.SAVEPOINT, State.INFLIGHT)

    def check(now: TimelineView) -> None:
        _check_untouched(now, body)

    work.upkeep.start(begun)
    done = work.upkeep.complete(begun, encode_savepoint(body), check)
    log.info("savepoint made", extra=facts(instant=target.requested, partitions=len(partitions)))
    return done


def delete_savepoint(work: Servicing, instant: str) -> None:
    """Give the files of a savepoint free; ``InstantNotFound`` where there is none."""
    work.upkeep.drop_savepoint(instant)
    log.info("savepoint deleted", extra=facts(instant=instant))


def _write(view: TimelineView, instant: str | None) -> Instant:
    if instant is None:
        latest = view.latest_data()
        if latest is None:
            raise Invalid("the table has no write yet.", next_step="Write rows first.")
        return latest
    found = view.instant(instant)
    if not (found.is_completed and found.action.writes_data):
        raise Invalid(
            f"{found} is no completed write.",
            next_step="Choose a completed commit of the timeline.",
            instant=instant,
        )
    return found


def _savepoints(view: TimelineView) -> tuple[Instant, ...]:
    return view.by_action(Action.SAVEPOINT)


def _check_untouched(view: TimelineView, kept: SavepointMetadata) -> None:
    """Refuse a savepoint of files that a cleaning has taken, or is about to take."""
    for instant in view.by_action(Action.CLEAN):
        if instant.requested < min(_instants(kept), default=""):
            continue
        plan = view.plan(instant)
        if not isinstance(plan, CleanPlan):
            continue
        for partition, files in plan.files.items():
            of_partition = kept.partitions.get(partition)
            names = {split(file.path or "")[1] for file in files}
            both = names.intersection(of_partition.files if of_partition else ())
            if both:
                raise Conflict(
                    f"The cleaning {instant.requested} takes {len(both)} files that the savepoint "
                    f"would keep, the first is {min(both)} of partition {partition!r}.",
                    next_step="Choose a later instant, or try again after the cleaning.",
                    instant=str(instant),
                )


def _instants(kept: SavepointMetadata) -> list[str]:
    """Return the instants of the files that are kept; older cleanings cannot have meant them."""
    found = []
    for part in kept.partitions.values():
        for name in part.files:
            file = base_file(part.partition, name) or log_file(part.partition, name)
            if file is not None:
                found.append(file.instant)
    return found
