"""Carrying out the plan of a cleaning: the files go, then the record says which went."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakewright.actions.executor import Attempt
from lakewright.actions.services.clean_choice import Shield, is_data_file
from lakewright.actions.services.clean_draft import LISTERS
from lakewright.actions.services.clean_scope import PINS, SAVEPOINTS, noted, savepoints
from lakewright.actions.services.clean_shield import shield_of
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.tasks.clean_files import Batch, Deleted, delete_batch
from lakewright.actions.threads import run_in_threads
from lakewright.format.hudi.metadata.clean import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    encode_clean,
    planned_names,
)
from lakewright.format.hudi.partition_metadata import PARTITION_METADATA_NAMES
from lakewright.model.errors import Corrupt, InstantNotFound, Unsupported
from lakewright.model.instant import Action, Instant
from lakewright.model.logs import facts
from lakewright.model.services import PartitionServed, Service, ServiceResult
from lakewright.storage.paths import check_path, join, split
from lakewright.storage.port import Storage
from lakewright.table.horizon import see_at
from lakewright.table.slicing import Listing, latest_slices
from lakewright.table.state import TableState
from lakewright.timeline.store_clock import earlier_time
from lakewright.timeline.view import TimelineView

log = logging.getLogger(__name__)

#: Files that are deleted with one call, as object stores take them.
_BATCH = 1000
#: What deleting a file counts for where it is decided who does the work.
_WEIGHT = 1 << 14


class _Changed(Exception):
    """Partitions that were about to go have been written to."""


def carry_out(
    work: Servicing, instant: Instant, sizes: Mapping[str, int] | None = None
) -> ServiceResult:
    """Delete what a plan names and complete it.

    Every step may run twice, here or elsewhere. ``sizes`` are bytes by partition, where whoever
    planned knows them; else the files are asked. A file that a savepoint or a pin holds by now
    stays, as does one that became the latest again because writes were taken back.
    """
    begun = time.monotonic()
    state = work.state.refresh()
    view = state.timeline
    found = next(
        (i for i in view.by_action(Action.CLEAN) if i.requested == instant.requested), None
    )
    if found is None:
        raise InstantNotFound(
            f"The timeline has no cleaning {instant.requested}.",
            next_step="It may have been archived or taken back; look at the timeline.",
            instant=instant.requested,
        )
    if found.is_completed:
        body = view.metadata(found)
        return _result(found, body.partitions if isinstance(body, CleanMetadata) else {}, {})
    plan = view.plan(found)
    if not isinstance(plan, CleanPlan):
        raise Corrupt(
            f"The cleaning {instant.requested} has no plan.",
            next_step="Delete its requested and inflight files; the next cleaning plans anew.",
            instant=instant.requested,
        )
    wanted = dict(_checked(plan, found))
    shield = shield_of(state.storage, view, earlier_time(state.storage))
    kept = _held(state, found, wanted, shield)
    plan = replace(plan, extra=_extra(plan, view, shield))
    files = {p: tuple(n for n in names if n not in kept[p]) for p, names in wanted.items()}
    if sizes is None:
        sizes = dict(_sizes(state.storage, files))
    work.upkeep.start(found)
    failed = _delete(work, files)
    cleaned = {
        partition: CleanedPartition(
            partition,
            plan.policy,
            patterns=names,
            deleted=tuple(n for n in names if (partition, n) not in failed),
            failed=tuple(n for n in names if (partition, n) in failed),
        )
        for partition, names in files.items()
    }
    done = _complete(work, found, plan, cleaned, begun)
    log.info(
        "table cleaned",
        extra=facts(
            instant=found.requested,
            files=sum(len(entry.deleted) for entry in cleaned.values()),
            failed=len(failed),
        ),
    )
    return _result(done, cleaned, sizes)


def _result(
    instant: Instant, cleaned: Mapping[str, CleanedPartition], sizes: Mapping[str, int]
) -> ServiceResult:
    served = {
        partition: PartitionServed(
            files_deleted=len(entry.deleted), bytes_deleted=sizes.get(partition, 0)
        )
        for partition, entry in cleaned.items()
    }
    return ServiceResult(Service.CLEANING, instant, served)


# ------------------------------------------------------------------------ what may go


def _checked(plan: CleanPlan, instant: Instant) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Stream the names of a plan by partition, after making sure that all are data files."""
    if any(file.is_bootstrap_base_file for files in plan.files.values() for file in files):
        raise Unsupported(
            f"The cleaning {instant.requested} deletes files that the table was bootstrapped from.",
            next_step="Carry it out with Hudi.",
            instant=instant.requested,
        )
    for partition, names in planned_names(plan):
        check_path(partition)
        for name in names:
            if not is_data_file(partition, name) or partition.startswith(".hoodie"):
                raise Corrupt(
                    f"The cleaning {instant.requested} wants to delete {join(partition, name)!r}, "
                    "which is no data file of the table.",
                    next_step="Nothing of it was deleted; look at its requested file.",
                    instant=instant.requested,
                    path=join(partition, name),
                )
        yield partition, names


def _extra(plan: CleanPlan, view: TimelineView, shield: Shield) -> Mapping[str, str]:
    """Return what the record notes: the next cleaning looks again at what was held meanwhile."""
    held = {
        SAVEPOINTS: noted(plan.extra, SAVEPOINTS) | savepoints(view),
        PINS: noted(plan.extra, PINS) | shield.pins.ids,
    }
    return {**plan.extra, **{key: ",".join(sorted(ids)) for key, ids in held.items() if ids}}


