"""Rescaling: partitions get another number of buckets, and the rules that say so, in one commit.

Every row stays what it is, and keeps what Hudi's own columns say of it. The new hashing config
and the new file groups begin to count in the same moment: with the commit's completed file.
"""

import html
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from lakewright.actions.buckets.rescale_commit import OVERTAKEN, Replacing, replacing
from lakewright.actions.buckets.rescale_plan import RescaleItem, RescalePlan, mark_of
from lakewright.actions.buckets.rescale_slices import (
    BucketTable,
    checked_slices,
    finished_slices,
    list_folders,
)
from lakewright.actions.buckets.setting import archive_versions, create_rules, set_rules
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import partitions_of
from lakewright.actions.tasks.rescale import Rescaled, rescale_class, rescale_works
from lakewright.actions.write.begun import store_index
from lakewright.format.hudi.hashing_config import FIRST_INSTANT
from lakewright.format.hudi.metadata.commit import RESCALED, WriteStat
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.index.hashing_store import HashingStore
from lakewright.model.errors import Conflict, Corrupt, NotFound
from lakewright.model.files import FileSlice
from lakewright.model.instant import Instant
from lakewright.model.logs import facts
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.table.horizon import see_at
from lakewright.table.slicing import latest_slices
from lakewright.timeline.committing import Rivals
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: So often slices are looked for, where others were quicker than the beginning of a rescale.
_ATTEMPTS = 3
#: In the extra metadata of a rescale that goes back: the older config that it stands for.
STANDS_FOR = "lakewright.rescaled-back-to"


@dataclass(frozen=True, slots=True)
class PartitionRescaled:
    """What a rescale did to one partition; ``groups`` are those that it replaced."""

    before: int
    after: int
    groups: int = 0
    rows: int = 0
    files_read: int = 0
    bytes_read: int = 0
    files_written: int = 0
    bytes_written: int = 0

    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, slots=True)
class RescaleResult(Shown):
    """What a rescale did, or the undoing of some.

    ``instant`` is None where no row had to move. ``version`` is the hashing config that counts
    afterwards. ``undone`` are the rescales that were taken back, newest first; then ``instant``
    is the last of the rollbacks.
    """

    table: str
    instant: Instant | None
    version: str | None
    partitions: Mapping[str, PartitionRescaled] = field(default_factory=dict)
    undone: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that were moved."""
        return sum(one.rows for one in self.partitions.values())

    @property
    def files_written(self) -> int:
        """File groups that were made."""
        return sum(one.files_written for one in self.partitions.values())

    @property
    def bytes_written(self) -> int:
        """Bytes that were written."""
        return sum(one.bytes_written for one in self.partitions.values())

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the result as lines of text; ``limit`` partitions, None for all."""
        when = "nothing to move" if self.instant is None else self.instant.requested
        if self.undone:
            yield f"rescales of {self.table} undone ({when}): {', '.join(self.undone)}"
        else:
            yield (
                f"rescale of {self.table} ({when}): {len(self.partitions)} partitions, "
                f"{self.rows} rows into {self.files_written} files of {self.bytes_written} bytes"
            )
        told = (
            f"  {path or '(table)'}: {one.before} -> {one.after} buckets, {one.groups} groups "
            f"replaced, {one.rows} rows, {one.files_written} files written"
            for path, one in self.partitions.items()
        )
        yield from first_of(told, len(self.partitions), limit)

    def to_json(self) -> str:
        """Return the result for programs."""
        value = {
            "table": self.table,
            "instant": None if self.instant is None else self.instant.requested,
            "version": self.version,
            "rows": self.rows,
            "files_written": self.files_written,
            "bytes_written": self.bytes_written,
            "undone": list(self.undone),
            "partitions": {path: one.counts() for path, one in self.partitions.items()},
        }
        return json.dumps(value, ensure_ascii=False)

    def _repr_html_(self) -> str:
        names = [one.name.replace("_", " ") for one in fields(PartitionRescaled)]
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            f"<tr><td>{html.escape(path) or '(table)'}</td>"
            + "".join(f"<td>{count}</td>" for count in one.counts().values())
            + "</tr>"
            for path, one in list(self.partitions.items())[:SHOWN]
        )
        title = html.escape(next(self.lines(0)))
        return f"<b>{title}</b><table><tr><th>partition</th>{head}</tr>{rows}</table>"


