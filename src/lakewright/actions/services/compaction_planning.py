"""Plans of compactions and log compactions in the making."""

import datetime as dt
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from lakewright.actions.services.compaction_choice import Candidate, Choice
from lakewright.actions.services.compaction_options import PlanSettings
from lakewright.actions.services.compaction_scope import completeness, partitions_with_logs
from lakewright.actions.services.plan import PlanItem, ServicePlan
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.slices import (
    list_slices,
    partitions_of,
    planned_groups,
    written_since,
)
from lakewright.actions.tasks.write_settings import MAX_FILE
from lakewright.actions.write.admission import check_config
from lakewright.format.hudi.log.read import scan_blocks
from lakewright.format.hudi.metadata.compaction import (
    CompactionPlan,
    CompactionStrategy,
    encode_compaction_plan,
)
from lakewright.model.errors import Invalid
from lakewright.model.files import FileSlice
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.services import Service
from lakewright.model.table import TableType
from lakewright.storage.port import Storage
from lakewright.table.state import TableState
from lakewright.timeline.conflicts import Place
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)


class Planner:
    """Finds the slices of a plan outside the lock, and brings them up to date under it.

    Slices with less than ``least_logs`` logs are left alone; logs that a log compaction has merged
    count as one where only logs are merged. ``executor`` names the class of
    Hudi's that carries the plan out where it is not the usual one.
    """

    def __init__(
        self,
        work: Servicing,
        service: Service,
        settings: PlanSettings,
        partitions: Sequence[str] | None,
        *,
        least_logs: int = 1,
        executor: str | None = None,
    ) -> None:
        self._work = work
        self._service = service
        self._settings = settings
        self._least_logs = least_logs
        self._executor = executor
        self._partitions = None if partitions is None else tuple(dict.fromkeys(partitions))
        self._seen = work.state.refresh()
        self._completeness: Mapping[str, str] = {}
        today = dt.datetime.now(dt.UTC).date()
        self._choice = Choice(settings, MAX_FILE.read(work.options), today)
        work.progress.stage("looking for slices with logs")
        self._known = partitions_with_logs(self._seen.timeline)
        wanted = self._partitions
        if wanted is None and self._known is not None:
            wanted = tuple(sorted(self._known))
        self._add(list_slices(self._seen, wanted), self._seen.timeline)
        if self._partitions is not None:
            self._choice.missing |= self._elsewhere()

    def plan(self) -> CompactionPlan | None:
        """Return the plan as it stands; None where there is nothing to do."""
        settled = self._choice.settled()
        chosen = settled.chosen()
        if not chosen:
            return None
        return CompactionPlan(
            operations=tuple(found.operation() for found in chosen),
            extra=self._completeness,
            strategy=None if self._executor is None else CompactionStrategy(self._executor),
            missing_partitions=tuple(sorted(settled.missing)),
        )

    def updated(self, view: TimelineView) -> CompactionPlan | None:
        """Return the plan on the timeline as it is now: partitions written since are listed again.

        Called under the lock.
        """
        touched = written_since(self._seen.timeline, view)
        if self._partitions is not None:
            self._choice.missing |= touched - set(self._partitions)
            touched &= set(self._partitions)
        if touched:
            self._choice.forget(touched)
            state = TableState(self._seen.storage, self._seen.config, view)
            self._add(list_slices(state, sorted(touched)), view)
        taken: defaultdict[Action, set[Place]] = defaultdict(set)
        for group, action in planned_groups(view).items():
            taken[action].add(group)
        for action, groups in taken.items():
            self._choice.leave(groups, _taken_by(action))
        if self._executor is None and (self._partitions is None or self._known is not None):
            self._completeness = completeness(view)
        return self.plan()

    def value(self, plan: CompactionPlan, instant: Instant | None) -> ServicePlan:
        """Return the plan as the user sees it."""
        settled = self._choice.settled()
        return ServicePlan(
            table=self._work.name,
            service=self._service,
            instant=instant,
            body=plan,
            items=[_item(found, self._service) for found in settled.chosen()],
            strategy=self._settings.name,
            passed_over=tuple(sorted(settled.passed_over.items())),
        )

    def _add(self, found: Iterable[tuple[str, Sequence[FileSlice]]], view: TimelineView) -> None:
        taken = planned_groups(view)
        merged = _log_compactions(view) if self._executor is not None else frozenset()
        # Merged logs stand where the newest of them stood. A write that was requested before that
        # and is still under way would lose against the older ones among them.
        writes = (i.requested for i in view.pending() if i.action is Action.DELTACOMMIT)
        under_way = min(writes, default=None)
        for partition, pieces in found:
            for piece in pieces:
                if not piece.logs or _logs_left(piece, merged) < self._least_logs:
                    continue
                action = taken.get((partition, piece.group.file_id))
                if action is not None:
                    self._choice.pass_over(partition, _taken_by(action))
                elif self._executor is not None and _is_partial(self._seen.storage, piece):
                    self._choice.pass_over(partition, "records are merged column by column")
                elif self._executor is not None and _overtakes(piece, under_way):
                    self._choice.pass_over(partition, "a write that began before is under way")
                else:
                    self._choice.add(piece)
            self._work.progress.advance()

    def _elsewhere(self) -> set[str]:
        """Return partitions that may have logs and were not asked for.

        Hudi looks at partitions that were written since the last plan, and at those that it names.
        """
        if self._known is not None:
            return set(self._known) - set(self._partitions or ())
        view = self._seen.timeline
        before = [e.instant for e in view.entries if e.planned is Action.COMPACTION]
        since = before[-1].requested if before else ""
        found = set(partitions_of(view, [i for i in view.data() if (i.completed or "") > since]))
        if before:
            plan = view.plan(before[-1])
            found |= set(plan.missing_partitions if isinstance(plan, CompactionPlan) else ())
        return found - set(self._partitions or ())


