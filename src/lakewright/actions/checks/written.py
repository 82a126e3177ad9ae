"""Checks that the files which the history names are there, with the sizes it states."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakewright.actions.checks.findings import Findings
from lakewright.format.hudi.history import read_history
from lakewright.format.hudi.metadata.clean import (
    CleanMetadata,
    CleanPlan,
    decode_clean,
    planned_names,
)
from lakewright.format.hudi.metadata.commit import WriteStat
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.format.hudi.metadata.restore import RestoreMetadata, SavepointMetadata
from lakewright.format.hudi.metadata.rollback import RollbackMetadata
from lakewright.model.instant import Action, Instant
from lakewright.table.state import TableState


@dataclass(frozen=True, slots=True)
class Stated:
    """What the history says of one file: who names it, and its size where that is stated.

    ``grows`` is set for logs of layout 1, to which later commits append.
    """

    by: str
    size: int | None = None
    grows: bool = False


@dataclass(frozen=True, slots=True)
class Ledger:
    """The files that must be there, by partition and name; found ones are struck out."""

    files: dict[str, dict[str, Stated]] = field(default_factory=dict)

    def add(self, partition: str, name: str, stated: Stated) -> None:
        """Enter a file; the latest statement counts."""
        self.files.setdefault(partition, {})[name] = stated

    def strike(self, partition: str, name: str) -> Stated | None:
        """Take a file out and return what was stated of it; None where nothing was."""
        return self.files.get(partition, {}).pop(name, None)

    def rest(self) -> Iterator[tuple[str, str, Stated]]:
        """Yield the files that are still open."""
        for partition, names in self.files.items():
            for name, stated in names.items():
                yield partition, name, stated


def open_ledger(state: TableState, findings: Findings) -> Ledger:
    """Enter every file that commits, savepoints and unfinished plans of the timeline name."""
    ledger = Ledger()
    timeline = state.timeline
    for instant in timeline.data():
        with findings.reading("body", f"{state.config.timeline_folder}/{instant}"):
            for partition, stats in timeline.commit_metadata(instant).write_stats.items():
                for stat in stats:
                    _enter(ledger, partition, stat, instant, state, findings)
    for savepoint in timeline.by_action(Action.SAVEPOINT):
        with findings.reading("body", f"{state.config.timeline_folder}/{savepoint}"):
            _enter_savepoint(ledger, savepoint, timeline.metadata(savepoint), findings)
    for instant in timeline.pending():
        with findings.reading("plan", f"{state.config.timeline_folder}/{instant}"):
            _enter_plan(ledger, instant, timeline.plan(instant), findings)
    return ledger


def check_found(
    ledger: Ledger, partition: str, files: Mapping[str, int], findings: Findings
) -> None:
    """Strike out the files of a partition, and compare their sizes."""
    for name, size in files.items():
        stated = ledger.strike(partition, name)
        if stated is None or stated.size is None:
            continue
        if stated.size != size and not (stated.grows and size > stated.size):
            path = f"{partition}/{name}".removeprefix("/")
            findings.problem(
                "size", path, f"{stated.by} states {stated.size} bytes, the file has {size}."
            )


def check_missing(ledger: Ledger, state: TableState, findings: Findings) -> None:
    """Report what is still open and was not deleted by a cleaning or a rollback."""
    if not any(True for _ in ledger.rest()):
        return
    for partition, name in _deleted(state, findings):
        ledger.strike(partition, name)
    for partition, name, stated in ledger.rest():
        path = f"{partition}/{name}".removeprefix("/")
        findings.problem("missing-file", path, f"{stated.by} names it, but it is not there.")


def _enter(
    ledger: Ledger,
    partition: str,
    stat: WriteStat,
    instant: Instant,
    state: TableState,
    findings: Findings,
) -> None:
    where = f"{state.config.timeline_folder}/{instant}"
    if not stat.path:
        return
    folder, _, name = stat.path.rpartition("/")
    findings.checked["written files"] += 1
    if folder != partition:
        findings.problem("stat-path", where, f"{stat.path} is listed under {partition!r}.")
    grows = name.startswith(".") and state.config.layout == 1
    ledger.add(folder, name, Stated(str(instant), stat.file_size_in_bytes or None, grows))
    for cdc in stat.cdc_stats:
        findings.checked["written files"] += 1
        ledger.add(folder, cdc.rpartition("/")[2], Stated(str(instant)))


def _enter_savepoint(ledger: Ledger, savepoint: Instant, body: object, findings: Findings) -> None:
    if not isinstance(body, SavepointMetadata):
        return
    for partition, kept in body.partitions.items():
        for name in kept.files:
            findings.checked["savepointed files"] += 1
            known = ledger.files.get(partition, {}).get(name)
            ledger.add(partition, name, known or Stated(str(savepoint)))


def _enter_plan(ledger: Ledger, instant: Instant, plan: object, findings: Findings) -> None:
    for partition, names in _planned(plan):
        for name in names:
            findings.checked["planned files"] += 1
            known = ledger.files.get(partition, {}).get(name)
            ledger.add(partition, name, known or Stated(str(instant)))


def _planned(plan: object) -> Iterator[tuple[str, Sequence[str]]]:
    if isinstance(plan, CompactionPlan):
        for operation in plan.operations:
            paths = (operation.base_file, *operation.log_files)
            yield operation.partition, [path.rpartition("/")[2] for path in paths if path]
    if isinstance(plan, ReplacePlan) and plan.clustering is not None:
        for group in plan.clustering.groups:
            for piece in group.slices:
                paths = (piece.base_file, *piece.log_files)
                yield piece.partition, [path.rpartition("/")[2] for path in paths if path]


def _deleted(state: TableState, findings: Findings) -> Iterator[tuple[str, str]]:
    """Yield the files that cleanings, rollbacks and restores deleted, archived ones included.

    Of a cleaning that is not finished, those count that it is going to delete.
    """
    timeline = state.timeline
    for instant in timeline.pending():
        with findings.reading("plan", f"{state.config.timeline_folder}/{instant}"):
            plan = timeline.plan(instant) if instant.action is Action.CLEAN else None
            if isinstance(plan, CleanPlan):
                for partition, names in planned_names(plan):
                    yield from ((partition, name) for name in names)
    for instant in timeline.completed():
        with findings.reading("body", f"{state.config.timeline_folder}/{instant}"):
            if instant.action in (Action.CLEAN, Action.ROLLBACK, Action.RESTORE):
                yield from _deleted_by(timeline.metadata(instant))
    with findings.reading("history", state.config.history_folder):
        for past in read_history(state.storage, state.config):
            if past.instant.action is Action.CLEAN and past.metadata is not None:
                yield from _deleted_by(decode_clean(past.metadata, str(past.instant)))


def _deleted_by(body: object) -> Iterator[tuple[str, str]]:
    if isinstance(body, CleanMetadata):
        for partition, cleaned in body.partitions.items():
            yield from ((partition, path.rpartition("/")[2]) for path in cleaned.deleted)
    if isinstance(body, RollbackMetadata):
        for partition, rolled_back in body.partitions.items():
            yield from ((partition, path.rpartition("/")[2]) for path in rolled_back.deleted)
    if isinstance(body, RestoreMetadata):
        for rollbacks in body.rollbacks.values():
            for rollback in rollbacks:
                yield from _deleted_by(rollback)
