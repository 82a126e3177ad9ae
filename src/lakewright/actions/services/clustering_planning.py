"""Plans of clusterings in the making."""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from lakewright.actions.services.clustering_choice import (
    SliceGroup,
    chosen_partitions,
    grouped,
    partition_filter,
)
from lakewright.actions.services.clustering_options import (
    ClusteringSettings,
    FilterMode,
    Strategy,
)
from lakewright.actions.services.clustering_triggers import is_clustering
from lakewright.actions.services.plan import PlanItem, ServicePlan
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import (
    list_slices,
    partitions_of,
    planned_groups,
    written_since,
)
from lakewright.actions.tasks.cluster_order import LAYOUT, SORT_COLUMNS
from lakewright.actions.tasks.write_settings import MAX_FILE
from lakewright.format.hudi.metadata.replace_plan import (
    ClusteringPlan,
    ClusteringStrategy,
    ReplacePlan,
)
from lakewright.model.files import FileSlice
from lakewright.model.instant import Instant
from lakewright.model.services import Service
from lakewright.table.partitions import Tree, walk_partitions
from lakewright.table.pruning import Tally
from lakewright.table.state import TableState, table_schema
from lakewright.timeline.view import TimelineView

#: Hudi's classes that carry plans out.
EXECUTION = "org.apache.hudi.client.clustering.run.strategy."
_SORT_AND_SIZE = "SparkSortAndSizeExecutionStrategy"
_SINGLE_FILE = "SparkSingleFileSortExecutionStrategy"
_STREAM_COPY = "SparkStreamCopyClusteringExecutionStrategy"
_COMPARING = (FilterMode.RECENT_DAYS, FilterMode.DAY_ROLLING)