def scheduled(
    work: Servicing,
    action: Action,
    planner: Planner,
    instant: str | None,
    must_wait: Callable[[TimelineView], str | None] = lambda view: None,
) -> ServicePlan | None:
    """Put the plan on the timeline as it is under the lock; None where it is empty or must wait."""
    made: list[CompactionPlan] = []

    def make(view: TimelineView, taken: str) -> bytes | None:
        why = must_wait(view)
        if why is not None:
            told = facts(table=work.state.storage.uri, why=why)
            log.warning("no %s is planned: %s", action, why, extra=told)
            return None
        found = planner.updated(view)
        if found is None:
            return None
        made.append(found)
        return encode_compaction_plan(found)

    done = work.upkeep.schedule(action, make, instant=instant)
    return None if done is None else planner.value(made[-1], done)


def check_compactable(work: Servicing) -> None:
    """Refuse a table that has no logs to merge, or whose files are not written here."""
    if work.state.config.table_type is not TableType.MERGE_ON_READ:
        raise Invalid(
            f"{work.name} is a copy-on-write table: it has no logs to compact.",
            next_step="Cluster it where its files are too many or too small.",
            table=work.name,
        )
    check_config(work.state.config)


def _log_compactions(view: TimelineView) -> frozenset[str]:
    return frozenset(
        e.instant.requested
        for e in view.entries
        if e.planned is Action.LOGCOMPACTION and e.instant.is_completed
    )


def _logs_left(piece: FileSlice, merged: frozenset[str]) -> int:
    """Return how many logs a slice has, counted from the last one that stands for others."""
    places = (n for n, found in enumerate(piece.logs) if found.instant in merged)
    return len(piece.logs) - max(places, default=0)


def _is_partial(storage: Storage, piece: FileSlice) -> bool:
    """Say whether a log holds records of the columns alone that changed: such stay as they are."""
    for found in piece.logs:
        with storage.open(found.path) as opened:
            size = opened.seek(0, os.SEEK_END)
            if any(block.is_partial for block in scan_blocks(opened, size, found.path)):
                return True
    return False


def _overtakes(piece: FileSlice, under_way: str | None) -> bool:
    """Say whether a log is newer than the first write that has not ended."""
    return under_way is not None and any(found.instant > under_way for found in piece.logs)


def _taken_by(action: Action) -> str:
    return f"in an unfinished {action}"


def _item(found: Candidate, service: Service) -> PlanItem:
    piece = found.piece
    logs = len(piece.logs)
    log_bytes = found.log_bytes
    merges_logs_alone = service is Service.LOG_COMPACTION
    return PlanItem(
        partition=piece.group.partition,
        group=piece.group.file_id,
        files=logs + (piece.base is not None and not merges_logs_alone),
        bytes_in=log_bytes if merges_logs_alone else found.bytes_in,
        bytes_out=log_bytes if merges_logs_alone else found.bytes_out,
        why=f"{logs} log{'s' if logs > 1 else ''} of {log_bytes} bytes",
    )
