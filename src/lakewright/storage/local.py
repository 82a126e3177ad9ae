"""Local files (POSIX): a folder of this machine, or one that is mounted on it.

How the promises of the port are kept:

* ``create`` writes a file without a name in the target's own folder, syncs it, links it to the
  final name (the one atomic step, which fails when the name is taken), and syncs the folder.
  Where the file system has no hard links, the final step is a rename under the folder's lock.
* ``write`` and ``replace_if`` end in a rename under that lock, ``delete`` and ``move`` take it
  too. The lock is ``flock`` on the folder: it is shared by all threads and processes of this
  machine that use this module, leaves no file behind, and dies with its holder. Software that
  does not take it can still slip between the comparison and the rename of ``replace_if`` (a few
  microseconds).
* A version is made of inode, modification time and size. Every file written here gets the
  clock's nanoseconds as its modification time, so that two writes within one tick of the
  kernel's coarse clock differ.
* What is being written has no name until it is whole, and is gone when its writer is killed.
  Where the file system cannot do that, and for the moment in which one file takes another's
  place, it has a temporary name, ``.<random>.lakewright-tmp``: no part of the target's name is
  in it, so that no reader of any table format takes it for data. Listings here hide such files;
  one that a crash left behind can be deleted at any time after.
* Hadoop keeps checksums in ``.<name>.crc`` beside a file and refuses the file when they differ,
  so whatever changes or removes a file removes that sibling first.
"""

# Descriptors, folder descriptors and scandir: pathlib offers none of them.
# ruff: noqa: PTH116, PTH123

import errno
import io
import os
import stat as stat_modes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, NamedTuple, cast

import pyarrow as pa

from lakewright.model.errors import Denied, InvalidPath, LakewrightError, Unavailable
from lakewright.storage.behind import WriteBehind
from lakewright.storage.draft import Draft, draft, draft_of
from lakewright.storage.paths import (
    TEMPORARY_SUFFIX,
    already_exists,
    check_file,
    check_path,
    check_range,
    escapes,
    join,
    not_found,
    split,
)
from lakewright.storage.port import FileStat, Folder
from lakewright.storage.posix import (
    drop_checksum,
    exists,
    link,
    locked,
    make_folders,
    read_at,
    settle,
    version_of,
)
from lakewright.storage.streams import walk_tree

_DISK_TROUBLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})