class ClusteringPlanner:
    """Puts slices together outside the lock, and brings them up to date under it.

    Partitions are listed until the plan is full, no further: the rest is for the next plan.
    """

    def __init__(
        self,
        work: Servicing,
        settings: ClusteringSettings,
        partitions: Sequence[str] | None,
        *,
        buckets: bool,
    ) -> None:
        self._work = work
        self._settings = settings
        self._buckets = buckets
        self._refusal = partition_filter(settings)
        self._new_base = MAX_FILE.read(work.options)
        self._seen = work.state.refresh()
        self._passed_over: Counter[str] = Counter()
        self._left: set[str] = set()
        self._groups: dict[str, list[SliceGroup]] = {}
        work.progress.stage("looking for files to cluster")
        self._named = self._chosen(partitions)
        self._add(self._seen, self._named)
        self._left |= self._elsewhere()

    def plan(self) -> ReplacePlan | None:
        """Return the plan as it stands; None where there is nothing to do."""
        groups = self._chosen_groups()
        if not groups:
            return None
        locate = self._seen.storage.locate
        clustering = ClusteringPlan(
            groups=tuple(group.planned(locate) for group in groups),
            strategy=ClusteringStrategy(EXECUTION + self._execution(), self._params()),
            missing_partitions=tuple(sorted(self._left)),
        )
        return ReplacePlan(operation="CLUSTER", clustering=clustering, version=1)

    def updated(self, view: TimelineView) -> ReplacePlan | None:
        """Return the plan on the timeline as it is now: partitions written since are listed again.

        Called under the lock.
        """
        touched = written_since(self._seen.timeline, view)
        again = sorted(touched & self._groups.keys())
        for partition in again:
            del self._groups[partition]
        if again:
            self._add(TableState(self._seen.storage, self._seen.config, view), again)
        self._left |= touched - self._groups.keys()
        taken = planned_groups(view)
        for partition, groups in self._groups.items():
            free = [group for group in groups if not _is_taken(group, taken)]
            if len(free) < len(groups):
                self._groups[partition] = free
                self._passed_over["in an unfinished plan"] += len(groups) - len(free)
                self._left.add(partition)
        return self.plan()

    def value(self, plan: ReplacePlan, instant: Instant | None) -> ServicePlan:
        """Return the plan as the user sees it."""
        order = self._settings.order
        return ServicePlan(
            table=self._work.name,
            service=Service.CLUSTERING,
            instant=instant,
            body=plan,
            items=[self._item(group) for group in self._chosen_groups()],
            strategy=f"{self._settings.strategy.value}, by {order}"
            if order.columns
            else self._settings.strategy.value,
            passed_over=tuple(sorted(self._passed_over.items())),
        )

    # ------------------------------------------------------------------- support

    def _chosen(self, partitions: Sequence[str] | None) -> Sequence[str] | None:
        """Return the partitions to list, None for all as they come."""
        if partitions is None and self._settings.selected:
            partitions = self._settings.selected
        if self._settings.mode not in _COMPARING:
            return partitions
        names: Iterable[str] = partitions if partitions is not None else self._all()
        kept = (name for name in names if self._refusal(name) is None)
        return chosen_partitions(kept, self._settings, dt.datetime.now(dt.UTC).hour)

    def _all(self) -> Iterator[str]:
        state = self._seen
        tree = Tree(state.storage, state.config, table_schema(state))
        return (found.path for found, _ in walk_partitions(tree, (), Tally()))

    def _add(self, state: TableState, partitions: Sequence[str] | None) -> None:
        taken = planned_groups(state.timeline)
        most = self._settings.most_groups
        count = sum(len(groups) for groups in self._groups.values())
        for partition, pieces in list_slices(state, partitions):
            if count >= most:
                self._passed_over[f"later partitions: the plan has {most} groups"] = 1
                break
            why = self._refusal(partition)
            if why is not None:
                self._passed_over[why] += 1
                self._left.add(partition)
                continue
            found = grouped(
                partition,
                self._free(pieces, taken),
                self._settings,
                self._new_base,
                self._passed_over,
                buckets=self._buckets,
            )
            self._groups[partition] = list(found)
            count += len(self._groups[partition])
            self._work.progress.advance()

    def _free(
        self, pieces: Iterable[FileSlice], taken: Collection[tuple[str, str]]
    ) -> Iterator[FileSlice]:
        for piece in pieces:
            if (piece.group.partition, piece.group.file_id) in taken:
                self._passed_over["in an unfinished plan"] += 1
                self._left.add(piece.group.partition)
            else:
                yield piece

    def _chosen_groups(self) -> list[SliceGroup]:
        found = [group for groups in self._groups.values() for group in groups]
        for group in found[self._settings.most_groups :]:
            self._left.add(group.partition)
        return found[: self._settings.most_groups]

    def _elsewhere(self) -> set[str]:
        """Return partitions that were written since the last plan and are not looked at.

        Hudi looks at partitions that were written since the last plan, and at those that it names.
        """
        view = self._seen.timeline
        before = [e.instant for e in view.entries if is_clustering(view, e)]
        since = before[-1].requested if before else ""
        found = set(partitions_of(view, [i for i in view.data() if (i.completed or "") > since]))
        if before:
            plan = view.plan(before[-1])
            if isinstance(plan, ReplacePlan) and plan.clustering is not None:
                found |= set(plan.clustering.missing_partitions)
        return found - self._groups.keys()

    def _execution(self) -> str:
        if self._buckets or self._settings.strategy is Strategy.SINGLE_FILE:
            return _SINGLE_FILE
        if self._settings.strategy is Strategy.STREAM_COPY:
            return _STREAM_COPY
        return _SORT_AND_SIZE

    def _params(self) -> dict[str, str]:
        order = self._settings.order
        if not order.columns:
            return {}
        return {SORT_COLUMNS.key: ",".join(order.columns), LAYOUT.key: order.layout.value}

    def _item(self, group: SliceGroup) -> PlanItem:
        files = sum(len(piece.paths) for piece in group.slices)
        order = self._settings.order
        by = f", sorted by {order}" if order.columns else ""
        return PlanItem(
            partition=group.partition,
            group=",".join(piece.group.file_id for piece in group.slices),
            files=files,
            bytes_in=group.bytes_in,
            bytes_out=group.bytes_in,
            why=f"{len(group.slices)} small groups into {group.outputs}{by}",
        )


def _is_taken(group: SliceGroup, taken: Collection[tuple[str, str]]) -> bool:
    return any((group.partition, piece.group.file_id) in taken for piece in group.slices)
