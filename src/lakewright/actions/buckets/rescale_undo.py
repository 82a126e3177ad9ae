"""Undoing rescales: data and rules go back together, one step or several.

Where the rescales are the last thing that happened to the table, they are rolled back. Otherwise
a rescale goes back to the older rules, and keeps every row that was written since; it stands for
those rules from then on, so that the next undo goes on from there.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakewright.actions.buckets.rescale import (
    STANDS_FOR,
    PartitionRescaled,
    RescaleResult,
    rescale,
)
from lakewright.actions.buckets.rescale_plan import RescalePlan, plan_back
from lakewright.actions.buckets.rescale_slices import BucketTable
from lakewright.actions.services.rolling_back import rollback
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.undoable import check_files, check_quiet, check_unsaved
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import ConfigVersion, HashingStore
from lakewright.model.errors import Conflict, HistoryGone, Invalid
from lakewright.model.instant import Instant
from lakewright.model.logs import facts
from lakewright.model.shown import SHOWN, Shown
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UndoPlan(Shown):
    """What an undo is going to do: roll rescales back, newest first, or rescale to older rules.

    ``to`` is the hashing config whose rules count afterwards. ``why`` says why rows have to
    move where they do.
    """

    table: str
    to: str
    rolled_back: tuple[str, ...] = ()
    rescale: RescalePlan | None = None
    why: str = ""

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines of text; ``limit`` partitions, None for all."""
        if self.rescale is None:
            yield (
                f"undo of {self.table}: back to the rules of {self.to}; rolled back: "
                f"{', '.join(self.rolled_back)}"
            )
            return
        yield f"undo of {self.table}: back to the rules of {self.to} by a rescale, {self.why}"
        yield from self.rescale.lines(limit)

    def to_json(self) -> str:
        """Return the plan for programs."""
        value = {
            "table": self.table,
            "to": self.to,
            "rolled_back": list(self.rolled_back),
            "why": self.why,
            "rescale": None if self.rescale is None else json.loads(self.rescale.to_json()),
        }
        return json.dumps(value, ensure_ascii=False)


def plan_undo(work: Servicing, *, steps: int = 1, to: str | None = None) -> UndoPlan:
    """Say what ``undo_rescale`` would do; nothing is written.

    ``steps`` is how many rescales are undone, and with them every change of rules since;
    ``to`` names instead the hashing config to go back to, be it one that was undone.
    """
    table = BucketTable.of(work)
    view = table.state.timeline
    versions = HashingStore(table.state.storage).history(view)
    bodies = _bodies(view, versions)
    stack = _stack(versions, bodies)
    target = _step_back(stack, steps) if to is None else _named(versions, to)
    if target.instant == versions[-1].instant:
        raise Invalid(
            f"the rules of {target.instant} are those that count.",
            next_step="Give the instant of older ones: buckets.show() lists them.",
            version=target.instant,
        )
    going = [one.instant for one in versions if one.instant > target.instant]
    why = _why_not_rolled_back(view, bodies, going)
    if why is None:
        return UndoPlan(work.name, target.instant, tuple(reversed(going)))
    back = plan_back(work, target.instant, target.counts())
    return UndoPlan(work.name, target.instant, (), back, why)


def undo_rescale(work: Servicing, *, steps: int = 1, to: str | None = None) -> RescaleResult:
    """Undo rescales, data and rules together: see ``plan_undo``.

    ``Conflict`` where others are at work on the partitions; then nothing was changed.
    """
    plan = plan_undo(work, steps=steps, to=to)
    if plan.rescale is not None:
        return rescale(work, plan.rescale)
    try:
        return _rolled_back(work, plan)
    except (Conflict, HistoryGone) as refused:
        # Somebody was faster, after the plan was made: rows that came since are kept.
        told = facts(table=work.name, to=plan.to, why=str(refused))
        log.info("an undo moves rows instead of rolling back", extra=told)
        table = BucketTable.of(work)
        store = HashingStore(table.state.storage)
        target = _named(store.history(table.state.timeline), plan.to)
        return rescale(work, plan_back(work, plan.to, target.counts()))


