"""Which files a reading needs: the slices of every partition, at a time or between two."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeAlias

from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.model.expression.bound import BoundExpression
from lakewright.model.expression.filters import Filters, bind_filters
from lakewright.model.files import (
    FileGroup,
    FileGroupId,
    FileSlice,
    PartitionDescriptor,
    PartitionIncrementalSnapshot,
    PartitionSnapshot,
)
from lakewright.model.instant import (
    BEGINNING,
    Instant,
    effective_time,
    parse_point_in_time,
    requested_time,
)
from lakewright.model.lazy import lazy
from lakewright.storage.port import Folder
from lakewright.table.footers import FOOTERS, FooterPruner, ask
from lakewright.table.horizon import see_at, see_until, window
from lakewright.table.partitions import Tree, list_partitions, walk_partitions
from lakewright.table.pruning import Pruner, Tally, compile_filters, partition_ranges
from lakewright.table.slicing import Listing, file_groups, latest_bases, latest_slices
from lakewright.table.standing import Reading, check_standing
from lakewright.table.state import TableState, table_schema
from lakewright.table.visibility import Visibility
from lakewright.timeline.moments import whole_second

#: Operations that rewrite rows of a group without changing them: whoever reads changes finds
#: those rows through the write that made them. Not so log compaction: Hudi writes its own commit
#: time into the rows that it merges, and shows them in its window.
_COMPACTING = frozenset({"COMPACT"})

#: What names a point in time: an instant, its text, or a time.
Point: TypeAlias = Instant | str | datetime | date


@dataclass(frozen=True)
class FileIndex:
    """Lists the file slices of a table, pruned, one partition after the other.

    Every answer is a stream: the work is done as it is consumed, and memory holds a few
    partitions. A ``Tally`` that is passed in counts what was seen and what was left out. A stream
    ends with a look at the timeline as it is by then: ``SnapshotGone`` where files that belong to
    the answer were taken away since ``state`` was, so that who has seen the end has seen all.
    ``footers`` bounds how many footers one listing reads to leave out files; None is the
    option ``lakewright.read.footers``.
    """

    state: TableState
    pruner: Pruner | None = None
    footers: int | None = None

    def partitions(self, filters: Filters = ()) -> Iterator[PartitionDescriptor]:
        """Stream the partitions that hold visible files now and may match the filters."""
        filters = bind_filters(filters, self._tree.schema)
        visible = see_at(self.state, None)
        for descriptor, folder in walk_partitions(self._tree, filters, Tally()):
            if latest_slices(_listing(folder), visible) or not self.state.config.partition_fields:
                yield descriptor
        self._check_standing(visible, latest_slices, filters)

    def list_files_at(
        self,
        instant: Point | None = None,
        filters: Filters = (),
        *,
        read_optimized: bool = False,
        tally: Tally | None = None,
    ) -> Iterator[PartitionSnapshot]:
        """Stream the latest slices at ``instant`` (None: now) that may match all filters.

        Partitions without a slice left are passed over, save the one partition of an
        unpartitioned table. ``read_optimized`` lists base files alone. A time that was
        cleaned away raises ``HistoryGone`` before anything is listed.
        """
        filters = bind_filters(filters, self._tree.schema)
        as_of = self._moment(instant, requested_time)
        visible = see_at(self.state, as_of)
        choose = latest_bases if read_optimized else latest_slices
        latest = self._latest_at(as_of)
        count = Tally() if tally is None else tally
        prune = self._pruning(filters, count)

        def stream() -> Iterator[PartitionSnapshot]:
            for descriptor, folder in walk_partitions(self._tree, filters, count):
                slices = prune(descriptor, choose(_listing(folder), visible))
                if slices or not self.state.config.partition_fields:
                    yield PartitionSnapshot(descriptor, latest, tuple(slices))
            self._check_standing(visible, choose, filters)

        return stream()

    def list_files_between(
        self,
        start: Point | None,
        end: Point | None,
        filters: Filters = (),
        *,
        tally: Tally | None = None,
    ) -> Iterator[PartitionIncrementalSnapshot]:
        """Stream, per partition written after ``start`` up to ``end``, its slices at ``end``.

        Only the groups that the window wrote are listed, and only the partitions they lie in
        are visited. Groups that were merely compacted are left out. The slices may hold older
        rows too: the commit time of a row tells whether it belongs to the window.
        """
        filters = bind_filters(filters, self._tree.schema)
        after, upto = self._moment(start, effective_time), self._moment(end, effective_time)
        visible = see_until(self.state, upto)
        touched = self._touched(window(self.state, after, upto))
        everything = after is None or after == BEGINNING
        count = Tally() if tally is None else tally
        prune = self._pruning(filters, count)

        def choose(listing: Listing, visible: Visibility) -> Sequence[FileSlice]:
            slices = latest_slices(listing, visible)
            if everything:
                return slices
            written = touched.get(listing.partition, _UNTOUCHED)
            return [piece for piece in slices if piece.group.file_id in written.file_ids]

        def stream() -> Iterator[PartitionIncrementalSnapshot]:
            for descriptor, folder in self._visited(touched, everything, filters, count):
                kept = prune(descriptor, choose(_listing(folder), visible))
                if kept:
                    written = touched.get(descriptor.path, _UNTOUCHED)
                    yield PartitionIncrementalSnapshot(
                        descriptor, tuple(written.instants), tuple(kept)
                    )
            self._check_standing(visible, choose, filters)

        return stream()

    def file_groups(self, filters: Filters = ()) -> Iterator[FileGroup]:
        """Stream the file groups of the table, each with all its committed slices, newest first.

        Groups that a later write replaced are among them until they are cleaned away, and so are
        older slices.
        """
        filters = bind_filters(filters, self._tree.schema)
        visible = see_at(self.state, None)
        for _, folder in walk_partitions(self._tree, filters, Tally()):
            yield from file_groups(_listing(folder), visible)
        self._check_standing(visible, latest_slices, filters)

    def timeline_of(self, group: FileGroup | FileGroupId) -> tuple[Instant, ...]:
        """Return the completed writes of the active timeline that wrote or replaced a group."""
        wanted = group.id if isinstance(group, FileGroup) else group

        def affects(body: CommitMetadata) -> bool:
            written = body.write_stats.get(wanted.partition, ())
            replaced = body.replaced.get(wanted.partition, ())
            return wanted.file_id in replaced or any(s.file_id == wanted.file_id for s in written)

        bodies = self.state.timeline.commits(self.state.timeline.data())
        return tuple(instant for instant, body in bodies if affects(body))

    # ------------------------------------------------------------------- support

    @lazy
    def _tree(self) -> Tree:
        return Tree(self.state.storage, self.state.config, table_schema(self.state))

    def _moment(
        self, point: "Point | None", counted: Callable[[Instant], str | None]
    ) -> str | None:
        """Return the instant time of what a caller names; ``Invalid`` where it is none."""
        if point is None or isinstance(point, Instant):
            return None if point is None else counted(point)
        return parse_point_in_time(point, self.state.config.timezone)

    def _check_standing(
        self, visible: Visibility, choose: "_Choose", filters: Sequence[BoundExpression]
    ) -> None:
        """Make sure that nothing which belongs to the answer went before it was listed."""
        may_match = compile_filters(filters)

        def takes(listing: Listing) -> Iterator[str]:
            return (path for piece in choose(listing, visible) for path in piece.paths)

        def enters(partition: str) -> bool:
            values = self._tree.describe(partition).values
            return not filters or may_match(partition_ranges(values))

        check_standing(Reading(self.state, visible, takes, enters))

    def _latest_at(self, as_of: str | None) -> Instant | None:
        if as_of is None:
            return self.state.timeline.latest_data()
        bound = whole_second(as_of)
        seen = (i for i in reversed(self.state.timeline.data()) if i.requested <= bound)
        return next(seen, None)

    def _visited(
        self,
        touched: "Mapping[str, _Touched]",
        everything: bool,
        filters: Sequence[BoundExpression],
        tally: Tally,
    ) -> Iterator[tuple[PartitionDescriptor, Folder]]:
        if everything:
            return walk_partitions(self._tree, filters, tally)
        return list_partitions(self._tree, sorted(touched), filters, tally)

    def _touched(self, instants: Sequence[Instant]) -> "dict[str, _Touched]":
        touched: dict[str, _Touched] = {}
        for instant, body in self.state.timeline.commits(instants):
            if body.operation in _COMPACTING:
                continue
            for partition, stats in body.write_stats.items():
                entry = touched.setdefault(partition, _Touched([], set()))
                entry.instants.append(instant)
                entry.file_ids.update(stat.file_id for stat in stats)
        return touched

    def _pruning(self, filters: Sequence[BoundExpression], tally: Tally) -> "_Prune":
        """Return the function that prunes the slices of one partition after another."""
        judge = self._footer_pruner(filters) if filters else None

        def prune(
            descriptor: PartitionDescriptor, slices: Sequence[FileSlice]
        ) -> Sequence[FileSlice]:
            tally.found(len(slices))
            if filters and slices and self.pruner is not None:
                kept = self.pruner.keep(descriptor, slices, filters)
                tally.indexed(slices, kept)
                slices = kept
            if judge is not None:
                slices = judge.keep(descriptor, slices, tally)
            tally.kept(slices)
            return slices

        return prune

    def _footer_pruner(self, filters: Sequence[BoundExpression]) -> FooterPruner | None:
        state = self.state
        budget = FOOTERS.read(state.storage.options) if self.footers is None else self.footers
        question = ask(state.storage, state.config, self._tree.schema, filters) if budget else None
        return None if question is None else FooterPruner(question, budget)


_Choose = Callable[[Listing, Visibility], Sequence[FileSlice]]
_Prune = Callable[[PartitionDescriptor, Sequence[FileSlice]], Sequence[FileSlice]]


@dataclass(frozen=True, slots=True)
class _Touched:
    instants: list[Instant]
    file_ids: set[str]


_UNTOUCHED = _Touched([], set())


def _listing(folder: Folder) -> Listing:
    return Listing(folder.path, folder.names, folder.sizes)
