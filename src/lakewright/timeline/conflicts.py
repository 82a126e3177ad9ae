"""Which writes cannot both take effect: Hudi's rules on file groups, plans and schemas.

A rival is a write that took effect after ours had begun. It conflicts when both touch a file
group (in bucket tables: a bucket), be it by writing or by replacing it. A compaction that was
planned before our write began does not: our files were made to lie on top of it. So does every
plan of a compaction made after our write began, and every plan of a clustering, on one of our
groups: what they produce would not hold what we wrote. A rescale of buckets that is under way
takes its partitions whole: a group that we add to one of them would be in a bucket of before.
In layout 2 logs never conflict with a compaction: they belong to the newest base that was
requested when they complete, which is its.

Whoever carries out a plan is in conflict with writes that took effect since it was planned: a
clustering with all that touched its groups, a compaction with those that wrote them a base file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.model.errors import Conflict
from lakewright.model.instant import Action, Instant
from lakewright.timeline.committing import Rivals
from lakewright.timeline.view import TimelineView

_COMPACT = "COMPACT"
#: What a replace commit that changes numbers of buckets calls itself.
_OVERWRITE = "INSERT_OVERWRITE"
#: Operations that merge files of a group and change none of its rows.
_MERGING = (_COMPACT, "LOG_COMPACT")
_COMPACTIONS = (Action.COMPACTION, Action.LOGCOMPACTION)
_PLANNED = (*_COMPACTIONS, Action.CLUSTERING, Action.REPLACECOMMIT)

_AGAIN = "Nothing of this write took effect; try it again on the table as it is now."

#: A file group as conflicts see it: the partition, and a file id or a bucket.
Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Touched:
    """The file groups that a write touches; ``buckets`` compares by bucket number."""

    buckets: bool
    layout: int = 2

    def by(self, metadata: CommitMetadata) -> frozenset[Place]:
        """Return what a commit wrote and replaced."""
        return self._by(metadata, logs=True)

    def beside_compaction(self, metadata: CommitMetadata) -> frozenset[Place]:
        """Return what a commit wrote and replaced that a compaction does not leave room for."""
        return self._by(metadata, logs=self.layout == 1)

    def rewritten(self, metadata: CommitMetadata) -> frozenset[Place]:
        """Return the groups that a commit replaced, or wrote a base file for."""
        return self._by(metadata, logs=False)

    def _by(self, metadata: CommitMetadata, *, logs: bool) -> frozenset[Place]:
        written = (
            (partition, stat.file_id)
            for partition, stats in metadata.write_stats.items()
            for stat in stats
            if logs or not _is_log(stat.path)
        )
        replaced = (
            (partition, file_id) for partition, ids in metadata.replaced.items() for file_id in ids
        )
        return frozenset(self._place(p, f) for pairs in (written, replaced) for p, f in pairs)

    def planned(self, plan: object) -> frozenset[Place]:
        """Return what a plan of maintenance is going to rewrite."""
        return frozenset(self._place(p, f) for p, f in _groups(plan))

    def _place(self, partition: str, file_id: str) -> Place:
        return partition, file_id[:8] if self.buckets and file_id[:8].isdigit() else file_id


def _is_log(path: str | None) -> bool:
    return path is not None and path.rpartition("/")[2].startswith(".")


def _groups(plan: object) -> Iterator[Place]:
    match plan:
        case CompactionPlan():
            yield from ((op.partition, op.file_id) for op in plan.operations)
        case ReplacePlan(clustering=clustering) if clustering is not None:
            for group in clustering.groups:
                yield from ((s.partition, s.file_id) for s in group.slices)
        case _:
            return


def _is_rescale(plan: object) -> bool:
    return (
        isinstance(plan, ReplacePlan)
        and plan.clustering is not None
        and plan.operation == _OVERWRITE
    )


def check_rivals(instant: str, metadata: CommitMetadata, rivals: Rivals, touched: Touched) -> None:
    """Raise ``Conflict`` where a rival touched a file group of ours."""
    ours = touched.by(metadata)
    beside = touched.beside_compaction(metadata)
    for rival, body in rivals:
        if body.operation in _MERGING and rival.requested < instant:
            continue
        both = (beside if body.operation in _MERGING else ours) & touched.by(body)
        if both:
            raise _lost(f"{rival.action} {rival.requested}", body.operation, both, rival)


def check_plans(
    view: TimelineView, instant: str, metadata: CommitMetadata, touched: Touched
) -> None:
    """Raise ``Conflict`` where a pending plan is going to rewrite a file group of ours."""
    ours = touched.by(metadata)
    beside = touched.beside_compaction(metadata)
    if not ours:
        return
    for pending in view.pending():
        planned = view.planned_as(pending)
        if planned not in _PLANNED or pending.requested == instant:
            continue
        if planned in _COMPACTIONS and pending.requested < instant:
            continue
        mine = beside if planned in _COMPACTIONS else ours
        plan = view.plan(pending)
        both = mine & touched.planned(plan)
        if not both and _is_rescale(plan):
            taken = {partition for partition, _ in _groups(plan)}
            both = frozenset(place for place in mine if place[0] in taken)
        if both:
            # A write that begins after the plan of a compaction goes beside it; a clustering waits.
            waits = planned not in _COMPACTIONS and not _is_rescale(plan)
            way = _waits_for(pending) if waits else _AGAIN
            raise _lost(f"the planned {planned} {pending.requested}", None, both, pending, way)


def check_planned(action: Action, plan: object, rivals: Rivals, touched: Touched) -> None:
    """Raise ``Conflict`` where a rival took a group away from the plan that is carried out.

    ``action`` makes one file or several of each group. A compaction minds its very groups: the one
    that an overwrite began for a bucket is another, and the planned one is gone, with or without
    a merged file in it.
    """
    merges = action in _COMPACTIONS
    touched = replace(touched, buckets=False) if merges else touched
    planned = touched.planned(plan)
    for rival, body in rivals:
        theirs = touched.rewritten(replace(body, replaced={})) if merges else touched.by(body)
        if both := planned & theirs:
            raise _lost(f"{rival.action} {rival.requested}", body.operation, both, rival)


def _waits_for(plan: Instant) -> str:
    return (
        "Nothing of this write took effect; let the plan be carried out (table.cluster()) or take "
        f"it back (table.rollback({plan.requested!r})), and try it again."
    )


def _lost(
    rival: str,
    operation: str | None,
    both: frozenset[Place],
    instant: Instant,
    way: str = _AGAIN,
) -> Conflict:
    partition, group = min(both)
    what = f" ({operation})" if operation else ""
    return Conflict(
        f"{rival}{what} touches {len(both)} file groups of this write, the first is {group} of "
        f"partition {partition!r}.",
        next_step=way,
        instant=str(instant),
        groups=len(both),
    )


def settled_schema(
    metadata: CommitMetadata, rivals: Rivals, before: Mapping[str, str]
) -> CommitMetadata:
    """Return the metadata with the schema that the table has after this write.

    ``before`` is the ``extra`` of the commit that the write started from. A schema that only one
    side changed wins; ``Conflict`` when both changed it, and differently.
    """
    carried = [(i, body) for i, body in rivals if body.schema and body.operation != _COMPACT]
    if not carried:
        return metadata
    rival, latest = carried[-1]
    ours, theirs = _columns(metadata.extra), _columns(latest.extra)
    start = _columns(before)
    if theirs in (ours, start):
        return metadata
    if ours == start:
        changed = {key: latest.extra[key] for key in _SCHEMAS if key in latest.extra}
        return replace(metadata, extra={**metadata.extra, **changed})
    raise Conflict(
        f"{rival.action} {rival.requested} changed the table's schema, and so does this write.",
        next_step=_AGAIN,
        instant=str(rival),
    )


_SCHEMAS = ("schema", "latest_schema")


def _columns(extra: Mapping[str, str]) -> object:
    """Return what makes two schemas differ: their columns, and their history of columns."""
    text = extra.get("schema")
    return (parse_avro_schema(text) if text else None, extra.get("latest_schema"))
