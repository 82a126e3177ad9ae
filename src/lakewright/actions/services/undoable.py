"""Whether a table can go back: the files of the earlier state must all be there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.format.hudi.metadata.compaction import CompactionPlan
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.format.hudi.metadata.restore import SavepointMetadata
from lakewright.model.errors import Conflict, HistoryGone
from lakewright.model.instant import BEGINNING, Action, Instant
from lakewright.storage.paths import split
from lakewright.timeline.view import TimelineView


@dataclass(slots=True)
class _Needed:
    """What a partition must still hold: files by name, base files by group and instant, groups.

    ``made`` are groups that came with what is undone: they are not missed.
    """

    names: set[str] = field(default_factory=set)
    bases: set[tuple[str, str]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)


def check_files(view: TimelineView, undone: Iterable[Instant], kept: str | None = None) -> None:
    """Raise ``HistoryGone`` where undoing these writes would leave groups without their files.

    Each write tells what it built on. What another one of them wrote is no file of the earlier
    state, nor is a group that came and went with them. ``kept`` is a savepoint whose files must
    be there; it names all groups that were there then.
    """
    going = {i.requested: i for i in undone if i.is_completed}
    needed: dict[str, _Needed] = {}
    for instant in going.values():
        _built_on(view, instant, going, needed)
    if kept is not None:
        body = view.metadata(view.instant(kept, Action.SAVEPOINT))
        if isinstance(body, SavepointMetadata):
            for part_needed in needed.values():
                part_needed.groups.clear()
            for partition, part in body.partitions.items():
                needed.setdefault(partition, _Needed()).names.update(part.files)
    gone = [
        f"{partition}/{what}" if partition else what
        for partition in sorted(needed)
        for what in _missing(view, partition, needed[partition])
    ]
    if gone:
        raise HistoryGone(
            f"{len(gone)} files of the earlier state are gone, the first is {gone[0]}.",
            next_step="They were cleaned away: go back less far, or restore them from a copy.",
            files=len(gone),
        )


def _built_on(
    view: TimelineView,
    instant: Instant,
    going: Mapping[str, Instant],
    needed: dict[str, _Needed],
) -> None:
    metadata = view.commit_metadata(instant)
    planned = view.plan(instant)
    if isinstance(planned, CompactionPlan):
        for operation in planned.operations:
            part = needed.setdefault(operation.partition, _Needed())
            files = (*operation.log_files, *((operation.base_file,) if operation.base_file else ()))
            _add_names(part, operation.partition, files, going)
        return
    if isinstance(planned, ReplacePlan) and planned.clustering is not None:
        for group in planned.clustering.groups:
            for piece in group.slices:
                part = needed.setdefault(piece.partition, _Needed())
                files = (*piece.log_files, *((piece.base_file,) if piece.base_file else ()))
                _add_names(part, piece.partition, files, going)
        for partition, stats in metadata.write_stats.items():
            needed.setdefault(partition, _Needed()).made.update(stat.file_id for stat in stats)
        return
    _of_write(metadata, going, needed)


def _add_names(
    part: _Needed, partition: str, files: Iterable[str], going: Mapping[str, Instant]
) -> None:
    for full in files:
        name = split(full)[1]
        file = base_file(partition, name) or log_file(partition, name)
        if file is not None and file.instant not in going:
            part.names.add(name)


def _of_write(
    metadata: CommitMetadata, going: Mapping[str, Instant], needed: dict[str, _Needed]
) -> None:
    for partition, stats in metadata.write_stats.items():
        for stat in stats:
            logged = stat.path is not None and split(stat.path)[1].startswith(".")
            if logged:
                continue
            part, built_on = needed.setdefault(partition, _Needed()), stat.prev_commit
            if built_on in (None, "", "null"):
                part.made.add(stat.file_id)
            elif built_on not in going:
                part.bases.add((stat.file_id, str(built_on)))
    for partition, file_ids in metadata.replaced.items():
        needed.setdefault(partition, _Needed()).groups.update(file_ids)


def _missing(view: TimelineView, partition: str, needed: _Needed) -> Iterator[str]:
    names: set[str] = set()
    bases: set[tuple[str, str]] = set()
    groups: set[str] = set()
    for stat in view.storage.list(partition, stats=False):
        name = split(stat.path)[1]
        base = base_file(partition, name)
        file = base or log_file(partition, name)
        if file is None:
            continue
        names.add(name)
        groups.add(file.file_id)
        if base is not None:
            bases.add((base.file_id, base.instant))
    yield from sorted(needed.names - names)
    yield from (f"{group} of {instant}" for group, instant in sorted(needed.bases - bases))
    yield from sorted(needed.groups - needed.made - groups)


def check_quiet(view: TimelineView) -> None:
    """Raise ``Conflict`` while something is under way that an undoing would be in the way of."""
    for instant in view.pending():
        writes = instant.action.writes_data and not _is_service(view, instant)
        if writes or instant.action in (Action.CLEAN, Action.ROLLBACK):
            finisher = "cleaning" if instant.action is Action.CLEAN else "write or restore"
            raise Conflict(
                f"The {instant.action} {instant.requested} is under way.",
                next_step="Let it finish; one that was cut off is finished or taken back by the "
                f"next {finisher}.",
                instant=str(instant),
            )


def _is_service(view: TimelineView, instant: Instant) -> bool:
    plan = view.plan(instant) if instant.action is Action.REPLACECOMMIT else None
    return isinstance(plan, ReplacePlan) and plan.is_service


def check_unsaved(view: TimelineView, undone: Iterable[Instant]) -> None:
    """Raise ``Conflict`` where a savepoint keeps one of these writes."""
    saved = {i.requested for i in view.by_action(Action.SAVEPOINT) if i.is_completed}
    held = sorted(saved & {i.requested for i in undone})
    if held:
        raise Conflict(
            f"There is a savepoint {held[-1]}"
            + (f" and {len(held) - 1} more" if len(held) > 1 else "")
            + " that would be undone.",
            next_step="Delete it first if it is not needed any more.",
            instant=held[-1],
        )


def check_not_last(view: TimelineView, target: Instant) -> None:
    """Raise ``HistoryGone`` where no write would be left, and others have been archived.

    Readers take files for committed that are older than the first write of the timeline. Without
    one, all but those that look into the archived history would find the table empty.
    """
    if any(i.requested != target.requested for i in view.data()):
        return
    if any(one < target.requested for one in view.bodies.archived_since(BEGINNING)):
        raise HistoryGone(
            f"{target.requested} is the only write that has not been archived: without it other "
            "readers would not find the rows of the archived ones.",
            next_step="Write the earlier rows anew: insert_overwrite_table(scan(as_of=…)).",
            instant=target.requested,
        )
