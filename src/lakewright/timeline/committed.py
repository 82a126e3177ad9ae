"""Which instants are committed: the one answer for all who look at files and log blocks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Committed:
    """What a picture of a timeline says about the instants that wrote data.

    ``completions`` maps the requested times of completed writes to their completion times and
    ``pending`` are the writes under way. What was requested before ``start`` and is neither
    counts as archived: see ``TimelineView.committed_before``. ``newest`` is the greatest
    requested time of a completed write. A small value that travels to workers.
    """

    completions: Mapping[str, str]
    start: str | None
    pending: frozenset[str]
    newest: str

    @staticmethod
    def of(
        completions: Mapping[str, str], start: str | None, pending: frozenset[str]
    ) -> "Committed":
        """Take down what a timeline says."""
        return Committed(completions, start, pending, max(completions, default=""))

    def holds(self, requested: str, is_archived: Callable[[str], bool]) -> bool:
        """Whether what this instant wrote is part of the table.

        ``is_archived`` looks into the history. It is asked about times within the timeline that
        it does not know: such a write was rolled back, or archived while the timeline was
        listed. With no ``start`` it is asked about all that the timeline does not know.
        """
        if requested in self.completions:
            return True
        if requested in self.pending:
            return False
        if self.start is not None:
            if requested < self.start:
                return True
            if requested > self.newest:
                return False
        return is_archived(requested)
