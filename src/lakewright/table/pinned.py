"""A table at one moment, for writers: every task builds on the same slices, wherever it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lakewright.model.files import FileSlice
from lakewright.table.horizon import see_at
from lakewright.table.slicing import Listing, latest_slices
from lakewright.table.state import TableState
from lakewright.table.visibility import Visibility


@dataclass(frozen=True)
class PinnedTable:
    """The table as it was when a write began; files that appear later are not seen."""

    state: TableState

    @cached_property
    def visible(self) -> Visibility:
        """What of the history counts."""
        return see_at(self.state, None)

    def slices(self, partition: str) -> Sequence[FileSlice]:
        """List a partition and return the latest slice of each of its live groups.

        The answer is not remembered: a task asks once per partition that it meets.
        """
        prefix = len(partition) + 1 if partition else 0
        files = [(f.path[prefix:], f.size) for f in self.state.storage.list(partition)]
        names, sizes = [name for name, _ in files], [size for _, size in files]
        return latest_slices(Listing(partition, names, sizes), self.visible)

    def __reduce__(self) -> tuple[object, ...]:
        # What was worked out here is worked out again there: it holds functions.
        return (PinnedTable, (self.state,))
