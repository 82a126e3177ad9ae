"""The operating system's calls that local storage is made of; names are relative to a folder.

A folder is given as an open descriptor, so that it stays the same folder whatever is renamed
around it meanwhile.
"""

# Descriptors and names in folders: pathlib offers neither.
# ruff: noqa: PTH102, PTH112, PTH120

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lakewright.storage.paths import TEMPORARY_SUFFIX

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


@contextmanager
def temporary_file(folder: int) -> Iterator[tuple[str, int]]:
    """Make an empty temporary file in ``folder``; its name is gone when the block ends."""
    name = f".{secrets.token_hex(12)}{TEMPORARY_SUFFIX}"
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
    try:
        yield name, descriptor
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):  # a rename took it
            os.unlink(name, dir_fd=folder)


@contextmanager
def staged(data: bytes, folder: int, *, durable: bool = True) -> Iterator[str]:
    """Write ``data`` to a settled temporary file in ``folder``."""
    with temporary_file(folder) as (name, descriptor):
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        settle(descriptor, durable=durable)
        yield name


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
