"""Mending buckets: rows go into the buckets of their keys, and each bucket gets one group.

What a check found is the plan. Only the buckets that are wrong, and those whose rows lie in
others, are written anew, in one commit.
"""

import hashlib
import html
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from lakewright.actions.buckets.check import BucketReport, PartitionDamage, check_buckets
from lakewright.actions.buckets.looking import BucketIndex, look_at
from lakewright.actions.buckets.repair_task import RepairWork, repair_partition
from lakewright.actions.buckets.rescale_commit import OVERTAKEN, replacing
from lakewright.actions.buckets.sizes import shown_bytes
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import list_slices
from lakewright.actions.write.admission import check_config
from lakewright.format.hudi.metadata.commit import RESCALED, WriteStat
from lakewright.index.hashing_store import HashingStore
from lakewright.model.errors import Conflict, NotFound, Unsupported
from lakewright.model.files import FileSlice
from lakewright.model.instant import Instant
from lakewright.model.logs import facts
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.timeline.committing import Rivals
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: A partition that is larger is divided among several tasks, each of which reads all of it.
_SHARE = 4 << 30
_MOST_SHARES = 16


@dataclass(frozen=True, slots=True)
class RepairItem:
    """A partition that is mended: how many of its buckets and groups are written anew, and why."""

    partition: str
    buckets: int
    mended: int
    groups: int
    rows: int
    astray: int
    bytes: int
    why: str


@dataclass(frozen=True, slots=True, repr=False)
class RepairPlan(Shown):
    """What a repair is going to do.

    ``version`` is that of the rules it goes by. ``metadata`` are partitions for which the hashing
    metadata names a wrong number, with the right one.
    """

    table: str
    version: str | None
    items: tuple[RepairItem, ...]
    metadata: Mapping[str, int] = field(default_factory=dict)
    damage: tuple[PartitionDamage, ...] = field(default=(), compare=False)

    @property
    def id(self) -> str:
        """A short text that differs where what is mended differs."""
        names = sorted(str(piece.group) for one in self.damage for piece in one.groups)
        told = "\n".join([self.table, str(self.version), *names, *sorted(self.metadata)])
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.items and not self.metadata

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the plan as lines; ``limit`` partitions, None for all."""
        rows = sum(item.rows for item in self.items)
        groups = sum(item.groups for item in self.items)
        held = shown_bytes(sum(item.bytes for item in self.items))
        yield (
            f"repair of the buckets of {self.table}: {len(self.items)} partitions, {groups} file "
            f"groups, {rows} rows, {held}"
        )
        items = (
            f"  {item.partition or '(table)'}: {item.mended} of {item.buckets} buckets from "
            f"{item.groups} groups, {item.rows} rows, {item.why}"
            for item in self.items
        )
        yield from first_of(items, len(self.items), limit)
        if self.metadata:
            yield f"  hashing metadata: {len(self.metadata)} numbers are put right"

    def to_json(self) -> str:
        """Return the plan for programs."""
        value = {
            "id": self.id,
            "table": self.table,
            "version": self.version,
            "items": [
                {name: getattr(item, name) for name in RepairItem.__slots__} for item in self.items
            ],
            "metadata": dict(self.metadata),
        }
        return json.dumps(value, ensure_ascii=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        names = ("partition", "buckets", "mended", "groups", "rows", "bytes", "why")
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(str(getattr(item, name)))}</td>" for name in names)
            + "</tr>"
            for item in islice(self.items, SHOWN)
        )
        title = html.escape(next(self.lines(0)))
        return f"<b>{title}</b><table><tr>{head}</tr>{rows}</table>"


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair did; ``dropped`` rows had the key of a newer one. None where nothing was."""

    table: str
    instant: Instant | None
    partitions: int = 0
    groups: int = 0
    files: int = 0
    rows: int = 0
    dropped: int = 0

    def __str__(self) -> str:
        if self.instant is None:
            return f"buckets of {self.table}: nothing to mend"
        return (
            f"buckets of {self.table} mended by {self.instant.requested}: {self.partitions} "
            f"partitions, {self.groups} groups into {self.files}, {self.rows} rows, "
            f"{self.dropped} older ones of the same keys left out"
        )


def plan_repair(work: Servicing, partitions: Sequence[str] | None = None) -> RepairPlan:
    """Check buckets, and say how what is wrong would be mended; nothing is changed."""
    index = look_at(work.name, work.state, work.options)
    report = check_buckets(work, index.counts, index.hash_fields, index.fixed, partitions)
    return repair_plan(report, index)


def repair_plan(report: BucketReport, index: BucketIndex) -> RepairPlan:
    """Return the plan that mends what a report found."""
    return RepairPlan(
        table=report.table,
        version=index.counts.version,
        items=tuple(_item(damage) for damage in report.damage),
        metadata=dict(report.disagreeing),
        damage=tuple(report.damage),
    )


