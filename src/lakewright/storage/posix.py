"""The operating system's calls that local storage is made of; names are relative to a folder.

A folder is given as an open descriptor, so that it stays the same folder whatever is renamed
around it meanwhile.
"""

# Descriptors and names in folders: pathlib offers neither.
# ruff: noqa: PTH102, PTH112, PTH120

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
)


def version_of(status: os.stat_result) -> str:
    """Return what differs after every write: see the head of ``local``."""
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """Return ``length`` bytes from ``offset``; fewer only at the end of the file."""
    data = os.pread(descriptor, length, offset)
    if len(data) == length or not data:
        return data
    pieces = [data]  # the kernel gives at most 2 GiB at a time
    done = len(data)
    while done < length:
        data = os.pread(descriptor, length - done, offset + done)
        if not data:
            break
        pieces.append(data)
        done += len(data)
    return b"".join(pieces)


def make_folders(full: str, *, durable: bool = True) -> None:
    """Make a folder and what is missing above it, each made durable in its parent."""
    missing = []
    while not os.path.isdir(full):
        missing.append(full)
        full = os.path.dirname(full)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder)
        if not durable:
            continue
        descriptor = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def settle(descriptor: int, *, durable: bool = True) -> None:
    """Make a written file durable, with a modification time of its own."""
    now = time.time_ns()
    os.utime(descriptor, ns=(now, now))
    if durable:
        os.fsync(descriptor)


@contextmanager
def locked(folder: int) -> Iterator[None]:
    """Hold the folder's lock; another thread or process of this machine waits for it."""
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(folder, fcntl.LOCK_UN)


def exists(name: str, folder: int) -> bool:
    """Say whether the name is taken, be it by a file, a folder or a link."""
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def link(source: str, source_folder: int, target: str, target_folder: int) -> None:
    """Give a file a second name that must be free; without hard links, move it there."""
    try:
        os.link(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder)
    except OSError as cause:
        if cause.errno not in _NO_HARD_LINKS:
            raise
        with locked(target_folder):
            if exists(target, target_folder):
                raise FileExistsError(errno.EEXIST, "exists", target) from None
            os.rename(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder)


def drop_checksum(name: str, folder: int) -> None:
    """Remove Hadoop's checksum of a file that is about to change."""
    with suppress(FileNotFoundError):
        os.unlink(f".{name}.crc", dir_fd=folder)
