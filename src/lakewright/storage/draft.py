"""Local files that are being written: they have no name until they are whole.

The file system keeps a file without a name only while it is open (``O_TMPFILE`` of Linux), so
that a writer that is killed leaves nothing behind. Where there is no such thing, a draft has a
temporary name in the folder of its target, ``.<random>.lakewright-tmp``, and a kill leaves it.
"""

# Descriptors and names in folders: pathlib offers neither.
# ruff: noqa: PTH110

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lakewright.storage.paths import TEMPORARY_SUFFIX
from lakewright.storage.posix import link, settle

#: What the system answers where it has no files without names: each by another file system.
_NO_NAMELESS = frozenset(
    {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS}
)
_COPIED = 1 << 20
_FLAG: int = getattr(os, "O_TMPFILE", 0)


class Draft:
    """A file of a folder that is being written through ``descriptor``.

    ``publish`` or ``replace`` gives it its name, after it was settled.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._name: str | None = None
        self.descriptor = _nameless(folder)
        if self.descriptor < 0:
            self._name, self.descriptor = _named(folder)

    def publish(self, name: str) -> None:
        """Give it a name that must be free: ``FileExistsError`` where it is not."""
        if self._name is None and _link_open(self.descriptor, name, self._folder):
            return
        link(self._take_name(), self._folder, name, self._folder)

    def replace(self, name: str) -> None:
        """Give it a name, in place of whatever file had it."""
        if self._name is None:
            with suppress(FileExistsError):
                if _link_open(self.descriptor, name, self._folder):
                    return
        os.rename(self._take_name(), name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def close(self) -> None:
        """Close it; what has no name by now is gone."""
        os.close(self.descriptor)
        if self._name is not None:
            with suppress(FileNotFoundError):  # a rename took it
                os.unlink(self._name, dir_fd=self._folder)

    def _take_name(self) -> str:
        """Return the temporary name; one that has none is given it, or is copied to it."""
        if self._name is None:
            name = _new_name()
            if _link_open(self.descriptor, name, self._folder):
                self._name = name
            else:
                self._name, copy = _named(self._folder)
                try:
                    _copy(self.descriptor, copy)
                finally:
                    os.close(copy)
        return self._name


@contextmanager
def draft(folder: int) -> Iterator[Draft]:
    """Make an empty file in ``folder``, which is gone when the block ends without a name."""
    made = Draft(folder)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def draft_of(data: bytes, folder: int, *, durable: bool = True) -> Iterator[Draft]:
    """Write ``data`` to a settled draft in ``folder``."""
    with draft(folder) as made:
        view = memoryview(data)
        while view:
            view = view[os.write(made.descriptor, view) :]
        settle(made.descriptor, durable=durable)
        yield made


def _nameless(folder: int) -> int:
    """Open a file without a name; -1 where the system has none, or no way to name it later."""
    if not _FLAG or not os.path.exists("/proc/self/fd"):
        return -1
    try:
        return os.open(".", _FLAG | os.O_RDWR, 0o666, dir_fd=folder)
    except OSError as cause:
        if cause.errno in _NO_NAMELESS:
            return -1
        raise


def _named(folder: int) -> tuple[str, int]:
    name = _new_name()
    return name, os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)


def _new_name() -> str:
    return f".{secrets.token_hex(12)}{TEMPORARY_SUFFIX}"


def _link_open(descriptor: int, name: str, folder: int) -> bool:
    """Give an open file a name that must be free; False where the system refuses to."""
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder)
    except FileExistsError:
        raise
    except OSError as cause:
        if cause.errno in {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS}:
            raise
        return False
    return True


def _copy(source: int, target: int) -> None:
    offset = 0
    while data := os.pread(source, _COPIED, offset):
        offset += len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
    settle(target)
