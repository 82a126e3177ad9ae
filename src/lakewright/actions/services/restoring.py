"""Going back to an earlier instant."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakewright.actions.services.repairing import repaired
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.undoable import check_files, check_quiet, check_unsaved
from lakewright.format.hudi.metadata.restore import RestorePlan
from lakewright.format.hudi.metadata.rollback import InstantInfo
from lakewright.model.errors import HistoryGone, Invalid
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.timeline.leftovers import written_paths
from lakewright.timeline.plans import SERVICES
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UndoneInstant:
    """One instant that a restore takes back: what it did, and how many files go with it."""

    instant: Instant
    operation: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RestorePreview(Shown):
    """What a restore to ``target`` would undo, newest first."""

    table: str
    target: Instant
    undone: Sequence[UndoneInstant]

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text; ``limit`` instants, None for all."""
        files = sum(item.files for item in self.undone)
        yield (
            f"restore of {self.table} to {self.target.requested}: {len(self.undone)} instants "
            f"are undone, {files} files deleted"
        )
        items = (
            f"  {item.instant.requested} {item.operation}: {item.files} files, {item.bytes} bytes"
            for item in self.undone
        )
        yield from first_of(items, len(self.undone), limit)

    def to_json(self) -> str:
        """Return it for programs."""
        value = {
            "table": self.table,
            "target": self.target.requested,
            "undone": [
                {
                    "instant": item.instant.requested,
                    "operation": item.operation,
                    "files": item.files,
                    "bytes": item.bytes,
                }
                for item in self.undone
            ],
        }
        return json.dumps(value, ensure_ascii=False)


def plan_restore(work: Servicing, instant: str) -> RestorePreview:
    """Say what ``restore`` would undo; nothing is written. It raises where that would."""
    view = work.state.timeline
    target, undone = _checked(view, instant)
    return RestorePreview(work.name, target, tuple(describe_undone(view, i) for i in undone))


def restore(work: Servicing, instant: str) -> Instant | None:
    """Go back to a completed write that is on the timeline; None where it is the newest already.

    Everything that took effect after it, and every plan made after it, is undone for good.
    ``HistoryGone`` where files of that time were cleaned away, ``Conflict`` while writes are under
    way or where a later savepoint would go. What was cut off is
    finished or taken back first.
    """
    work = repaired(work, writes=True)
    if not _checked(work.state.timeline, instant)[1]:
        return None

    def make(view: TimelineView) -> RestorePlan:
        _, undone = _checked(view, instant)
        infos = tuple(InstantInfo(i.requested, i.action) for i in undone)
        return RestorePlan(infos, savepoint=instant)

    work.progress.stage("restoring")
    done = work.upkeep.restore(make)
    log.info("restored", extra=facts(to=instant, by=done.requested))
    return done


def _checked(view: TimelineView, instant: str) -> tuple[Instant, tuple[Instant, ...]]:
    """Return the target and what has to be undone for it, newest first."""
    target = view.instant(instant)
    if not (target.is_completed and target.action.writes_data):
        raise Invalid(
            f"{target} is no completed write.",
            next_step="Choose a completed commit of the timeline.",
            instant=instant,
        )
    bound = target.completed or target.requested
    done = sorted(
        (i for i in view.data() if (i.completed or "") > bound),
        key=lambda i: (i.completed or "", i.requested),
        reverse=True,
    )
    plans = [i for i in view.pending() if i.requested > bound and _is_service(i)]
    undone = (*sorted(plans, reverse=True), *done)
    check_quiet(view)
    _check_active(view, target)
    check_unsaved(view, undone)
    saved = any(i.requested == instant and i.is_completed for i in view.by_action(Action.SAVEPOINT))
    if undone:
        check_files(view, undone, instant if saved else None)
    return target, undone


def _is_service(instant: Instant) -> bool:
    # In layout 1 a pending replace commit that is no write under way is a clustering.
    return instant.action in (*SERVICES, Action.REPLACECOMMIT)


def _check_active(view: TimelineView, target: Instant) -> None:
    """Refuse where writes after the target were archived: they cannot be undone any more."""
    start = view.start
    if start is not None and target.requested >= start:
        return
    archived = view.bodies.archived_since(target.requested)
    if any(requested > target.requested for requested in archived):
        raise HistoryGone(
            f"writes after {target.requested} have been archived.",
            next_step="Archived writes are not undone: see the timeline for later ones."
            if start is None
            else f"Restore to {start} or later.",
            instant=target.requested,
            earliest=start or "none",
        )


def describe_undone(view: TimelineView, instant: Instant) -> UndoneInstant:
    """Say what goes with an instant that is taken back."""
    if not instant.is_completed:
        return UndoneInstant(instant, f"plan of a {instant.action}", 0, 0)
    metadata = view.commit_metadata(instant)
    stats = [stat for found in metadata.write_stats.values() for stat in found]
    size = sum(stat.file_size_in_bytes for stat in stats)
    operation = metadata.operation or str(instant.action)
    return UndoneInstant(instant, operation, len(written_paths(metadata)), size)
