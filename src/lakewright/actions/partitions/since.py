"""What was written since file groups were replaced: the keys that must not come back by their rows.

A key that was written since wins over the old row, and one that was written since and is not live
any more was deleted by somebody: neither comes back. Files tell which keys those are, as long as
they are there: base files that were written since, and the blocks of logs, their deletes too. A
write that deleted rows and whose files were cleaned away leaves them untold.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewright.actions.buckets.rescale_slices import list_folders
from lakewright.format.hudi.metadata.commit import RESCALED, CommitMetadata, WriteStat
from lakewright.model.files import FileSlice
from lakewright.model.instant import Instant
from lakewright.table.horizon import see_at
from lakewright.table.slicing import Listing, file_groups
from lakewright.table.state import TableState
from lakewright.table.visibility import Visibility
from lakewright.timeline.view import TimelineView

#: Operations that move rows and delete none.
_MOVING = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE"})


@dataclass(frozen=True, slots=True)
class Since:
    """What was written to partitions since an instant took effect.

    ``slices`` hold the files that were written since, superseded and replaced ones too, by
    partition; of their logs the blocks of ``instants`` count. ``rescaled`` are the partitions
    whose number of buckets was another in between. ``untold`` counts the writes that deleted rows
    of the partitions and whose files are gone: which rows those were cannot be told any more.
    """

    slices: Mapping[str, tuple[FileSlice, ...]] = field(default_factory=dict)
    instants: frozenset[str] = frozenset()
    rescaled: frozenset[str] = frozenset()
    untold: int = 0


def written_after(
    state: TableState, instant: str, partitions: Sequence[str] | None, moving: Collection[str]
) -> Since:
    """Find what was written after an instant took effect, in partitions or, for None, everywhere.

    Commits that carry one of the entries ``moving`` rewrote rows and deleted none.
    """
    writes = _writes_after(state.timeline, instant)
    if not writes:
        return Since()
    named = None if partitions is None else frozenset(partitions)
    touched = _Touched(named, moving)
    for write, body in writes:
        touched.note(write, body)
    if not touched.instants:
        return Since()
    where = touched.partitions if named is None else touched.partitions & named
    visible = see_at(state, None)
    slices: dict[str, tuple[FileSlice, ...]] = {}
    there = _There()
    for path, listing in list_folders(state, sorted(where)):
        found = tuple(_written(listing, visible, touched.instants, there))
        if found:
            slices[path] = found
    untold = touched.untold(there)
    return Since(slices, frozenset(touched.instants), frozenset(touched.rescaled), untold)


def _writes_after(view: TimelineView, instant: str) -> list[tuple[Instant, CommitMetadata]]:
    """Return the writes that took effect after an instant did, with what they did."""
    effect = view.completion_of(instant) or instant
    whole = view.with_history() if view.is_archived(effect) else view
    later = [i for i in whole.data() if (i.completed or i.requested) > effect]
    return list(whole.commits(later))


class _Touched:
    """What commits did to partitions."""

    def __init__(self, named: frozenset[str] | None, moving: Collection[str]) -> None:
        self._named = named
        self._moving = moving
        self.instants: set[str] = set()
        self.partitions: set[str] = set()
        self.rescaled: set[str] = set()
        #: By instant: files of before without which its deletes are not known, groups it replaced.
        self._deleting: dict[str, tuple[list[WriteStat], list[tuple[str, str]]]] = {}

    def note(self, write: Instant, body: CommitMetadata) -> None:
        """Take account of one commit."""
        touched = {*body.write_stats, *body.replaced}
        mine = touched if self._named is None else touched & self._named
        if not mine:
            return
        self.instants.add(write.requested)
        self.partitions |= mine
        if RESCALED in body.extra:
            self.rescaled |= mine
        if _moves(body, self._moving):
            return
        stats = [s for path in mine for s in body.write_stats.get(path, ()) if s.num_deletes]
        gone = [(path, group) for path in mine for group in body.replaced.get(path, ())]
        if stats or gone:
            self._deleting[write.requested] = stats, gone

    def untold(self, there: "_There") -> int:
        """Count the writes whose deletes the files that are ``there`` do not tell."""
        return sum(
            any(not there.tells(stat) for stat in stats)
            or any(group not in there.groups for group in gone)
            for stats, gone in self._deleting.values()
        )


def _moves(body: CommitMetadata, moving: Collection[str]) -> bool:
    if body.compacted or body.operation in _MOVING or RESCALED in body.extra:
        return True
    return any(entry in body.extra for entry in moving)


@dataclass(frozen=True, slots=True)
class _There:
    """The files that are still there: groups, base files by group and instant, paths of logs."""

    groups: set[tuple[str, str]] = field(default_factory=set)
    bases: set[tuple[str, str, str]] = field(default_factory=set)
    logs: set[str] = field(default_factory=set)

    def note(self, piece: FileSlice) -> None:
        """Take account of a slice."""
        partition, group = piece.group.partition, piece.group.file_id
        self.groups.add((partition, group))
        if piece.base is not None:
            self.bases.add((partition, group, piece.base.instant))
        self.logs.update(log.path for log in piece.logs)

    def tells(self, stat: WriteStat) -> bool:
        """Whether a file names the keys that a write deleted from a group."""
        if stat.path and ".log." in stat.path:
            return stat.path in self.logs
        before = (stat.partition_path or "", stat.file_id or "", stat.prev_commit or "")
        return before in self.bases


def _written(
    listing: Listing, visible: Visibility, instants: Collection[str], there: _There
) -> Iterator[FileSlice]:
    """Stream what the writes left in a partition; ``there`` is told of all that it holds."""
    for group in file_groups(listing, visible):
        for piece in group.slices:
            there.note(piece)
            base = piece.base if piece.base and piece.base.instant in instants else None
            # In layout 1 a log's name tells the slice alone, and its blocks tell the writes.
            logs = tuple(
                log for log in piece.logs if visible.layout == 1 or log.instant in instants
            )
            if base is not None or logs:
                yield replace(piece, base=base, logs=logs)
