"""Files that matter only while their writer lives: locks, heartbeats, markers."""

from dataclasses import replace

from lakewright.storage.local import LocalStorage
from lakewright.storage.port import Storage


def fleeting(storage: Storage) -> Storage:
    """Return the same files, without waiting for the disk after each change where one would.

    Changes that a later durable write of the same file system follows are durable with it, on the
    journaling file systems in use; without one they may be lost in a power cut.
    """
    return replace(storage, durable=False) if isinstance(storage, LocalStorage) else storage
