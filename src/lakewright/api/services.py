"""The verbs that look after a table; ``Table`` has them."""

import getpass
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from lakewright.actions.services.inline import with_grace
from lakewright.actions.services.restoring import RestorePreview, plan_restore, restore
from lakewright.actions.services.rolling_back import RollbackPreview, plan_rollback, rollback
from lakewright.actions.services.runner import Charge, look_after
from lakewright.actions.services.savepoints import (
    SavepointPreview,
    delete_savepoint,
    plan_delete_savepoint,
    plan_savepoint,
    savepoint,
)
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
from lakewright.api.arguments import text_of
from lakewright.api.maintaining import Maintainable, Options
from lakewright.lifecycle.tending import ALL_DUTIES
from lakewright.model.instant import Instant
from lakewright.model.services import Service, ServiceRun
from lakewright.table.state import open_state
from lakewright.timeline.view import TimelineView

#: An instant as the timeline and the views give it, or its text.
InstantLike: TypeAlias = Instant | str


class Serviceable(Maintainable):
    """Keeping a table recoverable, and looking at what was done for it.

    ``options`` are settings for one call, over the table's own.
    """

    def look_after(
        self, *, dry_run: bool = False, options: Options | None = None
    ) -> tuple[ServiceRun, ...]:
        """Do once what a services runner does: what waits, then what is due.

        ``lakewright.services`` says which services. Nothing is raised: the answer tells what was
        done, and what not and why; with ``dry_run``, what would be done, each by itself.
        """
        return tuple(look_after(self.charge(options), ALL_DUTIES, dry_run=dry_run))

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

    def plan_rollback(
        self, instant: InstantLike, *, options: Options | None = None
    ) -> RollbackPreview:
        """Say what ``rollback`` would take back; nothing is written."""
        with self._servicing(options) as work:
            return plan_rollback(work, _text(instant))

    def rollback(self, instant: InstantLike, *, options: Options | None = None) -> Instant:
        """Take back the newest write, or a plan, for good; return the rollback.

        ``Conflict`` where later writes took effect, ``HistoryGone`` where the files that the
        write took the place of were cleaned away.
        """
        with self._servicing(options) as work:
            return rollback(work, _text(instant))

    def plan_savepoint(
        self,
        instant: InstantLike | None = None,
        note: str = "",
        *,
        by: str | None = None,
        options: Options | None = None,
    ) -> SavepointPreview:
        """Say what ``savepoint`` would keep; nothing is written."""
        with self._servicing(options) as work:
            chosen = None if instant is None else _text(instant)
            return plan_savepoint(work, chosen, text_of("note", note), _user(by))

    def savepoint(
        self,
        instant: InstantLike | None = None,
        note: str = "",
        *,
        by: str | None = None,
        options: Options | None = None,
    ) -> Instant:
        """Keep the files of a write, the newest by default, whatever is cleaned from now on."""
        with self._servicing(options) as work:
            chosen = None if instant is None else _text(instant)
            return savepoint(work, chosen, text_of("note", note), _user(by))

    def plan_delete_savepoint(
        self, instant: InstantLike, *, options: Options | None = None
    ) -> SavepointPreview:
        """Say what ``delete_savepoint`` would give free; nothing is written."""
        with self._servicing(options) as work:
            return plan_delete_savepoint(work, _text(instant))

    def delete_savepoint(self, instant: InstantLike, *, options: Options | None = None) -> None:
        """Give the files of a savepoint free again."""
        with self._servicing(options) as work:
            delete_savepoint(work, _text(instant))

    def plan_restore(
        self, instant: InstantLike, *, options: Options | None = None
    ) -> RestorePreview:
        """Say what ``restore`` would undo; nothing is written."""
        with self._servicing(options) as work:
            return plan_restore(work, _text(instant))

    def restore(self, instant: InstantLike, *, options: Options | None = None) -> Instant | None:
        """Go back to a savepoint, or to any write whose files are all there; return the restore.

        Everything that took effect after it is undone for good: look at ``plan_restore`` first.
        None where it is the newest write already.
        """
        with self._servicing(options) as work:
            return restore(work, _text(instant))

    def _timeline(self, *, archived: bool = False) -> TimelineView:
        view = open_state(self._storage).timeline
        return view.with_history() if archived else view


def _text(instant: InstantLike) -> str:
    return instant.requested if isinstance(instant, Instant) else text_of("instant", instant)


def _user(by: str | None) -> str:
    return user_name() if by is None else text_of("by", by)


def user_name() -> str:
    """Return who runs this process; empty where nobody can say."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