def _item(damage: PartitionDamage) -> RepairItem:
    right = [bucket for bucket in damage.affected if 0 <= bucket < damage.buckets]
    numbers = [piece.group.file_id[:8] for piece in damage.groups]
    doubled = len(numbers) - len(set(numbers))
    reasons = [
        f"{damage.astray} rows in wrong buckets" if damage.astray else "",
        f"{doubled} groups too many" if doubled else "",
    ]
    why = ", ".join(text for text in reasons if text) or "groups of buckets that it does not have"
    return RepairItem(
        partition=damage.partition,
        buckets=damage.buckets,
        mended=len(right),
        groups=len(damage.groups),
        rows=damage.rows,
        astray=damage.astray,
        bytes=sum(max(piece.size, 0) for piece in damage.groups),
        why=why,
    )


def repair(work: Servicing, plan: RepairPlan) -> RepairResult:
    """Carry out a plan; ``Conflict`` where the table is not as it was planned on.

    Of several rows with one key the one stays that the table's merge mode prefers, the later one
    where that leaves it open. Rows keep what Hudi's columns say of them.
    """
    if plan.empty:
        return RepairResult(plan.table, None)
    check_config(work.state.config)
    if not work.state.config.populate_meta_fields:
        raise Unsupported(
            f"{plan.table} has no meta columns, so that nobody knows which rows are newer.",
            next_step="Copy the rows into a new table, with those that you choose.",
        )
    try:
        return _attempt(work, plan)
    except Conflict as conflict:
        if not conflict.facts.get(OVERTAKEN):
            raise
        # By a dead write that was taken back as this one began, for example.
        return _attempt(work, plan)
    except NotFound as gone:
        # In layout 1 the logs of writes under way lie among those of others.
        raise _stale(f"a file went away, {gone.message}") from gone


def _attempt(work: Servicing, plan: RepairPlan) -> RepairResult:
    state = work.state.refresh()
    index = look_at(work.name, state, work.options)
    _check_version(plan, index)
    groups = _as_planned(plan, index)
    store = HashingStore(state.storage)
    with replacing(work, groups, state.timeline) as begun:
        items = list(_works(plan, index))
        work.progress.stage("mending buckets", len(items))
        stats: list[WriteStat] = []
        rows = dropped = 0
        for made in work.executor.map(
            repair_partition, begun.spec, items, size=lambda item: item.size
        ):
            work.progress.advance(rows=made.rows, files=len(made.stats))
            stats.extend(made.stats)
            rows += made.rows
            dropped += made.dropped

        def guard(rivals: Rivals, view: TimelineView) -> None:
            newest = store.newest(view)
            if (None if newest is None else newest.instant) != plan.version:
                raise _stale(f"the rules of {newest and newest.instant} came meanwhile")
            for rival, body in rivals:
                both = sorted(groups.keys() & {*body.write_stats, *body.replaced})
                if both:
                    raise _stale(f"{rival.requested} wrote to partition {both[0]!r}")
            if plan.metadata:
                store.write_meta(begun.ticket.instant, plan.metadata, view)

        work.progress.stage("publishing")
        done = begun.publish(stats, guard, {RESCALED: plan.version or ""})
    replaced = sum(len(slices) for slices in groups.values())
    told = facts(table=state.storage.uri, instant=done.requested, rows=rows, dropped=dropped)
    log.info("buckets mended", extra=told)
    return RepairResult(plan.table, done, len(groups), replaced, len(stats), rows, dropped)


def _works(plan: RepairPlan, index: BucketIndex) -> Iterator[RepairWork]:
    for damage in plan.damage:
        taken = sorted(bucket for bucket in damage.affected if 0 <= bucket < damage.buckets)
        size = sum(max(piece.size, 0) for piece in damage.groups)
        shares = min(-(-size // _SHARE) or 1, _MOST_SHARES, len(taken))
        for share in range(shares):
            yield RepairWork(
                partition=damage.partition,
                slices=damage.groups,
                buckets=damage.buckets,
                taken=tuple(taken[share::shares]),
                hash_fields=index.hash_fields,
            )


def _check_version(plan: RepairPlan, index: BucketIndex) -> None:
    if index.counts.version != plan.version:
        raise _stale(f"the rules are those of {index.counts.version}, not of {plan.version}")


def _as_planned(plan: RepairPlan, index: BucketIndex) -> Mapping[str, Sequence[FileSlice]]:
    """Return the slices that are rewritten; ``Conflict`` where others are there now."""
    wanted = {damage.partition: damage.groups for damage in plan.damage}
    now = dict(list_slices(index.state, list(wanted))) if wanted else {}
    for partition, slices in wanted.items():
        there = {piece.group.file_id: piece.paths for piece in now.get(partition, ())}
        for piece in slices:
            if there.get(piece.group.file_id) != piece.paths:
                raise _stale(f"{piece.group} was written or replaced")
        planned = {piece.group.file_id[:8] for piece in slices}
        known = {piece.group.file_id for piece in slices}
        if any(other[:8] in planned and other not in known for other in there):
            raise _stale(f"partition {partition!r} has new groups of these buckets")
    return wanted


def _stale(what: str) -> Conflict:
    return Conflict(
        f"the table is not as the repair was planned on: {what}.",
        next_step="Nothing was changed; plan it again with buckets.repair().",
    )
