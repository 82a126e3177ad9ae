"""Clustering: small files become large ones, and rows lie by columns that readers filter by.

A plan is made from slices listed outside the table's lock and brought up to date under it. It is
carried out in tasks of any engine, by whoever finds it on the timeline. No row changes.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from lakewright.actions.services.clustering_options import ClusteringSettings, Strategy
from lakewright.actions.services.clustering_planning import EXECUTION, ClusteringPlanner
from lakewright.actions.services.merging import planned_slice
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.repairing import repaired
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.settings import check_settings
from lakewright.actions.services.taking import Taken, taken
from lakewright.actions.tasks.cluster import Clustered, ClusterWork, cluster_group
from lakewright.actions.tasks.cluster_order import Order
from lakewright.actions.tasks.compact import rewritten_columns
from lakewright.actions.write.admission import check_config
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.format.hudi.metadata.compaction import CompactionOperation
from lakewright.format.hudi.metadata.replace_plan import (
    ClusteringGroup,
    ClusteringPlan,
    ReplacePlan,
    encode_replace_plan,
)
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.layout import layout_of
from lakewright.model.errors import Conflict, Corrupt, Invalid, Unsupported
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.schema import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    META_COLUMNS,
    META_FIELDS,
    RECORD_KEY,
    Struct,
)
from lakewright.model.services import PartitionServed, Service, ServiceResult
from lakewright.table.state import table_schema
from lakewright.timeline.clock import check_wanted_plan
from lakewright.timeline.plans import is_plan
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

_OPERATION = "CLUSTER"
#: Columns of Hudi's own that rows keep, and may be sorted by.
_KEPT = tuple(
    field for field in META_FIELDS if field.name in (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)
)
_RESIZING = "ConsistentBucketClusteringExecutionStrategy"


def schedule_clustering(
    work: Servicing,
    *,
    partitions: Sequence[str] | None = None,
    instant: str | None = None,
    dry_run: bool = False,
) -> ServicePlan | None:
    """Put a clustering on the timeline; None where there is nothing to put together or to sort.

    Whether one is due is not asked: see ``clustering_due``. ``partitions`` are the only ones
    looked at, ``instant`` is a time that the caller wants. With ``dry_run`` the plan is made and
    not put anywhere. Until it is carried out or rolled back, writes to its groups are refused.
    """
    check_config(work.state.config)
    check_settings(Service.CLUSTERING, work.options)
    settings = ClusteringSettings.of(work.options)
    buckets = _buckets(work) is not None
    _check(work, settings, buckets=buckets)
    if not dry_run:
        # A dead write that vanishes from under a plan would look like a writer at work.
        work = repaired(work, writes=True)
    planner = ClusteringPlanner(work, settings, partitions, buckets=buckets)
    if dry_run:
        if instant is not None:
            check_wanted_plan(instant, work.state.timeline)
        found = planner.plan()
        return None if found is None else planner.value(found, None)
    made: list[ReplacePlan] = []

    def make(view: TimelineView, taken: str) -> bytes | None:
        plan = planner.updated(view)
        if plan is None:
            return None
        made.append(plan)
        return encode_replace_plan(plan)

    done = work.upkeep.schedule(Action.CLUSTERING, make, instant=instant)
    return None if done is None else planner.value(made[-1], done)


def cluster(work: Servicing, plan: Instant | None = None) -> ServiceResult:
    """Carry out the given clustering, else the oldest one that waits, else a new one.

    Plans of others, Hudi's among them, are carried out too, and those taken over whose executor
    is gone. Plans that somebody works on are left to them.
    """
    check_config(work.state.config)
    check_settings(Service.CLUSTERING, work.options, planning=False)
    work = repaired(work)
    if plan is None:
        for waiting in _waiting(work.state.refresh().timeline):
            with ExitStack() as stack:
                try:
                    found = stack.enter_context(taken(work, waiting, _OPERATION))
                except Conflict:
                    continue  # somebody is at work on it, or has finished it meanwhile
                return _carry_out(work, found)
        made = schedule_clustering(work)
        if made is None or made.instant is None:
            return ServiceResult(Service.CLUSTERING, None)
        plan = made.instant
    with taken(work, plan, _OPERATION) as found:
        return _carry_out(work, found)


def _carry_out(work: Servicing, taken: Taken) -> ServiceResult:
    plan = taken.plan
    if not isinstance(plan, ReplacePlan) or plan.clustering is None:
        raise Corrupt(f"{taken.ticket.plan} is no plan of a clustering.")
    items = list(_items(work, taken, plan.clustering))
    work.progress.stage(Service.CLUSTERING.value, len(items))
    stats: list[WriteStat] = []
    replaced: defaultdict[str, list[str]] = defaultdict(list)
    served: dict[str, PartitionServed] = {}
    copied = 0
    done_items = work.executor.map(cluster_group, taken.spec, items, size=lambda item: item.size)
    for made in done_items:
        work.progress.advance(rows=_served(made).rows, files=len(made.stats))
        stats.extend(made.stats)
        replaced[made.partition].extend(made.replaced)
        before = served.get(made.partition, PartitionServed())
        served[made.partition] = before + _served(made)
        copied += made.copied
    work.progress.stage("publishing")
    metadata = replace(
        taken.metadata(_OPERATION, stats, compacted=False),
        replaced={partition: tuple(ids) for partition, ids in sorted(replaced.items())},
    )
    done = work.committer.publish(taken.ticket, metadata)
    result = ServiceResult(Service.CLUSTERING, done, dict(sorted(served.items())))
    sums = result.total
    told = facts(
        table=taken.spec.uri,
        instant=done.requested,
        groups=sums.groups,
        rows=sums.rows,
        bytes_read=sums.bytes_read,
        bytes_written=sums.bytes_written,
        tasks=len(items),
        copied_unread=copied,
    )
    log.info("clustering done", extra=told)
    return result


def _served(made: Clustered) -> PartitionServed:
    return PartitionServed(
        groups=len(made.replaced),
        files_read=made.files_read,
        files_written=len(made.stats),
        bytes_read=made.bytes_read,
        bytes_written=sum(stat.total_write_bytes for stat in made.stats),
        rows=sum(stat.num_writes for stat in made.stats),
    )


def _items(work: Servicing, taken: Taken, plan: ClusteringPlan) -> Iterator[ClusterWork]:
    strategy = plan.strategy
    name = "" if strategy is None or strategy.class_name is None else strategy.class_name
    if name.endswith(_RESIZING):
        raise Unsupported(
            f"the plan {taken.ticket.instant} resizes buckets by {name.removeprefix(EXECUTION)}.",
            next_step="Let Hudi carry it out, or roll it back.",
            instant=taken.ticket.instant,
        )
    params: Mapping[str, str] = {} if strategy is None else strategy.params
    # A plan of Hudi's tells the columns alone; how to order by them is the executor's to know.
    order = Order.of({**work.options, **_settled(params)})
    order.check(rewritten_columns(taken.spec))
    buckets = _buckets(work) is not None
    for group in plan.groups:
        if group.slices:
            yield _item(group, order, buckets=buckets)


def _settled(params: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings of a plan; one without columns does not sort, whatever options say."""
    return {"hoodie.clustering.plan.strategy.sort.columns": "", **params}


