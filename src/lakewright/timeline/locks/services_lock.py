"""The lock of those who look after a table by themselves: one at a time, whoever writes meanwhile.

It lies beside the table's own lock and is held for as long as a service takes, so that runners
and writers with inline services on any machine pass over a table that another one is busy with.
Plans are safe without it (``Committer.take``); it spares the work of planning the same twice.
"""

from collections.abc import Mapping

from lakewright.model.errors import Unsupported
from lakewright.storage.fleeting import fleeting
from lakewright.storage.port import Storage
from lakewright.timeline.locks.file_lock import RENEWAL, FileLock
from lakewright.timeline.locks.options import PROVIDER
from lakewright.timeline.locks.port import TableLock
from lakewright.timeline.locks.process_lock import ProcessLock

PATH = ".hoodie/.aux/lakewright/services.lock"
#: Seconds without a touch after which the holder counts as dead.
EXPIRE = 6 * RENEWAL


def services_lock(storage: Storage, options: Mapping[str, str]) -> TableLock:
    """Return the lock; nobody waits for it unless told to."""
    return side_lock(storage, options, PATH, "services")


def side_lock(storage: Storage, options: Mapping[str, str], path: str, name: str) -> TableLock:
    """Return a lock beside the table's own, at ``path``; nobody waits for it unless told to.

    ``name`` tells it from others where the table lies in the memory of this process.
    """
    if PROVIDER.read(options) == "process" or storage.uri.startswith("memory://"):
        return ProcessLock(f"{storage.uri}#{name}", 0.0)
    if not storage.can_create_atomically:
        raise Unsupported(
            f"{storage.uri} cannot create a file only where none is, so that two who look after "
            "the table cannot be kept apart.",
            next_step="Set hoodie.write.lock.provider=process if this process alone does.",
            uri=storage.uri,
        )
    return FileLock(fleeting(storage), path, wait=0.0, expire=EXPIRE, gate=None)
