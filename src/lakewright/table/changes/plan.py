"""From a window of the timeline to the tasks that read its changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.metadata.commit import RESCALED, CommitMetadata, WriteStat
from lakewright.model.errors import HistoryGone
from lakewright.model.files import FileGroup, FileGroupId, FileSlice, LogFile
from lakewright.model.instant import Instant
from lakewright.table.changes.task import ChangeKind, ChangeTask
from lakewright.table.horizon import see_at, window
from lakewright.table.slicing import Listing, file_groups
from lakewright.table.standing import Reading, check_standing
from lakewright.table.state import TableState
from lakewright.table.visibility import Visibility

#: Operations that move rows without changing what the table holds.
_MAINTENANCE = frozenset(
    {"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX", "ALTER_SCHEMA", "BUCKET_RESCALE"}
)


@dataclass(frozen=True, slots=True)
class _Touch:
    """That an instant wrote to a group, or replaced it (no stats)."""

    instant: Instant
    file_id: str
    stats: tuple[WriteStat, ...]


def plan_changes(state: TableState, start: str | None, end: str | None) -> list[ChangeTask]:
    """Return the tasks of the window after ``start`` up to ``end``, in order of effect.

    Of one instant the removed groups come first, so that applying the changes in order leads
    from the rows at ``start`` to those at ``end``. ``HistoryGone`` names an instant whose files
    were cleaned away.
    """
    touches = _touches(state, window(state, start, end))
    visible = see_at(state, None)
    tasks: list[ChangeTask] = []
    for partition in sorted(touches):
        prefix = len(partition) + 1 if partition else 0
        found = [(f.path[prefix:], f.size) for f in state.storage.list(partition)]
        listing = Listing(partition, [n for n, _ in found], [s for _, s in found])
        tasks.extend(_planned(state, listing, visible, touches[partition]))

    def takes(listing: Listing) -> Iterator[str]:
        planned = _planned(state, listing, visible, touches[listing.partition])
        return (path for task in planned for path in task.paths)

    if touches:
        # A slice of which some files are gone looks like one that never had them.
        check_standing(Reading(state, visible, takes, touches.__contains__))
    return sorted(tasks, key=_order)


def _planned(
    state: TableState, listing: Listing, visible: Visibility, touches: Sequence[_Touch]
) -> Iterator[ChangeTask]:
    partition = listing.partition
    groups = {group.id.file_id: group for group in file_groups(listing, visible)}
    sizes = dict(zip(listing.names, listing.sizes, strict=True))
    for touch in touches:
        group = groups.get(touch.file_id)
        known = FileGroup(FileGroupId(partition, touch.file_id), ()) if group is None else group
        yield _Planner(state, known, sizes).task(touch)


def _order(task: ChangeTask) -> tuple[str, str, bool, FileGroupId]:
    instant = task.instant
    removed = task.kind is ChangeKind.REMOVED
    return (instant.completed or "", instant.requested, not removed, task.group)


def _touches(state: TableState, instants: Sequence[Instant]) -> Mapping[str, list[_Touch]]:
    touches: dict[str, list[_Touch]] = {}
    for instant, body in state.timeline.commits(instants):
        if body.compacted or body.operation in _MAINTENANCE or RESCALED in body.extra:
            continue
        for partition, touch in _of_commit(instant, body):
            touches.setdefault(partition, []).append(touch)
    return touches


def _of_commit(instant: Instant, body: CommitMetadata) -> Iterator[tuple[str, _Touch]]:
    for partition, file_ids in body.replaced.items():
        for file_id in file_ids:
            yield partition, _Touch(instant, file_id, ())
    for partition, stats in body.write_stats.items():
        by_group: dict[str, list[WriteStat]] = {}
        for stat in stats:
            by_group.setdefault(stat.file_id, []).append(stat)
        for file_id, some in by_group.items():
            if any(stat.path for stat in some):
                yield partition, _Touch(instant, file_id, tuple(some))


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans the changes of one file group."""

    state: TableState
    group: FileGroup
    sizes: Mapping[str, int]

    def task(self, touch: _Touch) -> ChangeTask:
        """Decide how the changes of one instant are found."""
        task = ChangeTask(ChangeKind.REMOVED, touch.instant, self.group.id)
        if not touch.stats:
            return replace(task, before=self._before(touch.instant, required=True))
        names = [(s.path or "").rpartition("/")[2] for s in touch.stats]
        if any(name.startswith(".") for name in names):
            found = self._slice_at(touch.instant, names)
            return replace(task, kind=ChangeKind.LOGGED, before=found, after=found)
        after = self._written(touch.instant, names)
        files = self._change_files(touch)
        before = self._before(touch.instant, required=False)
        if files:
            return replace(task, kind=ChangeKind.RECORDED, before=before, after=after, files=files)
        if before is not None:
            return replace(task, kind=ChangeKind.REWRITTEN, before=before, after=after)
        if all(_only_inserts(stat) for stat in touch.stats):
            return replace(task, kind=ChangeKind.INSERTED, after=after)
        raise self._gone(touch.instant)

    def _written(self, instant: Instant, names: Sequence[str]) -> FileSlice:
        """Return the slice of the base file that an instant wrote, without later logs."""
        partition = self.group.id.partition
        for name in names:
            base = base_file(partition, name, self.sizes.get(name, -1))
            if base is not None and name in self.sizes:
                return FileSlice(self.group.id, base.instant, base)
        raise self._gone(instant)

    def _slice_at(self, instant: Instant, names: Sequence[str]) -> FileSlice:
        """Return the slice that holds the logs of an instant, with all logs up to it."""
        for place, piece in enumerate(self.group.slices):
            if self._holds(piece, instant, names):
                return _based(self.group.slices[place:])
        raise self._gone(instant)

    def _holds(self, piece: FileSlice, instant: Instant, names: Sequence[str]) -> bool:
        if self.state.config.layout != 1:
            # The logs of a table that was upgraded have the names of layout 1.
            return any(log.instant == instant.requested or log.name in names for log in piece.logs)
        # Here a log's name tells its slice, and the slice's instant is not after the log's.
        return bool(piece.logs) and piece.base_instant <= instant.requested

    def _before(self, instant: Instant, *, required: bool) -> FileSlice | None:
        """Return the newest slice from before an instant, with its logs."""
        for place, piece in enumerate(self.group.slices):
            if piece.base_instant < instant.requested:
                return _based(self.group.slices[place:])
        if required:
            raise self._gone(instant)
        return None

    def _change_files(self, touch: _Touch) -> tuple[LogFile, ...]:
        files = []
        for path, size in (item for stat in touch.stats for item in stat.cdc_stats.items()):
            partition, _, name = path.rpartition("/")
            file = log_file(partition, name, size)
            if file is None:
                continue
            if name not in self.sizes:
                raise self._gone(touch.instant)
            files.append(file)
        return tuple(files)

    def _gone(self, instant: Instant) -> HistoryGone:
        return HistoryGone(
            f"the changes of {instant.requested} in {self.group.id} cannot be told any more: "
            "the files they are found in were cleaned away.",
            next_step="Start after that instant, or retain more commits when cleaning.",
            instant=instant.requested,
            group=str(self.group.id),
        )


def _only_inserts(stat: WriteStat) -> bool:
    if stat.prev_commit in (None, "", "null"):
        return True
    return (
        not stat.num_update_writes
        and not stat.num_deletes
        and (stat.num_writes == stat.num_inserts)
    )


def _based(slices: Sequence[FileSlice]) -> FileSlice:
    """Return the first slice, on top of those before it while it has no base of its own.

    A compaction that is planned and not finished opens such a slice.
    """
    first = slices[0]
    logs: tuple[LogFile, ...] = ()
    for piece in slices:
        logs = (*piece.logs, *logs)
        if piece.base is not None:
            return FileSlice(first.group, piece.base_instant, piece.base, logs)
    return FileSlice(first.group, slices[-1].base_instant, None, logs)