def _item(group: ClusteringGroup, order: Order, *, buckets: bool) -> ClusterWork:
    slices = tuple(
        planned_slice(
            CompactionOperation(None, one.log_files, one.base_file, one.file_id, one.partition)
        )
        for one in group.slices
    )
    partitions = {piece.group.partition for piece in slices}
    if len(partitions) > 1:
        raise Unsupported(
            f"a plan puts rows of {len(partitions)} partitions together.",
            next_step="Let the software that made the plan carry it out, or roll it back.",
        )
    bucket = None
    if buckets:
        numbers = {piece.group.file_id[:8] for piece in slices}
        if len(numbers) > 1 or not all(number.isdigit() for number in numbers):
            raise Unsupported(
                f"a plan puts rows of {len(numbers)} buckets together, which would lose them.",
                next_step="Roll the plan back, and cluster bucket tables with sort columns.",
            )
        bucket = int(numbers.pop())
    size = int(group.metrics.get("TOTAL_IO_MB", 0.0)) << 20
    outputs = 1 if buckets else max(1, group.output_groups or 1)
    return ClusterWork(slices, outputs, order, size, bucket)


def _waiting(view: TimelineView) -> list[Instant]:
    """Return the unfinished clusterings, oldest first."""
    planned = (Action.CLUSTERING, Action.REPLACECOMMIT)
    return [
        entry.instant
        for entry in view.entries
        if entry.planned in planned and not entry.instant.is_completed and is_plan(view, entry)
    ]


def _buckets(work: Servicing) -> BucketCounts | None:
    return layout_of(work.state, work.options).buckets


def _check(work: Servicing, settings: ClusteringSettings, *, buckets: bool) -> None:
    """Refuse what would break buckets, and columns that cannot be sorted by."""
    columns = Struct((*_KEPT, *table_schema(work.state).without(frozenset(META_COLUMNS)).fields))
    settings.order.check_wish(columns)
    if buckets and not settings.order.columns:
        raise Invalid(
            f"{work.name} is a bucket table: its files are not put together, each is a bucket.",
            next_step="Give hoodie.clustering.plan.strategy.sort.columns to sort within buckets, "
            "or compact the table where logs make it slow.",
            table=work.name,
        )
    if settings.strategy is Strategy.STREAM_COPY and settings.order.columns:
        raise Invalid(
            f"{Strategy.STREAM_COPY} copies row groups as they are, and cannot sort by "
            f"{', '.join(settings.order.columns)}.",
            next_step=f"Use {Strategy.SIZE}, or give no columns.",
        )