def rescale(work: Servicing, plan: RescalePlan) -> RescaleResult:
    """Carry out a plan: rows move, and the rules change, in one commit; on an error neither does.

    ``Conflict`` where the table is not as planned any more (other rules, other file groups), or
    where partitions of the plan are written while rows move: writers on them are refused until
    the rescale is done, and one that was faster makes the rescale give up. A plan that moves no
    row sets the rules alone.
    """
    if not plan.items:
        return _only_rules(work, plan)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            result = _attempt(work, plan)
            break
        except Conflict as conflict:
            if attempt == _ATTEMPTS or not conflict.facts.get(OVERTAKEN):
                raise
            # By a dead write that was taken back as this one began, for example.
            log.info("slices are looked for anew", extra=facts(table=work.name, why=str(conflict)))
    told = facts(
        table=work.state.storage.uri,
        instant=result.version,
        partitions=len(result.partitions),
        rows=result.rows,
        files=result.files_written,
        bytes=result.bytes_written,
    )
    log.info("buckets rescaled", extra=told)
    archive_versions(work.state)
    return result


def _attempt(work: Servicing, plan: RescalePlan) -> RescaleResult:
    table = BucketTable.of(work)
    if plan.version is None and table.counts.version == FIRST_INSTANT:
        # An attempt before this one got as far as that.
        plan = _numbered(plan, table)
    _check_version(plan, table.counts.version)
    groups = _planned_groups(table, plan)
    if not table.layout.stored:
        store_index(table.state, table.layout, work.options)
    if plan.version is None:
        # What an undo goes back to; it says of every partition what is so already.
        create_rules(table.state.storage, plan.present.rules)
        plan = replace(plan, version=FIRST_INSTANT)
    version = plan.version or FIRST_INSTANT
    with replacing(work, groups, table.state.timeline, {RESCALED: version}) as begun:
        _check_alone(begun)
        guard = _Guard(HashingStore(begun.state.storage), begun.ticket.instant, plan, version)
        guard.check_version(begun.state.timeline)
        guard.check_partitions(_written_since(plan.seen, begun.state.timeline), moves=True)
        made = _moved(work, begun, table, plan, groups)
        extra = {RESCALED: version}
        if plan.stands_for is not None:
            extra[STANDS_FOR] = plan.stands_for
        work.progress.stage("publishing")
        stats = [stat for one in made for stat in one.stats]
        done = begun.publish(stats, guard, extra)
    return _result(work.name, plan, made, done)


def _numbered(plan: RescalePlan, table: BucketTable) -> RescalePlan:
    """Return the plan of a plain table on rules that say the same, if they do."""
    same = (table.counts.rules, dict(table.counts.pins)) == (plan.present.rules, {})
    return replace(plan, version=FIRST_INSTANT) if same else plan


def _only_rules(work: Servicing, plan: RescalePlan) -> RescaleResult:
    if not plan.changes_rules:
        return RescaleResult(work.name, None, plan.version)
    table = BucketTable.of(work)
    _check_version(plan, table.counts.version)
    done = set_rules(table.state, plan.rules, work.options, work.committer)
    return RescaleResult(work.name, None, done.instant)


def _moved(
    work: Servicing,
    begun: Replacing,
    table: BucketTable,
    plan: RescalePlan,
    groups: Mapping[str, Sequence[FileSlice]],
) -> list[Rescaled]:
    """Let tasks write the new groups; no row may be lost or doubled on the way."""
    items = [
        one
        for item in plan.items
        for one in rescale_works(
            groups[item.partition], table.fields, item.before, item.after, item.new_files
        )
    ]
    work.progress.stage("rescaling", len(items))
    made: list[Rescaled] = []
    try:
        for one in work.executor.map(rescale_class, begun.spec, items, size=lambda item: item.size):
            written = sum(stat.num_writes for stat in one.stats)
            work.progress.advance(rows=written, files=len(one.stats))
            made.append(one)
    except NotFound as gone:
        if begun.spec.config.layout != 1:
            raise
        # In layout 1 slices may hold the log of a writer that began meanwhile, and gave up.
        raise Conflict(
            f"A file of the partitions vanished while their rows were moved: {gone.message}",
            next_step="Nothing was changed; try again.",
            **{OVERTAKEN: True},
        ) from gone
    read: Counter[str] = Counter()
    wrote: Counter[str] = Counter()
    for one in made:
        read[one.partition] += one.rows_read if one.first else 0
        wrote[one.partition] += sum(stat.num_writes for stat in one.stats)
    for partition, count in read.items():
        if wrote[partition] != count:
            raise Corrupt(
                f"{count} rows of partition {partition!r} were read, and {wrote[partition]} "
                "written.",
                next_step="Nothing was changed; check the table with fsck.",
                partition=partition,
            )
    return made


