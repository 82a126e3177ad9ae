"""Which instants a reading sees, as a small value that travels to workers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class SeenInstants:
    """The committed instants of a table at the moment of planning, and the bounds of a reading.

    Log files of layout 1 may hold blocks of several instants, among them failed and later ones;
    this says which of them count. ``completions`` maps requested to completion times, ``start``
    is the first instant of the active timeline: what is older counts as committed. ``as_of``
    bounds requested times, ``upto`` completion times; ``hidden`` instants are passed over, and
    with ``among`` all but these.
    """

    completions: Mapping[str, str]
    start: str | None
    pending: frozenset[str]
    as_of: str | None = None
    upto: str | None = None
    hidden: frozenset[str] = frozenset()
    among: frozenset[str] | None = None

    @staticmethod
    def of(
        timeline: TimelineView, *, as_of: str | None = None, upto: str | None = None
    ) -> "SeenInstants":
        """Take down what a timeline says now."""
        return SeenInstants(
            dict(timeline.completions), timeline.start, timeline.pending_writes, as_of, upto
        )

    def only(self, instants: frozenset[str] | None) -> "SeenInstants":
        """See these instants and no others; None for no such bound."""
        return replace(self, among=instants)

    def shows(self, instant: str) -> bool:
        """Whether what this instant wrote is part of what is read."""
        if instant in self.hidden or not self._committed(instant):
            return False
        if self.among is not None and instant not in self.among:
            return False
        if self.as_of is not None and instant > self.as_of:
            return False
        return self.upto is None or self.completions.get(instant, instant) <= self.upto

    def _committed(self, instant: str) -> bool:
        if instant in self.completions:
            return True
        return self.start is not None and instant < self.start and instant not in self.pending
