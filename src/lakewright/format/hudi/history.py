"""The archived timeline: the instants that have left the active one, oldest first."""

from collections.abc import Iterable, Iterator, Mapping

from lakewright.format.hudi.archived_instant import ArchivedInstant
from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.history_log import read_log
from lakewright.format.hudi.history_log_write import BLOCK_ENTRIES, append_log
from lakewright.format.hudi.history_lsm import COMPACTION_BATCH, append_lsm, read_lsm
from lakewright.storage.port import Storage

__all__ = ["ArchivedInstant", "append_history", "check_history_options", "read_history"]


def read_history(
    storage: Storage, config: TableConfig, after: str | None = None
) -> Iterator[ArchivedInstant]:
    """Stream the archived instants requested after ``after``, by requested time.

    Memory holds a few of them at a time. A table that was never archived has none.
    """
    read = read_log if config.layout == 1 else read_lsm
    return read(storage, config.history_folder, after)


def check_history_options(options: Mapping[str, str]) -> None:
    """Raise ``InvalidOption`` where an option of the archive is wrong, in either layout."""
    BLOCK_ENTRIES.read(options)
    COMPACTION_BATCH.read(options)


def append_history(
    storage: Storage,
    config: TableConfig,
    entries: Iterable[ArchivedInstant],
    options: Mapping[str, str] | None = None,
) -> None:
    """Add completed instants to the archive; the active files are the caller's to delete, after.

    ``options`` are the caller's over the table's properties, which count alone without them. One
    archiver at a time: ``Conflict`` where another one was quicker.
    """
    ordered = sorted(entries, key=lambda entry: entry.instant)
    if not ordered:
        return
    append = append_log if config.layout == 1 else append_lsm
    append(
        storage, config.history_folder, ordered, config.properties if options is None else options
    )