@dataclass(frozen=True, slots=True)
class _Guard:
    """Makes sure, under the lock, that the new rules fit the table; then writes them.

    They are written while the commit is pending, and count when it completes.
    """

    store: HashingStore
    instant: str
    plan: RescalePlan
    version: str

    def __call__(self, rivals: Rivals, view: TimelineView) -> None:
        """Compare with what took effect since the rescale began."""
        self.check_version(view)
        for rival, body in rivals:
            self.check_partitions({*body.write_stats, *body.replaced}, by=rival.requested)
        self.store.write_config(self.instant, self.plan.rules, self.plan.pins)
        changed = {item.partition: item.after for item in self.plan.items}
        self.store.write_meta(self.instant, changed, view)

    def check_partitions(
        self, written: Iterable[str], *, by: str = "another write", moves: bool = False
    ) -> None:
        """Raise ``Conflict`` where others wrote partitions that would be astray.

        Those that move must not be written while they do; with ``moves`` they were written
        before. All others must have the number that the new rules give.
        """
        moving = {item.partition for item in self.plan.items}
        wanted = self.plan.wanted
        for partition in sorted(written):
            if partition in moving:
                if not moves:
                    raise _stale(f"{by} has written to partition {partition!r}")
                continue
            has = self.plan.present.number_of(partition)
            gets = wanted.number_of(partition)
            if has != gets:
                raise _stale(
                    f"{by} has written to partition {partition!r} with {has} buckets, for which "
                    f"the new rules give {gets}"
                )

    def check_version(self, view: TimelineView) -> None:
        """Raise ``Conflict`` where other rules count than those that were planned on."""
        newest = self.store.newest(view)
        found = None if newest is None else newest.instant
        if found != self.version:
            raise _stale(f"the bucket rules are those of {found} now, not of {self.version}")


def _planned_groups(table: BucketTable, plan: RescalePlan) -> dict[str, Sequence[FileSlice]]:
    """Return the slices of the plan's partitions as they are now; ``Conflict`` if not as then."""
    visible = see_at(table.state, None)
    items = {item.partition: item for item in plan.items}
    found: dict[str, Sequence[FileSlice]] = {}
    for path, listing in list_folders(table.state, sorted(items)):
        slices = finished_slices(table.state, latest_slices(listing, visible))
        _check_groups(items[path], slices)
        found[path] = checked_slices(path, slices, items[path].before)
    return found


def _check_groups(item: RescaleItem, slices: Sequence[FileSlice]) -> None:
    if mark_of(slices) == item.mark:
        return
    what = (
        f"{item.groups} file groups then, {len(slices)} now"
        if len(slices) != item.groups
        else "others than then"
    )
    raise _stale(f"partition {item.partition!r} has other file groups: {what}")


def _written_since(seen: TimelineView, now: TimelineView) -> frozenset[str]:
    """Return the partitions that others wrote since a plan was made."""
    known = {instant.requested for instant in seen.data()}
    start = now.start or ""
    there = {instant.requested for instant in now.data()}
    lost = sorted(instant for instant in known - there if instant >= start)
    if lost:
        raise _stale(f"the write {lost[0]} was taken back")
    if known and max(known) < start:
        raise _stale("writes that took effect since have been archived already")
    return partitions_of(now, [i for i in now.data() if i.requested not in known])


def _check_version(plan: RescalePlan, version: str | None) -> None:
    if plan.version != version:
        then, now = (name or "one number for all" for name in (plan.version, version))
        raise _stale(f"the bucket rules are those of {now} now, not of {then}")


def _check_alone(begun: Replacing) -> None:
    """Refuse while another rescale is under way, on other partitions too: both write rules."""
    for pending in begun.state.timeline.pending():
        if pending.requested == begun.ticket.instant:
            continue
        body = begun.state.timeline.plan(pending)
        if isinstance(body, ReplacePlan) and RESCALED in body.extra:
            raise Conflict(
                f"the rescale {pending.requested} is under way.",
                next_step="Wait for it, and plan again.",
                instant=pending.requested,
            )


def _stale(what: str) -> Conflict:
    return Conflict(
        f"The table is not as it was when the rescale was planned: {what}.",
        next_step="Nothing was changed; plan the rescale again.",
    )


def _result(name: str, plan: RescalePlan, made: Sequence[Rescaled], done: Instant) -> RescaleResult:
    by_partition: defaultdict[str, list[Rescaled]] = defaultdict(list)
    for one in made:
        by_partition[one.partition].append(one)
    partitions = {
        item.partition: _partition(item, by_partition[item.partition]) for item in plan.items
    }
    return RescaleResult(name, done, done.requested, partitions)


def _partition(item: RescaleItem, made: Sequence[Rescaled]) -> PartitionRescaled:
    stats: list[WriteStat] = [stat for one in made for stat in one.stats]
    return PartitionRescaled(
        before=item.before,
        after=item.after,
        groups=item.groups,
        rows=sum(stat.num_writes for stat in stats),
        files_read=sum(one.files_read for one in made if one.first),
        bytes_read=sum(one.bytes_read for one in made if one.first),
        files_written=len(stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
    )
