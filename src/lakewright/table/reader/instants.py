"""Which instants a reading sees, as a small value that travels to workers."""

from dataclasses import dataclass, field, replace

from lakewright.timeline.bodies import Bodies
from lakewright.timeline.committed import Committed
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class SeenInstants:
    """The committed instants of a table at the moment of planning, and the bounds of a reading.

    Log files of layout 1 may hold blocks of several instants, among them failed and later ones;
    this says which of them count. ``as_of`` bounds requested times, ``upto`` completion times;
    ``hidden`` instants are passed over, and with ``among`` all but these. ``history`` is asked
    where the timeline alone cannot tell; it stays behind when the value travels, and the reader
    on the other side gives its own.
    """

    committed: Committed
    as_of: str | None = None
    upto: str | None = None
    hidden: frozenset[str] = frozenset()
    among: frozenset[str] | None = None
    history: Bodies | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        values = (self.committed, self.as_of, self.upto, self.hidden, self.among)
        return (SeenInstants, values)

    @staticmethod
    def of(
        timeline: TimelineView, *, as_of: str | None = None, upto: str | None = None
    ) -> "SeenInstants":
        """Take down what a timeline says now."""
        return SeenInstants(timeline.committed, as_of, upto, history=timeline.bodies)

    def only(self, instants: frozenset[str] | None) -> "SeenInstants":
        """See these instants and no others; None for no such bound."""
        return replace(self, among=instants)

    def shows(self, instant: str) -> bool:
        """Whether what this instant wrote is part of what is read."""
        if instant in self.hidden or (self.among is not None and instant not in self.among):
            return False
        if self.as_of is not None and instant > self.as_of:
            return False
        ended = self.committed.completions.get(instant, instant)
        if self.upto is not None and ended > self.upto:
            return False
        return self.committed.holds(instant, self._is_archived)

    def _is_archived(self, instant: str) -> bool:
        assert self.history is not None, "a reader gives a history to ask"
        return self.history.is_archived(instant)
