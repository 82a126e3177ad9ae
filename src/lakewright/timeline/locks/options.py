"""The options of locks; Hudi's names where Hudi has one."""

from lakewright.model.options import declare, parse_count, parse_positive

_FROM_1 = "a whole number from 1"


#: Hudi's class names, and ours, by the last part in lower case.
PROVIDERS = {
    "storagebasedlockprovider": "storage",
    "filesystembasedlockprovider": "file",
    "inprocesslockprovider": "process",
    "storage": "storage",
    "file": "file",
    "filesystem": "file",
    "process": "process",
    "inprocess": "process",
}


def _provider(text: str) -> str:
    name = PROVIDERS.get(text.strip().rpartition(".")[2].lower())
    if name is None:
        raise ValueError(text)
    return name


PROVIDER = declare(
    "hoodie.write.lock.provider",
    _provider,
    "",
    doc="Which lock keeps writers apart, by Hudi's class name or a short one. Without it: the "
    "storage lock on object stores, the file lock on local paths, the lock within this process "
    "for tables in memory. All writers of a table, of whatever software, must use the same.",
    since="0.1",
    allowed="storage, file, process, or Hudi's StorageBasedLockProvider, "
    "FileSystemBasedLockProvider, InProcessLockProvider",
)
WAIT = declare(
    "hoodie.write.lock.wait_time_ms",
    parse_positive,
    60_000,
    doc="Milliseconds to wait for the lock before the write is given up.",
    since="0.1",
    allowed=_FROM_1,
)
FILE_FOLDER = declare(
    "hoodie.write.lock.filesystem.path",
    str.strip,
    "",
    doc="Folder of the file lock, outside the table if you like; without it `.hoodie` of the "
    "table, as in Hudi.",
    since="0.1",
    allowed="a path",
)
FILE_EXPIRE = declare(
    "hoodie.write.lock.filesystem.expire",
    parse_count,
    15,
    doc="Minutes after which a lock file that nobody renewed is broken; 0 for never. Locks of "
    "ended processes of this machine are broken at once. (Hudi's default is 0; it does not renew "
    "its own.)",
    since="0.1",
    allowed="a whole number from 0",
)
VALIDITY = declare(
    "hoodie.write.lock.storage.validity.timeout.secs",
    parse_positive,
    300,
    doc="Seconds for which a storage lock holds without being renewed.",
    since="0.1",
    allowed=_FROM_1,
)
RENEWAL = declare(
    "hoodie.write.lock.storage.renew.interval.secs",
    parse_positive,
    30,
    doc="Seconds between renewals of a storage lock while it is held.",
    since="0.1",
    allowed=_FROM_1,
    old_keys=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)