def _rolled_back(work: Servicing, plan: UndoPlan) -> RescaleResult:
    table = BucketTable.of(work)
    view = table.state.timeline
    store = HashingStore(table.state.storage)
    target = _named(store.history(view), plan.to)
    partitions = _going_back(view, plan.rolled_back, table.counts, target.counts())
    done: Instant | None = None
    for instant in plan.rolled_back:
        done = rollback(work, instant)
    return RescaleResult(work.name, done, plan.to, partitions, plan.rolled_back)


def _going_back(
    view: TimelineView,
    undone: tuple[str, ...],
    now: BucketCounts,
    then: BucketCounts,
) -> Mapping[str, PartitionRescaled]:
    """Return what vanishes by the rollbacks, by partition."""
    found: dict[str, PartitionRescaled] = {}
    for instant in undone:
        body = view.commit_metadata(view.instant(instant))
        for partition in {*body.write_stats, *body.replaced} - found.keys():
            stats = body.write_stats.get(partition, ())
            found[partition] = PartitionRescaled(
                before=now.number_of(partition),
                after=then.number_of(partition),
                groups=len(stats),
                rows=sum(stat.num_writes for stat in stats),
            )
    return dict(sorted(found.items()))


def _bodies(
    view: TimelineView, versions: tuple[ConfigVersion, ...]
) -> Mapping[str, CommitMetadata]:
    """Return the commits that brought versions of the rules, archived ones too."""
    wanted = {version.instant for version in versions} - {FIRST_INSTANT}
    active = {instant.requested for instant in view.data()}
    whole = view if wanted <= active else view.with_history()
    found = [instant for instant in whole.data() if instant.requested in wanted]
    return {instant.requested: body for instant, body in whole.commits(found)}


@dataclass(frozen=True, slots=True)
class _Step:
    """A version of the rules that counts or did, and whether rows moved when it came."""

    version: ConfigVersion
    moved: bool


def _stack(
    versions: tuple[ConfigVersion, ...], bodies: Mapping[str, CommitMetadata]
) -> list[_Step]:
    """Return the versions that led to the one that counts, oldest first.

    A rescale that went back took the place of the older version that it stands for: what came
    between the two was undone.
    """
    stack: list[_Step] = []
    for version in versions:
        body = bodies.get(version.instant)
        back = None if body is None else body.extra.get(STANDS_FOR)
        names = [step.version.instant for step in stack]
        if back in names:
            place = names.index(back)
            stack[place:] = [_Step(version, stack[place].moved)]
        else:
            moved = body is not None and bool(body.replaced or body.write_stats)
            stack.append(_Step(version, moved))
    return stack


def _step_back(stack: list[_Step], steps: int) -> ConfigVersion:
    if steps < 1:
        raise Invalid(f"steps={steps} is no number of rescales.", next_step="Give 1 or more.")
    moved = [place for place, step in enumerate(stack) if step.moved and place]
    if len(moved) < steps:
        raise Invalid(
            f"{len(moved)} rescales can be undone, not {steps}.",
            next_step="buckets.show() lists the versions of the rules."
            if moved
            else "Rules that were set without moving rows are changed by buckets.set().",
            steps=steps,
        )
    return stack[moved[-steps] - 1].version


def _named(versions: tuple[ConfigVersion, ...], to: str) -> ConfigVersion:
    found = next((version for version in versions if version.instant == to), None)
    if found is None:
        known = ", ".join(version.instant for version in versions) or "none"
        raise Invalid(
            f"there are no bucket rules of {to}.",
            next_step=f"Give the instant of a hashing config: {known}.",
            version=to,
        )
    return found


def _why_not_rolled_back(
    view: TimelineView, bodies: Mapping[str, CommitMetadata], going: list[str]
) -> str | None:
    """Say why instants cannot simply be rolled back; None where they can."""
    targets = {instant.requested: instant for instant in view.data()}
    if strange := [one for one in going if one not in bodies or one not in targets]:
        return f"because {strange[0]} is not on the active timeline"
    first = min(targets[one].completed or "" for one in going)
    later = [
        instant.requested
        for instant in view.data()
        if (instant.completed or "") >= first and instant.requested not in going
    ]
    if later:
        return f"because {len(later)} writes took effect since, the newest is {max(later)}"
    undone = [targets[one] for one in going]
    try:
        check_quiet(view)
        check_unsaved(view, undone)
        check_files(view, undone)
    except (Conflict, HistoryGone) as refused:
        return f"because {refused.message}"
    return None
