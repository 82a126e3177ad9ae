"""The verbs that look after a table; ``Table`` has them."""

import getpass
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakewright.actions.services.restoring import RestorePreview, plan_restore, restore
from lakewright.actions.services.rolling_back import rollback
from lakewright.actions.services.savepoints import delete_savepoint, savepoint
from lakewright.actions.services.servicing import Servicing
from lakewright.api.engines import service_engine
from lakewright.api.progress import watch
from lakewright.model.instant import Instant
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.storage_upkeep import StorageUpkeep

if TYPE_CHECKING:
    from lakewright.engine.spark.names import SparkSession

Options = Mapping[str, str]


class Serviceable:
    """Keeping a table fast, small and recoverable.

    ``options`` are settings for one call, over the table's own.
    """

    _storage: Storage
    _spark: "SparkSession | None"
    _name: str

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

    # ------------------------------------------------------------------- support

    @contextmanager
    def _servicing(self, options: Options | None) -> Iterator[Servicing]:
        state = open_state(self._storage)
        settings = {**state.storage.options, **state.config.properties, **(options or {})}
        progress = watch(self._name, settings)
        try:
            yield Servicing(
                self._name,
                state,
                service_engine(settings, self._spark),
                StorageCommitter(state.storage, state.config, settings),
                StorageUpkeep(state.storage, state.config, settings),
                settings,
                progress,
            )
        finally:
            progress.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
