"""Savepoints: instants whose files no cleaning takes and no archiving passes."""

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.views import savepoints
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.metadata.clean import CleanPlan
from lakewright.format.hudi.metadata.restore import (
    SavepointMetadata,
    SavepointPartition,
    encode_savepoint,
)
from lakewright.model.errors import AlreadyExists, Conflict, InstantNotFound, Invalid
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.shown import SHOWN, Shown
from lakewright.storage.paths import split
from lakewright.table.file_index import FileIndex
from lakewright.table.horizon import check_retained
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SavepointPreview(Shown):
    """The savepoint that would be made, or deleted, and the files that it keeps."""

    table: str
    instant: str
    note: str
    by: str
    partitions: int
    files: int
    deletes: bool = False

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text: there is one."""
        note = f" ({self.note})" if self.note else ""
        what = "may be cleaned again" if self.deletes else "are kept"
        verb = "deletion of the savepoint" if self.deletes else "savepoint"
        yield (
            f"{verb} {self.instant} of {self.table}{note}: {self.files} files of "
            f"{self.partitions} partitions {what}"
        )

    def to_json(self) -> str:
        """Return it for programs."""
        value = {
            "table": self.table,
            "instant": self.instant,
            "note": self.note,
            "by": self.by,
            "partitions": self.partitions,
            "files": self.files,
            "deletes": self.deletes,
        }
        return json.dumps(value, ensure_ascii=False)


def plan_savepoint(
    work: Servicing, instant: str | None = None, note: str = "", by: str = ""
) -> SavepointPreview:
    """Say what ``savepoint`` would keep; nothing is written. It raises where that would."""
    target, body = _drafted(work, instant, note, by)
    _check_untouched(work.state.timeline, target, body)
    files = sum(len(part.files) for part in body.partitions.values())
    return SavepointPreview(work.name, target.requested, note, by, len(body.partitions), files)


def savepoint(work: Servicing, instant: str | None = None, note: str = "", by: str = "") -> Instant:
    """Keep the files of an instant, by default the newest write, until the savepoint is deleted.

    ``HistoryGone`` where they were cleaned away, ``AlreadyExists`` where they are kept already.
    A cleaning that is planned at the same time either leaves them or makes this a ``Conflict``.
    """
    target, body = _drafted(work, instant, note, by)

    def check(now: TimelineView) -> None:
        _check_untouched(now, target, body)

    done = work.upkeep.make_savepoint(target.requested, encode_savepoint(body), check)
    told = facts(instant=target.requested, partitions=len(body.partitions))
    log.info("savepoint made", extra=told)
    return done


def _drafted(
    work: Servicing, instant: str | None, note: str, by: str
) -> tuple[Instant, SavepointMetadata]:
    """Return the write that is to be kept, and the savepoint of its files."""
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
    later = frozenset(_logs_begun_after(view, target))
    for snapshot in FileIndex(work.state).list_files_at(target.requested):
        paths = (path for piece in snapshot.file_slices for path in piece.paths)
        names = tuple(split(path)[1] for path in paths if path not in later)
        work.progress.advance(files=len(names))
        path = snapshot.descriptor.path
        partitions[path] = SavepointPartition(path, names)
    return target, SavepointMetadata(by, int(time.time() * 1000), note, partitions)


def _logs_begun_after(view: TimelineView, target: Instant) -> Iterator[str]:
    """Stream the logs that writes after the target began.

    In layout 1 logs are named after their slice, so that a slice of the target seems to have
    them too. They hold nothing of it, and go when those writes are taken back.
    """
    if view.config.layout == 2:
        return
    writes = [i for i in view.data() if i.requested > target.requested]
    for _, body in view.commits(writes):
        for stats in body.write_stats.values():
            yield from (stat.path for stat in stats if stat.path and stat.log_offset == 0)


def plan_delete_savepoint(work: Servicing, instant: str) -> SavepointPreview:
    """Say what ``delete_savepoint`` would give free; nothing is written."""
    kept = {saved.instant.requested: saved for saved in savepoints(work.state.timeline)}
    found = kept.get(instant)
    if found is None:
        raise InstantNotFound(
            f"There is no savepoint {instant}.",
            next_step=f"Savepoints: {', '.join(kept) or 'none'}.",
            instant=instant,
        )
    return SavepointPreview(
        work.name, instant, found.note, found.by, found.partitions, found.files, deletes=True
    )


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


def _check_untouched(view: TimelineView, target: Instant, kept: SavepointMetadata) -> None:
    """Refuse a savepoint of a write, or of files, that are gone since or about to go."""
    if target not in view.data():
        raise Conflict(
            f"The write {target.requested} was taken back or archived meanwhile.",
            next_step="Choose another completed commit of the timeline.",
            instant=target.requested,
        )
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
