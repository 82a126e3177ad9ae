"""The verbs that look after a table; ``Table`` has them."""

import getpass
from collections.abc import Iterator
from contextlib import AbstractContextManager

from lakewright.actions.services.inline import with_grace
from lakewright.actions.services.restoring import RestorePreview, plan_restore, restore
from lakewright.actions.services.rolling_back import RollbackPreview, plan_rollback, rollback
from lakewright.actions.services.runner import Charge, look_after
from lakewright.actions.services.savepoints import delete_savepoint, savepoint
from lakewright.actions.services.servicing import Servicing
from lakewright.actions.services.views import (
    Cleaning,
    PlannedService,
    Rollback,
    Savepoint,
    cleanings,
    planned_services,
    rollbacks,
    savepoints,
)
from lakewright.api.maintaining import Maintainable, Options
from lakewright.model.instant import Instant
from lakewright.model.services import Service, ServiceRun
from lakewright.table.state import open_state
from lakewright.timeline.view import TimelineView


class Serviceable(Maintainable):
    """Keeping a table recoverable, and looking at what was done for it.

    ``options`` are settings for one call, over the table's own.
    """

    def look_after(self, *, options: Options | None = None) -> tuple[ServiceRun, ...]:
        """Do once what a services runner does: what waits, then what is due.

        ``lakewright.services`` says which services. Nothing is raised: the answer tells what was
        done, and what not and why.
        """
        return tuple(look_after(self.charge(options)))

    def charge(self, options: Options | None = None) -> Charge:
        """Return the table as a services runner takes it; nothing is looked at yet."""

        def opened() -> AbstractContextManager[Servicing]:
            own = open_state(self._storage).config.properties
            return self._servicing(with_grace({**own, **(options or {})}))

        return Charge(self._name, opened)

    def savepoints(self) -> Iterator[Savepoint]:
        """Stream the savepoints, newest first."""
        return savepoints(self._timeline())

    def compactions(self) -> Iterator[PlannedService]:
        """Stream the compactions of the active timeline, newest first, from their plans on."""
        return planned_services(self._timeline(), Service.COMPACTION)

    def log_compactions(self) -> Iterator[PlannedService]:
        """Stream the log compactions of the active timeline, newest first."""
        return planned_services(self._timeline(), Service.LOG_COMPACTION)

    def clusterings(self) -> Iterator[PlannedService]:
        """Stream the clusterings of the active timeline, newest first, from their plans on."""
        return planned_services(self._timeline(), Service.CLUSTERING)

    def cleanings(self, *, archived: bool = False) -> Iterator[Cleaning]:
        """Stream the cleanings, newest first; ``archived`` goes on into the history."""
        return cleanings(self._timeline(archived=archived))

    def rollbacks(self, *, archived: bool = False) -> Iterator[Rollback]:
        """Stream the completed rollbacks, newest first; ``archived`` goes on into the history."""
        return rollbacks(self._timeline(archived=archived))

    def plan_rollback(self, instant: str, *, options: Options | None = None) -> RollbackPreview:
        """Say what ``rollback`` would take back; nothing is written."""
        with self._servicing(options) as work:
            return plan_rollback(work, instant)

    def rollback(self, instant: str, *, options: Options | None = None) -> Instant:
        """Take back the newest write, or a plan, for good; return the rollback.

        ``Conflict`` where later writes took effect, ``HistoryGone`` where the files that the
        write took the place of were cleaned away.
        """
        with self._servicing(options) as work:
            return rollback(work, instant)

    def savepoint(
        self,
        instant: str | None = None,
        note: str = "",
        *,
        by: str | None = None,
        options: Options | None = None,
    ) -> Instant:
        """Keep the files of a write, the newest by default, whatever is cleaned from now on."""
        with self._servicing(options) as work:
            return savepoint(work, instant, note, _user() if by is None else by)

    def delete_savepoint(self, instant: str, *, options: Options | None = None) -> None:
        """Give the files of a savepoint free again."""
        with self._servicing(options) as work:
            delete_savepoint(work, instant)

    def plan_restore(self, instant: str, *, options: Options | None = None) -> RestorePreview:
        """Say what ``restore`` would undo; nothing is written."""
        with self._servicing(options) as work:
            return plan_restore(work, instant)

    def restore(self, instant: str, *, options: Options | None = None) -> Instant | None:
        """Go back to a savepoint, or to any write whose files are all there; return the restore.

        Everything that took effect after it is undone for good: look at ``plan_restore`` first.
        None where it is the newest write already.
        """
        with self._servicing(options) as work:
            return restore(work, instant)

    def _timeline(self, *, archived: bool = False) -> TimelineView:
        view = open_state(self._storage).timeline
        return view.with_history() if archived else view


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
