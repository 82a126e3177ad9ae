"""Which lock a table has: by its options, else by where it lies."""

from collections.abc import Mapping

from lakewright.model.errors import Unsupported
from lakewright.storage.fleeting import fleeting
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.timeline.locks import options as settings
from lakewright.timeline.locks.file_lock import FileLock
from lakewright.timeline.locks.port import TableLock
from lakewright.timeline.locks.process_lock import ProcessLock
from lakewright.timeline.locks.storage_lock import StorageLock
from lakewright.timeline.publication import Patience


def open_lock(storage: Storage, options: Mapping[str, str]) -> TableLock:
    """Return the lock of the table in ``storage``; nothing is taken yet.

    ``options`` are the table's properties under the caller's. A storage that cannot create files
    atomically is ``Unsupported``, unless the lock within this process is asked for.
    """
    kind = settings.PROVIDER.read(options) or _usual(storage)
    wait = settings.WAIT.read(options) / 1000
    if kind == "process":
        return ProcessLock(storage.uri, wait)
    if kind == "file":
        return _file_lock(storage, options, wait)
    _refuse_unatomic(storage)
    return StorageLock(
        fleeting(storage),
        wait=wait,
        validity=settings.VALIDITY.read(options),
        renewal=settings.RENEWAL.read(options),
        request=Patience.with_store(storage).request,
    )


def _usual(storage: Storage) -> str:
    if storage.uri.startswith("memory://"):
        return "process"
    return "file" if _is_local(storage) else "storage"


def _file_lock(storage: Storage, options: Mapping[str, str], wait: float) -> FileLock:
    folder = settings.FILE_FOLDER.read(options)
    place = fleeting(open_storage(folder, storage.options) if folder else storage)
    _refuse_unatomic(place)
    gate = storage if _is_local(storage) else None
    expire = settings.FILE_EXPIRE.read(options) * 60
    path = "lock" if folder else ".hoodie/lock"
    return FileLock(place, path, wait=wait, expire=expire, gate=gate)


def _is_local(storage: Storage) -> bool:
    return storage.uri.startswith("/")


def _refuse_unatomic(storage: Storage) -> None:
    if not storage.can_create_atomically:
        raise Unsupported(
            f"{storage.uri} cannot create a file only where none is, so that writers cannot be "
            "kept apart there.",
            next_step="Set hoodie.write.lock.provider=process if this process alone writes the "
            "table; otherwise write it elsewhere.",
            uri=storage.uri,
        )
