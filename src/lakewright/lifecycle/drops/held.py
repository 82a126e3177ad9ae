"""What partitions hold, as plans and their undo see it: slices, marks, and what has changed."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lakewright.actions.buckets.rescale_slices import finished_slices
from lakewright.actions.partitions.returning import Gone
from lakewright.actions.services.slices import list_slices, partitions_of, planned_groups
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.metadata.commit import RESCALED, CommitMetadata
from lakewright.lifecycle.plans.plan import Json, Plan, Skipped, moment_of, skipped_of
from lakewright.lifecycle.plans.records import Applied
from lakewright.lifecycle.plans.store import PlanStore
from lakewright.model.errors import Conflict, Corrupt
from lakewright.model.files import FileGroupId, FileSlice, LogFile
from lakewright.model.instant import Instant
from lakewright.storage.port import Storage
from lakewright.storage.streams import map_bounded
from lakewright.table.renamed_logs import other_names
from lakewright.table.state import TableState
from lakewright.timeline.view import TimelineView

#: Operations that change no row.
_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})
#: Partitions that are listed at the same time.
_LISTINGS = 16
#: How often the timeline is listed again while what it held vanishes.
_LOOKS = 5


def slices_of(state: TableState, partitions: Sequence[str]) -> dict[str, Sequence[FileSlice]]:
    """Return the live slices of partitions, without logs of writes under way.

    Partitions without any are left out.
    """
    found = ((path, finished_slices(state, held)) for path, held in list_slices(state, partitions))
    return {path: slices for path, slices in found if slices}


def mark_of(slices: Iterable[FileSlice]) -> str:
    """Return a short text that differs where the files do."""
    names = "\n".join(sorted(path for piece in slices for path in piece.paths))
    return hashlib.blake2b(names.encode(), digest_size=12).hexdigest()


def planned_services(state: TableState) -> dict[str, str]:
    """Return the partitions on which a service is planned or at work, and why they must wait.

    What vanished since the timeline was listed was taken back: then it is listed again.
    """
    for left in reversed(range(_LOOKS)):
        try:
            groups = planned_groups(state.timeline)
            break
        except Conflict:
            if not left:
                raise
            state = state.refresh()
    found: dict[str, str] = {}
    for (partition, _), action in sorted(groups.items()):
        found.setdefault(partition, f"a {action} is planned on it, or at work; it ends first")
    return found


def writes_since(plan: Plan, view: TimelineView) -> dict[str, str]:
    """Return the partitions whose rows were changed since a plan was made, and by which write."""
    since = plan.base.completed or ""
    whole = view.with_history() if view.is_archived(since) else view
    fresh = [i for i in whole.data() if (i.completed or "") > since]
    found: dict[str, str] = {}
    for instant, body in whole.commits(sorted(fresh, key=_order)):
        if not is_service(body):
            for partition in (*body.write_stats, *body.replaced):
                found[partition] = instant.requested
    return found


def moved_since(plan: Plan, view: TimelineView) -> frozenset[str]:
    """Return the partitions that services rewrote since a plan was made."""
    since = plan.base.completed or ""
    whole = view.with_history() if view.is_archived(since) else view
    fresh = [i for i in whole.data() if (i.completed or "") > since]
    return partitions_of(whole, fresh)


def is_service(body: CommitMetadata) -> bool:
    """Whether a commit moved rows and changed none."""
    return body.operation in _SERVICES or RESCALED in body.extra


def _order(instant: Instant) -> tuple[str, str]:
    return instant.completed or "", instant.requested


def to_json(gone: Iterable[Gone]) -> dict[str, Json]:
    """Return partitions that are about to go, for ``gone_of`` to read."""
    return {
        one.partition: {
            "buckets": one.buckets,
            "slices": [
                {
                    "group": piece.group.file_id,
                    "instant": piece.base_instant,
                    "base": None if piece.base is None else piece.base.name,
                    "logs": [log.name for log in piece.logs],
                }
                for piece in one.slices
            ],
        }
        for one in gone
    }


@dataclass(frozen=True, slots=True)
class Prepared:
    """What an attempt at a plan wrote down before it dropped: what goes, and what is skipped.

    ``until`` is the end of the undo window.
    """

    gone: tuple[Gone, ...]
    skipped: tuple[Skipped, ...]
    until: datetime


def prepared_of(value: Json) -> Prepared:
    """Read what an attempt wrote down."""
    return Prepared(
        gone_of(value["partitions"]), skipped_of(value["skipped"]), moment_of(value["until"])
    )


def gone_of(value: Mapping[str, Json]) -> tuple[Gone, ...]:
    """Read partitions that went."""
    return tuple(
        Gone(
            partition,
            tuple(_slice(partition, piece) for piece in held["slices"]),
            None if held["buckets"] is None else int(held["buckets"]),
        )
        for partition, held in value.items()
    )


def _slice(partition: str, value: Mapping[str, Json]) -> FileSlice:
    base = None if value["base"] is None else base_file(partition, value["base"])
    logs = tuple(log_file(partition, name) for name in value["logs"])
    if (base is None) != (value["base"] is None) or any(log is None for log in logs):
        raise Corrupt(
            f"a slice of partition {partition!r} names files that are none of a table's.",
            next_step="Restore the plan's folder from a copy.",
            partition=partition,
        )
    kept = tuple(log for log in logs if log is not None)
    return FileSlice(FileGroupId(partition, value["group"]), value["instant"], base, kept)


def dropped_by(store: PlanStore, applied: Applied) -> tuple[Gone, ...]:
    """Return what a plan dropped, by the names that the files have now.

    ``NotFound`` where it is not written down, ``Corrupt`` where that are not the partitions which
    the plan is said to have dropped: an undo would leave some out, and say that it is done.
    """
    gone = store.prepared(applied.plan, applied.attempt, prepared_of).gone
    told = {one.partition for one in gone} ^ set(applied.done)
    if told:
        raise Corrupt(
            f"prepared-{applied.attempt}.json and applied.json of the plan {applied.plan} do not "
            f"name the same partitions: {min(told)!r} is in one of them alone.",
            next_step="The undo of the plan needs both: restore its folder from a copy.",
            plan=applied.plan,
            partition=min(told),
        )
    others = other_names(store.storage)
    if not others:
        return gone
    return tuple(_renamed(store.storage, one, others) for one in gone)


def _renamed(storage: Storage, gone: Gone, others: Mapping[str, frozenset[str]]) -> Gone:
    if not any(log.path in others for piece in gone.slices for log in piece.logs):
        return gone
    there = {file.path for file in storage.list(gone.partition, stats=False)}

    def now(log: LogFile) -> LogFile:
        found = () if log.path in there else sorted(others.get(log.path, frozenset()) & there)
        named = log_file(gone.partition, found[0].rpartition("/")[2]) if found else None
        return named or log

    slices = (replace(piece, logs=tuple(map(now, piece.logs))) for piece in gone.slices)
    return replace(gone, slices=tuple(slices))


def names_of(gone: Iterable[Gone]) -> dict[str, frozenset[str]]:
    """Return the names of files by partition, as pins hold them."""
    return {
        one.partition: frozenset(
            path.rpartition("/")[2] for piece in one.slices for path in piece.paths
        )
        for one in gone
    }


def sized(storage: Storage, gone: Sequence[Gone]) -> tuple[Gone, ...]:
    """Return partitions that went with the sizes that their files have now."""

    def looked_at(one: Gone) -> Gone:
        sizes = {file.path: file.size for file in storage.list(one.partition)}
        return replace(one, slices=tuple(_sized(piece, sizes) for piece in one.slices))

    return tuple(map_bounded(looked_at, gone, threads=_LISTINGS))


def _sized(piece: FileSlice, sizes: Mapping[str, int]) -> FileSlice:
    base = piece.base
    if base is not None:
        base = replace(base, size=sizes.get(base.path, -1))
    logs = tuple(replace(log, size=sizes.get(log.path, -1)) for log in piece.logs)
    return replace(piece, base=base, logs=logs)


def cleaned(storage: Storage, gone: Sequence[Gone]) -> tuple[str, ...]:
    """Return the partitions of which files are not there any more."""

    def lacks(wanted: tuple[str, frozenset[str]]) -> tuple[str, bool]:
        partition, names = wanted
        there = {file.path.rpartition("/")[2] for file in storage.list(partition, stats=False)}
        return partition, not names <= there

    found: Iterator[tuple[str, bool]] = map_bounded(
        lacks, list(names_of(gone).items()), threads=_LISTINGS
    )
    return tuple(sorted(partition for partition, lacking in found if lacking))
