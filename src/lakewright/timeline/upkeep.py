"""The upkeep port: plans of table services, and the records of services that write no rows.

A plan is put on the timeline under the table's lock and stays there until it is carried out, by
this process, another one, or Hudi. Compactions and clusterings are carried out as writes (see
``Committer.take``); a cleaning, a savepoint or a restore is begun and completed here.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from lakewright.format.hudi.metadata.restore import RestorePlan
from lakewright.model.instant import Action, Instant
from lakewright.timeline.view import TimelineView

#: Looks at the timeline under the lock and returns what is to be restored.
MakeRestore: TypeAlias = Callable[[TimelineView], RestorePlan]
#: Looks at the timeline under the lock; raises where an instant cannot be taken back.
CheckUndo: TypeAlias = Callable[[TimelineView, Instant], None]
#: Looks at the timeline and returns the completed instants that may leave it, oldest first.
ChooseArchived: TypeAlias = Callable[[TimelineView], Sequence[Instant]]
#: Makes the body of a plan from the timeline and the instant that the plan will have; None
#: where there is nothing to do.
MakePlan: TypeAlias = Callable[[TimelineView, str], bytes | None]


class Upkeep(Protocol):
    """Plans and records of table services, for one table."""

    def schedule(
        self, action: Action, make: MakePlan, *, instant: str | None = None
    ) -> Instant | None:
        """Put a plan on the timeline and return its instant; None where there is nothing to do.

        ``make`` is called under the lock, after dead writes were rolled back: no write takes
        effect between its look at the timeline and the plan's being there. Expensive looking is
        done before, and brought up to date by it. ``Conflict`` where the plan names a file group
        that another unfinished plan names. ``instant`` is a time that the caller wants.
        """
        ...

    def start(self, instant: Instant) -> None:
        """Say that the work on an instant has begun; more than one may work on it, one at least.

        The inflight file is there afterwards, whoever wrote it.
        """
        ...

    def complete(
        self, instant: Instant, body: bytes, check: Callable[[TimelineView], None] | None = None
    ) -> Instant:
        """Complete an instant that is no write, and return it; one that is complete stays so.

        ``check`` looks at the timeline first, under the lock, and raises where it must not be.
        """
        ...

    def repair(self) -> None:
        """Finish cut-off rollbacks and restores, and take back dead writes, as a writer does."""
        ...

    def roll_back(self, requested: str, check: CheckUndo) -> Instant:
        """Take back a write that took effect, or a plan; return the completed rollback.

        Nothing takes effect between ``check`` and the end of the rollback. A write under way is
        its writer's alone: ``Conflict``.
        """
        ...

    def restore(self, make: MakeRestore) -> Instant:
        """Take back several, as ``make`` says, and return the completed restore."""
        ...

    def archive(self, choose: ChooseArchived) -> tuple[Instant, ...]:
        """Move completed instants into the archived history, and return them, oldest first.

        ``choose`` is asked more than once, under the lock each time before anything goes: what
        it does not choose then stays. An archiving that was cut off is finished by the next.
        """
        ...

    def make_savepoint(
        self, requested: str, body: bytes, check: Callable[[TimelineView], None]
    ) -> Instant:
        """Put a savepoint of a write on the timeline, and return it; one that is there stays.

        ``check`` looks at the timeline first, under the lock. One that was cut off before it was
        complete is cleared away like a dead write.
        """
        ...

    def drop_savepoint(self, requested: str) -> None:
        """Remove a savepoint; ``InstantNotFound`` where there is none."""
        ...
