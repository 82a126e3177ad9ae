"""What a table service works with, for a table in a storage."""

from lakewright.actions.services.servicing import Servicing
from lakewright.actions.write.progress import Silence
from lakewright.engine.local.executor import LocalExecutor
from lakewright.storage.port import Storage
from lakewright.table.state import open_state
from lakewright.timeline.storage_committer import StorageCommitter
from lakewright.timeline.storage_upkeep import StorageUpkeep


def servicing(storage: Storage, **options: str) -> Servicing:
    """Return it; option names have ``__`` for dots."""
    state = open_state(storage)
    given = {key.replace("__", "."): value for key, value in options.items()}
    settings = {**state.storage.options, **state.config.properties, **given}
    return Servicing(
        "t",
        state,
        LocalExecutor(settings),
        StorageCommitter(storage, state.config, settings),
        StorageUpkeep(storage, state.config, settings),
        settings,
        Silence(),
    )
