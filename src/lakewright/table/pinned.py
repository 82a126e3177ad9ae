"""A table at one moment, for writers: every task builds on the same slices, wherever it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lakewright.format.hudi.file_names import log_file
from lakewright.format.hudi.metadata.replace_plan import ReplacePlan
from lakewright.format.hudi.partition_metadata import PARTITION_METADATA_NAMES
from lakewright.model.files import FileSlice
from lakewright.model.instant import Action
from lakewright.model.lazy import lazy
from lakewright.table.horizon import see_at
from lakewright.table.reader.names import NameHistory, name_history
from lakewright.table.slicing import Listing, latest_slices
from lakewright.table.state import TableState
from lakewright.table.visibility import Visibility

#: Writes list the same partitions again and again, and most of what they find is old.
_read_log = lru_cache(maxsize=1 << 14)(log_file)


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """The latest slice of each live group of a partition, and whether Java would find it.

    Base files have their sizes; logs may have none.
    """

    partition: str
    slices: Sequence[FileSlice]
    has_metadata: bool


@dataclass(frozen=True)
class PinnedTable:
    """The table as it was when a write began; files that appear later are not seen."""

    state: TableState

    @lazy
    def visible(self) -> Visibility:
        """What of the history counts."""
        return see_at(self.state, None)

    @lazy
    def names(self) -> NameHistory:
        """What older files call the columns of the table."""
        return name_history(self.state)

    @lazy
    def described(self) -> set[str]:
        """Partitions whose metadata file was seen to since the table was pinned, here."""
        return set()

    @lazy
    def overlapped(self) -> dict[str, bool]:
        """Of actions that made base files, whether writes began before they ended, as found."""
        return {}

    @lazy
    def clustering(self) -> Mapping[str, frozenset[str]]:
        """By partition, the file ids that an unfinished clustering is about to replace."""
        found: dict[str, frozenset[str]] = {}
        for instant in self.state.timeline.pending():
            if instant.action not in (Action.CLUSTERING, Action.REPLACECOMMIT):
                continue
            plan = self.state.timeline.plan(instant)
            if not isinstance(plan, ReplacePlan) or plan.clustering is None:
                continue
            for group in plan.clustering.groups:
                for piece in group.slices:
                    held = found.get(piece.partition, frozenset())
                    found[piece.partition] = held | {piece.file_id}
        return found

    def slices(self, partition: str) -> Sequence[FileSlice]:
        """List a partition and return the latest slice of each of its live groups.

        The answer is not remembered: a task asks once per partition that it meets.
        """
        return self.files(partition).slices

    def files(self, partition: str) -> PartitionFiles:
        """List a partition: its slices, and whether it has Hudi's metadata file."""
        prefix = len(partition) + 1 if partition else 0
        names, sizes = [], []
        # Many small commits leave many logs, and nobody here asks how large they are.
        for file in self.state.storage.list(partition, stats=False):
            names.append(file.path[prefix:])
            sizes.append(file.size)
        listing = Listing(partition, names, sizes, _read_log)
        slices = [self._sized(piece) for piece in latest_slices(listing, self.visible)]
        known = not PARTITION_METADATA_NAMES.isdisjoint(names)
        return PartitionFiles(partition, slices, known)

    def _sized(self, piece: FileSlice) -> FileSlice:
        """Ask for the size of a base file where the listing did not tell."""
        if piece.base is None or piece.base.size >= 0:
            return piece
        found = self.state.storage.stat(piece.base.path)
        return piece if found is None else replace(piece, base=replace(piece.base, size=found.size))

    def __reduce__(self) -> tuple[object, ...]:
        # What was worked out here is worked out again there: it holds functions.
        return (PinnedTable, (self.state,))
