"""What services have done to a table, and are going to do, as its timeline tells."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from lakewright.format.hudi.metadata.clean import CleanMetadata, CleanPlan, planned_names
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.format.hudi.metadata.restore import SavepointMetadata
from lakewright.format.hudi.metadata.rollback import RollbackMetadata
from lakewright.model.errors import Corrupt, NotFound
from lakewright.model.instant import Action, Instant
from lakewright.model.services import Service
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.timeline.bodies import Plan
from lakewright.timeline.entries import Entry
from lakewright.timeline.plans import is_plan
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class PlannedService(Shown):
    """A compaction or clustering, from its plan on; ``groups`` is None where no plan is left.

    ``groups`` are the file groups of a compaction, and the input groups of a clustering.
    """

    service: Service
    instant: Instant
    groups: int | None
    partitions: tuple[str, ...]

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text; ``limit`` partitions, None for all."""
        groups = "no plan is left" if self.groups is None else f"{self.groups} groups"
        yield (
            f"{self.service} {self.instant.requested} ({self.instant.state}): {groups}, "
            f"{len(self.partitions)} partitions"
        )
        items = (f"  {path or '(table)'}" for path in self.partitions)
        yield from first_of(items, len(self.partitions), limit)


@dataclass(frozen=True, slots=True)
class Cleaning(Shown):
    """A cleaning: its plan, and what it did once it is complete."""

    instant: Instant
    plan: CleanPlan | None
    done: CleanMetadata | None

    @property
    def planned(self) -> Iterator[tuple[str, str]]:
        """Partition and name of each file that the plan deletes."""
        if self.plan is not None:
            yield from (
                (partition, name)
                for partition, names in sorted(planned_names(self.plan))
                for name in names
            )

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream it as lines of text; ``limit`` files, None for all."""
        files = list(self.planned)
        policy = "no plan is left" if self.plan is None else self.plan.policy
        yield (
            f"{Service.CLEANING} {self.instant.requested} ({self.instant.state}), {policy}: "
            f"{len(files)} files"
        )
        items = (f"  {partition or '(table)'} {name}" for partition, name in files)
        yield from first_of(items, len(files), limit)


@dataclass(frozen=True, slots=True)
class Rollback:
    """A completed rollback, and what it undid."""

    instant: Instant
    done: RollbackMetadata


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint: the write it keeps, by whom, when and why, and how many files it holds.

    ``instant.requested`` is the instant of the write, ``instant.completed`` when it was kept.
    """

    instant: Instant
    by: str
    at: dt.datetime
    note: str
    partitions: int
    files: int


_PLANNED = {
    Service.COMPACTION: (Action.COMPACTION,),
    Service.LOG_COMPACTION: (Action.LOGCOMPACTION,),
    Service.CLUSTERING: (Action.CLUSTERING, Action.REPLACECOMMIT),
}


def planned_services(view: TimelineView, service: Service) -> Iterator[PlannedService]:
    """Stream the compactions, log compactions or clusterings of a timeline, newest first."""
    for entry in reversed(view.entries):
        if entry.planned in _PLANNED[service] and (not entry.archived) and is_plan(view, entry):
            groups, partitions = _groups(_plan(view, entry))
            yield PlannedService(service, entry.instant, groups, partitions)


def cleanings(view: TimelineView) -> Iterator[Cleaning]:
    """Stream the cleanings of a timeline, newest first, planned and completed ones."""
    for entry in reversed(view.entries):
        if entry.instant.action is Action.CLEAN:
            plan = _plan(view, entry)
            done = view.metadata(entry.instant) if entry.instant.is_completed else None
            yield Cleaning(
                entry.instant,
                plan if isinstance(plan, CleanPlan) else None,
                done if isinstance(done, CleanMetadata) else None,
            )


def rollbacks(view: TimelineView) -> Iterator[Rollback]:
    """Stream the completed rollbacks of a timeline, newest first."""
    for instant in reversed(view.by_action(Action.ROLLBACK)):
        done = view.metadata(instant) if instant.is_completed else None
        if isinstance(done, RollbackMetadata):
            yield Rollback(instant, done)


def savepoints(view: TimelineView) -> Iterator[Savepoint]:
    """Stream the savepoints of a timeline, newest first."""
    for instant in reversed(view.by_action(Action.SAVEPOINT)):
        kept = view.metadata(instant) if instant.is_completed else None
        if isinstance(kept, SavepointMetadata):
            yield Savepoint(
                instant,
                kept.by,
                dt.datetime.fromtimestamp(kept.at / 1000, dt.UTC),
                kept.comments,
                len(kept.partitions),
                sum(len(part.files) for part in kept.partitions.values()),
            )


def _plan(view: TimelineView, entry: Entry) -> Plan:
    try:
        return view.plan(entry.instant)
    except (Corrupt, NotFound):  # a view shows what is there; fsck tells what is wrong
        return None


def _groups(plan: Plan) -> tuple[int | None, tuple[str, ...]]:
    match plan:
        case CompactionPlan():
            parts = {operation.partition for operation in plan.operations}
            return len(plan.operations), tuple(sorted(parts))
        case ReplacePlan() if plan.clustering is not None:
            pieces = [piece for group in plan.clustering.groups for piece in group.slices]
            return len(plan.clustering.groups), tuple(sorted({p.partition for p in pieces}))
        case _:
            return None, ()