#: Small, so that large pieces pass it by: what it takes in is copied once more.
_BUFFER = 1 << 18
_WALK_THREADS = min(4, os.cpu_count() or 1)
_WALK_BATCH = 64


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """The files below one folder; ``uri`` is its absolute plain path. It need not exist yet.

    One that is not ``durable`` keeps every promise but this: what it wrote last may be gone after
    a power cut. A crash of the process alone loses nothing.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    durable: bool = True

    @property
    def can_create_atomically(self) -> bool:
        """True: see the head of this module."""
        return True

    def locate(self, path: str) -> str:
        """Return the absolute plain path."""
        check_path(path)
        return f"{self._base}/{path}" if path else self.uri

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        with self._mapped(path):
            descriptor = os.open(self._inside(check_file(path)), os.O_RDONLY)
            with open(descriptor, "rb", buffering=0) as file:
                return file.readall()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        check_range(offset, length)
        with self._mapped(path):
            descriptor = os.open(self._inside(check_file(path)), os.O_RDONLY)
            try:
                return read_at(descriptor, offset, length)
            finally:
                os.close(descriptor)

    def open(self, path: str) -> IO[bytes]:
        """Open as an Arrow file, which parquet reads without the interpreter's lock."""
        with self._mapped(path):
            full = self._inside(check_file(path))
            if stat_modes.S_ISDIR(os.stat(full).st_mode):
                raise IsADirectoryError(errno.EISDIR, "is a folder", full)
            return cast("IO[bytes]", pa.OSFile(full, "r"))

    def stat(self, path: str) -> FileStat | None:
        """Return size, time and version; a folder is no file."""
        with self._mapped(path):
            try:
                status = os.stat(self._inside(check_file(path)))
            except (FileNotFoundError, NotADirectoryError):
                return None
            return None if stat_modes.S_ISDIR(status.st_mode) else _file_stat(path, status)

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        """Stream the files of a folder, with one ``stat`` each unless told not to."""
        pending = [_Place(check_path(folder))]
        while pending:
            place = pending.pop()
            found = self._scan(place, stats=stats)
            if recursive:
                pending.extend(found.folders)
            if not stats:
                prefix = f"{place.path}/" if place.path else ""
                yield from [FileStat(prefix + name, -1) for name in found.names]
                continue
            for name, status in zip(found.names, found.stats, strict=True):
                yield _file_stat(join(place.path, name), status)

    def folders(self, folder: str = "") -> Sequence[str]:
        """Return the folders directly inside ``folder``, empty ones included."""
        found = self._scan(_Place(check_path(folder)))
        return sorted(place.path for place in found.folders)

    def walk(
        self, folder: str = "", *, sizes: bool = True, skip: frozenset[str] = frozenset()
    ) -> Iterator[Folder]:
        """Stream every folder that holds files; memory holds a few hundred folders.

        Threads gain little on a warm local disk (reading a folder is short work under the
        interpreter's lock) and much on a mounted or a cold one, hence few threads and batches
        of folders.
        """

        def scan(place: _Place) -> tuple[Folder, Sequence[_Place]]:
            names, stats, inside = self._scan(place, skip, stats=sizes)
            counts = [status.st_size for status in stats] if sizes else [-1] * len(names)
            return Folder(place.path, names, counts), inside

        start = _Place(check_path(folder))
        for found in walk_tree(start, scan, threads=_WALK_THREADS, batch=_WALK_BATCH):
            if found.names:
                yield found

    def ensure_folder(self, path: str) -> None:
        """Make a folder and what is missing above it, durably."""
        with self._mapped(path):
            make_folders(self._inside(check_path(path)), durable=self.durable)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file only where nothing is yet; atomic and durable."""
        with self._mapped(path), self._folder_of(path) as (name, folder):
            if exists(name, folder):
                return False
            with draft_of(data, folder, durable=self.durable) as whole:
                drop_checksum(name, folder)
                try:
                    whole.publish(name)
                except FileExistsError:
                    return False
            self._sync(folder)
            return True

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically and durably.

        A new file without bytes is whole at once, and made without a temporary one: Hudi takes
        any file that a crash leaves among the markers of a write for a marker.
        """
        with self._mapped(path), self._folder_of(path) as (name, folder):
            if not data and self._appears(name, folder):
                return
            with draft_of(data, folder, durable=self.durable) as whole, locked(folder):
                self._put_in_place(path, whole, name, folder)

    @contextmanager
    def writer(self, path: str) -> Iterator[IO[bytes]]:
        """Stream to a draft, which takes its name at the end."""
        with ExitStack() as stack:
            with self._mapped(path):
                name, folder = stack.enter_context(self._folder_of(path))
                whole = stack.enter_context(draft(folder))
                raw = WriteBehind(whole.descriptor, durable=self.durable)
                stack.callback(raw.stop)
                file = stack.enter_context(io.BufferedWriter(raw, _BUFFER))
            try:
                yield file
            except OSError as cause:
                if cause.errno in _DISK_TROUBLE:
                    raise _failure(path, self.uri, cause) from cause
                raise
            with self._mapped(path):
                file.close()
                raw.finish()
                settle(whole.descriptor, durable=self.durable)
                with locked(folder):
                    self._put_in_place(path, whole, name, folder)

    def replace_if(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file while its version is ``version``, under the folder's lock."""
        if self.stat(path) is None:
            return False
        with (
            self._mapped(path),
            self._folder_of(path) as (name, folder),
            draft_of(data, folder, durable=self.durable) as whole,
            locked(folder),
        ):
            try:
                current = os.stat(name, dir_fd=folder)
            except FileNotFoundError:
                return False
            if version_of(current) != version:
                return False
            self._put_in_place(path, whole, name, folder)
            return True

    def move(self, source: str, target: str) -> None:
        """Move a file: the target's name is linked, then the source's removed.

        A crash between the two leaves both names, each with the whole content.
        """
        if self.stat(source) is None:
            raise not_found(source, self.uri)
        with (
            self._mapped(source),
            self._folder_of(source) as (old_name, old_folder),
            self._folder_of(target) as (new_name, new_folder),
        ):
            if exists(new_name, new_folder):
                raise already_exists(target, self.uri)
            drop_checksum(new_name, new_folder)
            try:
                link(old_name, old_folder, new_name, new_folder)
            except FileExistsError:
                raise already_exists(target, self.uri) from None
            self._sync(new_folder)
            with locked(old_folder):
                drop_checksum(old_name, old_folder)
                with suppress(FileNotFoundError):
                    os.unlink(old_name, dir_fd=old_folder)
            self._sync(old_folder)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; each run of files in one folder shares a lock and a sync."""
        for folder, names in _by_folder(paths):
            with self._mapped(folder):
                try:
                    descriptor = os.open(self._inside(folder), os.O_RDONLY | os.O_DIRECTORY)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                try:
                    with locked(descriptor):
                        for name in names:
                            drop_checksum(name, descriptor)
                            with suppress(FileNotFoundError, IsADirectoryError):
                                os.unlink(name, dir_fd=descriptor)
                    self._sync(descriptor)
                finally:
                    os.close(descriptor)

    @property
    def _base(self) -> str:
        return self.uri.rstrip("/")

    def _sync(self, descriptor: int) -> None:
        if self.durable:
            os.fsync(descriptor)

    def _inside(self, path: str) -> str:
        """Return the full path after making sure that no link on the way leaves the root."""
        full = self._base
        for name in path.split("/") if path else ():
            full = f"{full}/{name}"
            try:
                mode = os.lstat(full).st_mode
            except (FileNotFoundError, NotADirectoryError):
                break
            if stat_modes.S_ISLNK(mode):
                self._resolve(path)
                break
        return self.locate(path)

    def _resolve(self, path: str) -> str:
        """Return where ``path`` really lies; ``InvalidPath`` when that is outside the root."""
        root = os.path.realpath(self.uri)
        real = os.path.realpath(self.locate(path))
        if real != root and not real.startswith(root.rstrip("/") + "/"):
            raise escapes(path, real, self.uri)
        return real

    def _scan(
        self, place: "_Place", skip: frozenset[str] = frozenset(), *, stats: bool = False
    ) -> "_Found":
        """Read one folder; one that is not there is empty. Called for every folder of a tree."""
        found = _Found([], [], [])
        names, statuses, folders = found
        prefix = f"{place.path}/" if place.path else ""
        try:
            # Only a start is checked for links on its way: what was found below it is known.
            full = self._inside(place.path) if place.start else f"{self._base}/{place.path}"
            with os.scandir(full) as entries:
                for entry in entries:
                    name = entry.name
                    if not entry.is_file(follow_symlinks=False):
                        if name in skip:
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(_Place(prefix + name, False, place.links))
                            continue
                        if (linked := self._linked(entry, prefix + name, place)) is not None:
                            folders.append(linked)
                        if linked is not None or not entry.is_file():
                            continue
                    elif name[0] == "." and name.endswith(TEMPORARY_SUFFIX):
                        continue
                    if stats:
                        try:
                            statuses.append(entry.stat())
                        except FileNotFoundError:  # deleted since the folder was read
                            continue
                    names.append(name)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as cause:
            raise _failure(place.path, self.uri, cause) from cause
        return found

    def _linked(self, entry: os.DirEntry[str], path: str, place: "_Place") -> "_Place | None":
        """Return the folder behind a symbolic link, if that is one; it must lie inside."""
        if not entry.is_symlink():
            return None
        real = self._resolve(path)
        if not entry.is_dir():
            return None
        around = os.path.realpath(self.locate(place.path)) + "/"
        if real in place.links or around.startswith(real.rstrip("/") + "/"):
            raise InvalidPath(
                f"The symbolic link {path!r} in {self.uri} leads back to a folder around it.",
                next_step="Remove the symbolic link.",
                path=path,
                target=real,
            )
        return _Place(path, False, place.links | {real})

    @contextmanager
    def _folder_of(self, path: str) -> Iterator[tuple[str, int]]:
        """Open the folder of a file that is to be written, making it where it is missing."""
        folder, name = split(check_file(path))
        self._inside(path)
        full = self.locate(folder)
        try:
            try:
                descriptor = os.open(full, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                make_folders(full, durable=self.durable)
                descriptor = os.open(full, os.O_RDONLY | os.O_DIRECTORY)
        except NotADirectoryError as cause:
            raise self._in_the_way(path, "A file stands where a folder is needed") from cause
        try:
            yield name, descriptor
        finally:
            os.close(descriptor)

    def _appears(self, name: str, folder: int) -> bool:
        """Make an empty file, durably; False where the name is taken."""
        drop_checksum(name, folder)
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=folder)
        except FileExistsError:
            return False
        try:
            settle(descriptor, durable=self.durable)
        finally:
            os.close(descriptor)
        self._sync(folder)
        return True

    def _put_in_place(self, path: str, whole: Draft, name: str, folder: int) -> None:
        """Give a settled draft its final name, durably; the folder's lock is held."""
        drop_checksum(name, folder)
        try:
            whole.replace(name)
        except IsADirectoryError as cause:
            raise self._in_the_way(path, "A folder stands where a file is wanted") from cause
        self._sync(folder)

    def _in_the_way(self, path: str, what: str) -> InvalidPath:
        return InvalidPath(
            f"{what}, at {path!r} in {self.uri}.",
            next_step="Move that away, or choose another path.",
            path=path,
        )

    @contextmanager
    def _mapped(self, path: str) -> Iterator[None]:
        """Turn the operating system's errors into ours."""
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise not_found(path, self.uri) from None
        except OSError as cause:
            raise _failure(path, self.uri, cause) from cause


class _Place(NamedTuple):
    """A folder still to be read, with the real paths of the links that led to it."""

    path: str
    start: bool = True
    links: frozenset[str] = frozenset()


class _Found(NamedTuple):
    """What one folder holds; ``stats`` are in the order of ``names``, or not asked for."""

    names: list[str]
    stats: list[os.stat_result]
    folders: list[_Place]


def _failure(path: str, uri: str, cause: OSError) -> LakewrightError:
    reason = cause.strerror or str(cause)
    if cause.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return Denied(
            f"The operating system refused access to {path!r} in {uri}: {reason}.",
            next_step="Check the owner and the permissions of the folder.",
            path=path,
        )
    if cause.errno in {errno.ENAMETOOLONG, errno.ELOOP, errno.EILSEQ}:
        return InvalidPath(
            f"The file system cannot hold {path!r} in {uri}: {reason}.",
            next_step="Choose another name.",
            path=path,
        )
    return Unavailable(
        f"The file system failed on {path!r} in {uri}: {reason}.",
        next_step="Check the disk and try again.",
        path=path,
        errno=cause.errno,
    )


def _file_stat(path: str, status: os.stat_result) -> FileStat:
    return FileStat(path, status.st_size, status.st_mtime_ns / 1e9, version_of(status))


def _by_folder(files: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Group runs of files of one folder; a run is cut at 1,000 so that no lock is held long."""
    folder, names = "", list[str]()
    for path in files:
        parent, name = split(check_file(path))
        if names and (parent != folder or len(names) == 1_000):
            yield folder, names
            names = []
        folder = parent
        names.append(name)
    if names:
        yield folder, names
