"""The verbs that keep a table fast and small; ``Table`` has them.

Each has options for one call, over the table's own; keywords stand for the most used of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from lakewright.actions.services.archive_choice import LEAST, MOST
from lakewright.actions.services.archiving import ArchivePlan, ArchiveResult, archive, plan_archive
from lakewright.actions.services.clean_options import (
    COMMITS,
    GRACE,
    HOURS,
    POLICY,
    VERSIONS,
    CleanPolicy,
)
from lakewright.actions.services.cleaning import clean, schedule_cleaning
from lakewright.actions.services.clustering import cluster, schedule_clustering
from lakewright.actions.services.clustering_options import SMALL_FILE, TARGET_FILE
from lakewright.actions.services.compaction import compact, schedule_compaction
from lakewright.actions.services.compaction_options import STRATEGY, TARGET_IO
from lakewright.actions.services.log_compaction import log_compact, schedule_log_compaction
from lakewright.actions.services.plan import ServicePlan
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.tasks.cluster_order import LAYOUT, SORT_COLUMNS
from lakewright.api.arguments import text_of, texts_of
from lakewright.api.engines import service_engine
from lakewright.api.progress import task_watcher, watch
from lakewright.lifecycle.letting_go import freed
from lakewright.model.errors import Invalid, NotFound
from lakewright.model.instant import Action, Instant, State, is_instant_time
from lakewright.model.options import check_options
from lakewright.model.services import Service, ServiceResult
from lakewright.storage.port import Storage
from lakewright.table.file_index import FileIndex
from lakewright.table.state import open_state
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.storage_upkeep import StorageUpkeep

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession

Options: TypeAlias = Mapping[str, str]
#: A plan: as ``schedule_…`` returned it, or the text of its instant, from whatever process.
PlanLike: TypeAlias = ServicePlan | Instant | str

_RETAINED = {
    CleanPolicy.KEEP_LATEST_COMMITS: COMMITS.key,
    CleanPolicy.KEEP_LATEST_FILE_VERSIONS: VERSIONS.key,
    CleanPolicy.KEEP_LATEST_BY_HOURS: HOURS.key,
}
_SHORT = {
    "COMMITS": CleanPolicy.KEEP_LATEST_COMMITS,
    "VERSIONS": CleanPolicy.KEEP_LATEST_FILE_VERSIONS,
    "HOURS": CleanPolicy.KEEP_LATEST_BY_HOURS,
}


class Maintainable:
    """Compaction, clustering, cleaning and archiving.

    ``schedule_…`` puts a plan on the timeline, for this process, another one or Hudi to carry
    out, and returns it, or None where there is nothing to do; with ``dry_run=True`` the plan is
    made to be looked at and put nowhere. The verbs themselves carry out the plan they are given,
    else one that waits, else a new one.
    """

    _storage: Storage
    _spark: "SparkSession | None"
    _name: str

    def schedule_compaction(
        self,
        *,
        partitions: Sequence[str] | None = None,
        instant: str | None = None,
        strategy: str | None = None,
        target_io: int | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> ServicePlan | None:
        """Plan to merge base files with their logs, in all or the given partitions.

        ``strategy`` says which slices are taken (``bounded_io``, ``unbounded``, …, or a class
        of Hudi's; several with commas between, one after the other), ``target_io`` how many
        megabytes one plan reads and writes at most.
        """
        with self._servicing(_compacting(options, strategy, target_io)) as work:
            _check_partitions(work, partitions)
            return schedule_compaction(
                work, partitions=partitions, instant=instant, dry_run=dry_run
            )

    def compact(
        self,
        plan: PlanLike | None = None,
        *,
        partitions: Sequence[str] | None = None,
        instant: str | None = None,
        strategy: str | None = None,
        target_io: int | None = None,
        options: Options | None = None,
    ) -> ServiceResult:
        """Merge base files with their logs into new base files.

        With ``partitions``, ``instant``, ``strategy`` or ``target_io`` a new plan is made by
        them and carried out.
        """
        given = {
            "partitions": partitions,
            "instant": instant,
            "strategy": strategy,
            "target_io": target_io,
        }
        with self._servicing(_compacting(options, strategy, target_io)) as work:
            return _carried_out(work, Service.COMPACTION, plan, given, schedule_compaction, compact)

    def schedule_log_compaction(
        self,
        *,
        partitions: Sequence[str] | None = None,
        instant: str | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> ServicePlan | None:
        """Plan to merge the logs of slices that have many into one log each."""
        with self._servicing(options) as work:
            _check_partitions(work, partitions)
            return schedule_log_compaction(
                work, partitions=partitions, instant=instant, dry_run=dry_run
            )

    def log_compact(
        self,
        plan: PlanLike | None = None,
        *,
        partitions: Sequence[str] | None = None,
        instant: str | None = None,
        options: Options | None = None,
    ) -> ServiceResult:
        """Merge the logs of slices that have many into one log each; base files stay."""
        given = {"partitions": partitions, "instant": instant}
        with self._servicing(options) as work:
            return _carried_out(
                work, Service.LOG_COMPACTION, plan, given, schedule_log_compaction, log_compact
            )

    def schedule_clustering(
        self,
        *,
        partitions: Sequence[str] | None = None,
        instant: str | None = None,
        sort_by: Sequence[str] | str | None = None,
        layout: str | None = None,
        target_size: int | None = None,
        small_file: int | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> ServicePlan | None:
        """Plan to put small files together, or to sort rows by columns, or both.

        ``sort_by`` are columns, ``layout`` is ``linear``, ``zorder`` or ``hilbert``;
        ``target_size`` is about how many bytes the new files have, ``small_file`` below how many
        a file is taken. Until the plan is carried out, writes to its file groups are refused.
        """
        given = _clustering(options, sort_by, layout, target_size, small_file)
        with self._servicing(given) as work:
            _check_partitions(work, partitions)
            return schedule_clustering(
                work, partitions=partitions, instant=instant, dry_run=dry_run
            )

    def cluster(
        self,
        plan: PlanLike | None = None,
        *,
        partitions: Sequence[str] | None = None,
        instant: str | None = None,
        sort_by: Sequence[str] | str | None = None,
        layout: str | None = None,
        target_size: int | None = None,
        small_file: int | None = None,
        options: Options | None = None,
    ) -> ServiceResult:
        """Put small files together, or sort rows by columns, or both; no row changes.

        With any of the keywords a new plan is made by them and carried out.
        """
        given = {
            "partitions": partitions,
            "instant": instant,
            "sort_by": sort_by,
            "layout": layout,
            "target_size": target_size,
            "small_file": small_file,
        }
        wanted = _clustering(options, sort_by, layout, target_size, small_file)
        with self._servicing(wanted) as work:
            return _carried_out(work, Service.CLUSTERING, plan, given, schedule_clustering, cluster)

    def schedule_cleaning(
        self,
        *,
        instant: str | None = None,
        policy: str | None = None,
        retain: int | None = None,
        grace: str | None = None,
        dry_run: bool = False,
        options: Options | None = None,
    ) -> ServicePlan | None:
        """Plan to delete files that no reader of the retained history needs.

        ``policy`` is ``commits``, ``versions`` or ``hours`` (or a name of Hudi's) and ``retain``
        its number; ``grace`` is a time for which files stay after they ceased to be the latest.
        """
        with self._servicing(self._cleaning(options, policy, retain, grace)) as work:
            now = work if dry_run else freed(work)
            return schedule_cleaning(now, instant=instant, dry_run=dry_run)

    def clean(
        self,
        plan: PlanLike | None = None,
        *,
        instant: str | None = None,
        policy: str | None = None,
        retain: int | None = None,
        grace: str | None = None,
        options: Options | None = None,
    ) -> ServiceResult:
        """Delete files that no reader of the retained history needs.

        Without a plan, what is unfinished is finished and a new one made and carried out. Files
        of savepoints, of plans that wait and of the grace period stay; what the undo of a plan
        held goes once its window is over.
        """
        given = {"instant": instant, "policy": policy, "retain": retain, "grace": grace}
        with self._servicing(self._cleaning(options, policy, retain, grace)) as begun:
            waiting = _given(plan, Service.CLEANING, given)
            work = freed(begun) if waiting is None else begun
            if waiting is None and instant is not None:
                made = schedule_cleaning(work, instant=instant)
                if made is None:
                    return ServiceResult(Service.CLEANING, None)
                waiting = made.instant
            return clean(work, waiting)

    def plan_archive(
        self,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        options: Options | None = None,
    ) -> ArchivePlan:
        """Say what ``archive`` would take off the active timeline; nothing is written."""
        with self._servicing(_archiving(options, min_commits, max_commits)) as work:
            return plan_archive(work)

    def archive(
        self,
        *,
        min_commits: int | None = None,
        max_commits: int | None = None,
        options: Options | None = None,
    ) -> ArchiveResult:
        """Move the oldest instants into the archived history, where the timeline is too long.

        From ``max_commits`` commits on, all but ``min_commits`` of them go.
        """
        with self._servicing(_archiving(options, min_commits, max_commits)) as work:
            return archive(work)

    # ------------------------------------------------------------------- support

    def _cleaning(
        self, options: Options | None, policy: str | None, retain: int | None, grace: str | None
    ) -> Options:
        found = dict(options or {})
        if policy is not None:
            short = _SHORT.get(text_of("policy", policy).strip().upper())
            found[POLICY.key] = policy if short is None else short.value
        if retain is not None:
            own = open_state(self._storage).config.properties
            found[_RETAINED[POLICY.read({**own, **found})]] = str(retain)
        if grace is not None:
            found[GRACE.key] = grace
        return found

    @contextmanager
    def _servicing(self, options: Options | None) -> Iterator[Servicing]:
        state = open_state(self._storage)
        check_options(options or {}, state.config.properties)
        settings = {**state.storage.options, **state.config.properties, **(options or {})}
        progress = watch(self._name, settings)
        try:
            yield Servicing(
                self._name,
                state,
                service_engine(settings, self._spark, task_watcher(progress)),
                StorageCommitter(state.storage, state.config, settings),
                StorageUpkeep(state.storage, state.config, settings),
                settings,
                progress,
            )
        finally:
            progress.close()


def _compacting(options: Options | None, strategy: str | None, target_io: int | None) -> Options:
    found = dict(options or {})
    if strategy is not None:
        found[STRATEGY.key] = strategy
    if target_io is not None:
        found[TARGET_IO.key] = str(target_io)
    return found


def _clustering(
    options: Options | None,
    sort_by: Sequence[str] | str | None,
    layout: str | None,
    target_size: int | None,
    small_file: int | None,
) -> Options:
    found = dict(options or {})
    if sort_by is not None:
        names = sort_by if isinstance(sort_by, str) else ",".join(texts_of("sort_by", sort_by))
        found[SORT_COLUMNS.key] = names
    if layout is not None:
        found[LAYOUT.key] = layout
    if target_size is not None:
        found[TARGET_FILE.key] = str(target_size)
    if small_file is not None:
        found[SMALL_FILE.key] = str(small_file)
    return found


def _archiving(
    options: Options | None, min_commits: int | None, max_commits: int | None
) -> Options:
    found = dict(options or {})
    if min_commits is not None:
        found[LEAST.key] = str(min_commits)
    if max_commits is not None:
        found[MOST.key] = str(max_commits)
    return found


_ACTIONS = {
    Service.COMPACTION: Action.COMPACTION,
    Service.LOG_COMPACTION: Action.LOGCOMPACTION,
    Service.CLUSTERING: Action.CLUSTERING,
    Service.CLEANING: Action.CLEAN,
}


def _carried_out(
    work: Servicing,
    service: Service,
    plan: PlanLike | None,
    given: Mapping[str, Any],
    schedule: Callable[..., ServicePlan | None],
    run: Callable[[Servicing, Instant | None], ServiceResult],
) -> ServiceResult:
    """Carry out a plan; one that ``given`` keywords ask for is made first."""
    waiting = _given(plan, service, given)
    if waiting is None and _any(given):
        _check_partitions(work, given["partitions"])
        made = schedule(work, partitions=given["partitions"], instant=given["instant"])
        if made is None:
            return ServiceResult(service, None)
        waiting = made.instant
    return run(work, waiting)


def _check_partitions(work: Servicing, partitions: Sequence[str] | None) -> None:
    """Refuse a name that is no partition: a plan for it would look as if nothing were to do."""
    for name in () if partitions is None else texts_of("partitions", partitions):
        if next(iter(work.state.storage.list(name, stats=False)), None) is None:
            known = next(FileIndex(work.state).partitions(), None)
            such = f", such as {known.path!r}" if known is not None and known.path else ""
            raise NotFound(
                f"{work.name} has no partition {name!r}.",
                next_step=f"Partitions are named by their paths{such}.",
                partition=name,
            )


def _any(given: Mapping[str, object]) -> bool:
    return any(value is not None for value in given.values())


def _given(plan: PlanLike | None, service: Service, given: Mapping[str, object]) -> Instant | None:
    """Return the instant of a plan; ``Invalid`` where it is none, or none of this service."""
    if plan is None:
        return None
    if _any(given):
        names = ", ".join(name for name, value in given.items() if value is not None)
        raise Invalid(
            f"a plan is carried out as it is; {names} would make another one.",
            next_step="Give the plan alone, or schedule a new one.",
        )
    match plan:
        case ServicePlan(service=kind) if kind is not service:
            raise Invalid(
                f"the plan is one of a {kind}, not of a {service}.",
                next_step="Give it to the verb of its own service.",
            )
        case ServicePlan(instant=None):
            raise Invalid(
                "the plan was made to be looked at and is not on the timeline.",
                next_step="Schedule it: leave dry_run out.",
            )
        case ServicePlan(instant=Instant() as instant):
            return instant
        case Instant():
            return plan
        case str() if is_instant_time(plan):
            return Instant(plan, _ACTIONS[service], State.REQUESTED)
        case _:
            raise Invalid(
                f"{plan!r} is no plan.",
                next_step="Give what schedule_…() returned, or the instant of a plan.",
            )
