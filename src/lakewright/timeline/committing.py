"""The commit port: how a write begins, takes effect or is given up.

A write has three answers: done (``publish`` returns), refused (``Conflict``: nothing of it is
visible, and the files it wrote are taken back by ``abandon``), unknown (``CommitStateUnknown``:
nothing is deleted, and whoever asks must read the timeline). Storage answers this port with
Hudi's own files; a metastore can answer it with one transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lakewright.format.hudi.metadata.commit import CommitMetadata
from lakewright.model.instant import Action, Instant, State
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class Ticket:
    """A write that has begun: its requested time, its action, and the history it started from.

    ``seen`` is the completion time (layout 1: the requested time) of the newest completed
    instant when the write began, None for an empty timeline. ``token`` is the writer's own mark
    on everything it leaves behind. A ``planned`` one carries out a plan that was on the timeline
    before, and counts everything that took effect since it was planned.
    """

    instant: str
    action: Action
    operation: str
    seen: str | None
    token: str
    planned: bool = False

    @property
    def plan(self) -> Instant:
        """The plan that is carried out, as it stands on the timeline."""
        return Instant(self.instant, self.action, State.REQUESTED)


Rivals: TypeAlias = Sequence[tuple[Instant, CommitMetadata]]
#: Looks at the writes that took effect since the ticket was taken, and at the timeline as it is
#: under the lock; raises ``Conflict``.
Guard: TypeAlias = Callable[[Rivals, TimelineView], None]


class Committer(Protocol):
    """Gives out instants and publishes writes, for one table."""

    def begin(
        self,
        action: Action,
        operation: str,
        *,
        instant: str | None = None,
        plan: bytes = b"",
        detached: bool = False,
    ) -> Ticket:
        """Start a write: its requested and inflight files are on storage, its heartbeat beats.

        Dead writes of others are rolled back first. ``instant`` is a time that the caller wants;
        ``Invalid`` where the timeline holds it already, or a later one. ``plan`` is the
        body of the requested file. A ``detached`` write outlives this process: others keep it
        alive with ``heartbeats.beat``, and any process may publish it.

        Look at the table after this, not before, or as ``view`` shows it: only writes that took
        effect since count as rivals when this one is published.
        """
        ...

    def take(self, plan: Instant, operation: str) -> Ticket:
        """Start to carry out a plan that is on the timeline: a compaction or a clustering.

        An attempt at it whose executor is gone is taken back first; ``Conflict`` while somebody
        is at work on it. ``publish`` completes it and ``abandon`` takes back what was made of
        it, and leaves the plan to whoever comes next.
        """
        ...

    def view(self, ticket: Ticket) -> TimelineView | None:
        """Return the timeline from which the write started; None where another began it."""
        ...

    def publish(
        self, ticket: Ticket, metadata: CommitMetadata, guard: Guard | None = None
    ) -> Instant:
        """Make the write take effect, once, and return its completed instant.

        Conflicts are looked for by file groups and schema, then by ``guard``, under the lock.
        Files that have a marker and are not in ``metadata`` are deleted first.
        """
        ...

    def abandon(self, ticket: Ticket) -> None:
        """Take back a write that failed: its files, markers, pending files and heartbeat.

        No trace of it is left on the timeline where its publication was never tried.
        It never hides the error that led to it: what cannot be taken back now is logged, and
        left to the next writer.
        """
        ...