def _held(
    state: TableState, instant: Instant, wanted: Mapping[str, Sequence[str]], shield: Shield
) -> Mapping[str, frozenset[str]]:
    """Return the names that must stay after all, by partition."""
    revived = any(
        i.requested > instant.requested
        for i in state.timeline.by_action(Action.ROLLBACK, Action.RESTORE)
    )
    held = {p: _names(shield, p).intersection(names) for p, names in wanted.items()}
    if revived:
        visible = see_at(state, None)
        for partition in wanted:
            files = [(split(f.path)[1], f.size) for f in state.storage.list(partition, stats=False)]
            listing = Listing(partition, [name for name, _ in files], [size for _, size in files])
            live = {split(p)[1] for s in latest_slices(listing, visible) for p in s.paths}
            held[partition] |= live.intersection(wanted[partition])
    count = sum(map(len, held.values()))
    if count:
        log.warning(
            "files that a cleaning was going to delete are needed again, and stay",
            extra=facts(instant=instant.requested, files=count),
        )
    return held


def _names(shield: Shield, partition: str) -> frozenset[str]:
    return frozenset(shield.names(partition))


# ------------------------------------------------------------------------------ going


def _sizes(storage: Storage, files: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    """Stream the bytes of files that are there, by partition."""
    partitions = [partition for partition, names in files.items() if names]
    for listed in run_in_threads(_list_sizes, storage, partitions, threads=LISTERS):
        sizes = dict(zip(listed.names, listed.sizes, strict=True))
        yield listed.partition, sum(sizes.get(name, 0) for name in files[listed.partition])


def _list_sizes(storage: Storage, partition: str, attempt: Attempt) -> Listing:
    found = [(split(file.path)[1], file.size) for file in storage.list(partition)]
    return Listing(partition, [name for name, _ in found], [size for _, size in found])


def _delete(work: Servicing, files: Mapping[str, tuple[str, ...]]) -> frozenset[tuple[str, str]]:
    """Delete in batches and return what the store refused to delete."""
    work.progress.stage("cleaning", sum(map(len, files.values())))
    failed: set[tuple[str, str]] = set()
    batches = list(_batches(files))
    results: Iterator[Deleted] = work.executor.map(
        delete_batch, work.state.storage, batches, size=lambda batch: batch.count * _WEIGHT
    )
    for result in results:
        failed.update(result.failed)
        work.progress.advance(result.batch.count)
    return frozenset(failed)


def _batches(files: Mapping[str, tuple[str, ...]]) -> Iterator[Batch]:
    """Pack names into batches; one may span partitions, and a partition several batches."""
    held: list[tuple[str, tuple[str, ...]]] = []
    room = _BATCH
    for partition, names in files.items():
        at = 0
        while at < len(names):
            piece = names[at : at + room]
            held.append((partition, piece))
            at += len(piece)
            room -= len(piece)
            if not room:
                yield Batch(tuple(held))
                held, room = [], _BATCH
    if held:
        yield Batch(tuple(held))


# ------------------------------------------------------------------------- completing


@dataclass(slots=True)
class _Emptied:
    """Partitions that a cleaning leaves empty: their metadata goes, unless somebody writes there.

    A writer that has seen the metadata does not write it again, and without it Hudi does not
    find the partition: so nobody may be writing anything when it goes.
    """

    state: TableState
    instant: Instant
    partitions: tuple[str, ...]

    def free(self, view: TimelineView) -> tuple[str, ...]:
        """Return those that nobody has written to since, nor is about to."""
        if not self.partitions or view.pending_writes:
            return ()
        since = [i for i in view.data() if (i.completed or "") > self.instant.requested]
        touched = {p for _, body in view.commits(since) for p in body.write_stats}
        return tuple(p for p in self.partitions if p not in touched)

    def drop(self, view: TimelineView, expected: tuple[str, ...]) -> None:
        """Delete the metadata of partitions, under the lock."""
        if self.free(view) != expected:
            raise _Changed
        self.state.storage.delete(
            [join(partition, name) for partition in expected for name in PARTITION_METADATA_NAMES]
        )


def _complete(
    work: Servicing,
    instant: Instant,
    plan: CleanPlan,
    cleaned: Mapping[str, CleanedPartition],
    begun: float,
) -> Instant:
    whole = {p for p, names in planned_names(plan) if p in cleaned and cleaned[p].deleted == names}
    going = tuple(p for p in plan.partitions if p in whole)
    while True:
        state = work.state.refresh()
        emptied = _Emptied(state, instant, going)
        free = emptied.free(state.timeline)
        body = encode_clean(_record(instant, plan, cleaned, free, begun))
        try:
            return work.upkeep.complete(instant, body, partial(emptied.drop, expected=free))
        except _Changed:
            going = free


def _record(
    instant: Instant,
    plan: CleanPlan,
    cleaned: Mapping[str, CleanedPartition],
    gone: Sequence[str],
    begun: float,
) -> CleanMetadata:
    emptied = frozenset(gone)
    partitions = {
        partition: CleanedPartition(
            partition,
            entry.policy,
            entry.patterns,
            entry.deleted,
            entry.failed,
            is_partition_deleted=partition in emptied,
        )
        for partition, entry in cleaned.items()
    }
    earliest = plan.earliest_to_retain
    return CleanMetadata(
        start=instant.requested,
        millis=int((time.monotonic() - begun) * 1000),
        total_deleted=sum(len(entry.deleted) for entry in cleaned.values()),
        earliest_to_retain="" if earliest is None else earliest.timestamp,
        last_completed=plan.last_completed,
        partitions=partitions,
        extra=plan.extra,
    )
