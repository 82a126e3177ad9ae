"""Any file system that fsspec knows (extra ``fsspec``): SFTP, SMB, WebHDFS, OSS and many more.

fsspec has no conditional create, so ``can_create_atomically`` is False, and ``create``,
``replace_if`` and ``move`` look before they act: good for one writer under a lock. Symbolic
links cannot be seen through this interface, so that only ``..`` and the like are refused.
"""

import datetime
import io
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias, cast

import fsspec
from fsspec.core import url_to_fs

from lakewright.model.errors import Denied, Invalid, MissingExtra, Unavailable
from lakewright.storage.fsspec_options import SETTINGS
from lakewright.storage.paths import (
    TEMPORARY_SUFFIX,
    already_exists,
    check_file,
    check_path,
    check_range,
    join,
    not_found,
    split,
)
from lakewright.storage.port import FileStat, Folder
from lakewright.storage.streams import map_bounded, walk_tree

FileSystem: TypeAlias = Any
"""A ``fsspec.AbstractFileSystem``; fsspec is not typed."""

_THREADS = 8
_WRITES_WHOLE = frozenset(
    {"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "cos", "obs", "oci", "tos"}
)
"""Protocols of object stores, in which a new file shows only once it is complete."""

_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")


def open_fsspec(uri: str, options: Mapping[str, str]) -> "FsspecStorage":
    """Open the file system that fsspec has for this URI; ``fsspec+`` before it is dropped."""
    root = uri.rstrip("/")
    settings = {"use_listings_cache": False, **SETTINGS.read(options)}
    try:
        filesystem, path = url_to_fs(root.removeprefix("fsspec+"), **settings)
    except ImportError as cause:
        raise MissingExtra(
            f"fsspec needs another package for {uri!r}: {cause}",
            next_step="Install the package that it names.",
            uri=uri,
        ) from cause
    except (ValueError, TypeError) as cause:
        known = ", ".join(sorted(fsspec.available_protocols()))
        raise Invalid(
            f"fsspec cannot open {uri!r}: {cause}",
            next_step=f"Check the option fsspec.options; known schemes: {known}.",
            uri=uri,
        ) from cause
    except OSError as cause:
        raise Unavailable(
            f"{uri!r} did not answer: {cause}.", next_step="Check the address.", uri=uri
        ) from cause
    return FsspecStorage(root, dict(options), filesystem, path.rstrip("/"))


def from_filesystem(filesystem: FileSystem, root: str) -> "FsspecStorage":
    """Wrap a file system that the caller made; its settings are the caller's own."""
    root = root.rstrip("/")
    return FsspecStorage(f"fsspec+{filesystem.unstrip_protocol(root)}", {}, filesystem, root)


@dataclass(frozen=True, slots=True)
class FsspecStorage:
    """The files below ``root`` of a fsspec file system."""

    uri: str
    options: Mapping[str, str]
    filesystem: FileSystem = field(repr=False)
    root: str

    @property
    def can_create_atomically(self) -> bool:
        """False: see the head of this module."""
        return False

    def locate(self, path: str) -> str:
        """Return the URI as fsspec writes it."""
        return join(self.uri.removeprefix("fsspec+"), check_path(path))

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        with self._mapped(path):
            return bytes(self.filesystem.cat_file(self._full(check_file(path))))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        check_range(offset, length)
        with self.open(path) as file:
            file.seek(offset)
            return file.read(length)

    def open(self, path: str) -> IO[bytes]:
        """Open with fsspec's own buffering."""
        with self._mapped(path):
            try:
                file = self.filesystem.open(self._full(check_file(path)), "rb")
            except OSError:
                if self.stat(path) is None:
                    raise not_found(path, self.uri) from None
                raise
        # A file system in memory hands out the stored file itself, with one position for all.
        return (
            io.BytesIO(file.getvalue()) if isinstance(file, io.BytesIO) else cast("IO[bytes]", file)
        )

    def stat(self, path: str) -> FileStat | None:
        """Return size, time and version; a folder is no file."""
        with self._mapped(path):
            try:
                info = self.filesystem.info(self._full(check_file(path)))
            except (FileNotFoundError, NotADirectoryError):
                return None
        return _file_stat(path, info) if info["type"] == "file" else None

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        """Stream the files of a folder, one request per folder."""

        def scan(path: str) -> tuple[Sequence[FileStat], Sequence[str]]:
            files, folders = self._scan(path)
            found = [_file_stat(join(path, name), info) for name, info in files]
            return found, folders if recursive else ()

        for files in walk_tree(check_path(folder), scan, threads=_THREADS):
            yield from files

    def folders(self, folder: str = "") -> Sequence[str]:
        """Return the folders directly inside ``folder``."""
        return sorted(self._scan(check_path(folder))[1])

    def walk(
        self, folder: str = "", *, sizes: bool = True, skip: frozenset[str] = frozenset()
    ) -> Iterator[Folder]:
        """Stream every folder that holds files; several requests at once."""

        def scan(path: str) -> tuple[Folder, Sequence[str]]:
            files, folders = self._scan(path)
            counts = [int(info["size"]) if sizes else -1 for _, info in files]
            found = Folder(path, [name for name, _ in files], counts)
            return found, [inner for inner in folders if split(inner)[1] not in skip]

        for found in walk_tree(check_path(folder), scan, threads=_THREADS):
            if found.names:
                yield found

    def ensure_folder(self, path: str) -> None:
        """Make a folder the way the file system does."""
        with self._mapped(path):
            self.filesystem.makedirs(self._full(check_path(path)), exist_ok=True)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file where nothing is; two writers at once can both believe they did."""
        if self.stat(path) is not None:
            return False
        self.write(path, data)
        return True

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file; readers see the old bytes or the new.

        One without bytes is whole at once, and needs no temporary file: see ``local``.
        """
        folder, _ = split(check_file(path))
        target = self._full(path)
        with self._mapped(path):
            self.filesystem.makedirs(self._full(folder), exist_ok=True)
            if self._writes_whole or not data:
                self.filesystem.pipe_file(target, bytes(data))
                return
            temporary = self._full(join(folder, f".{secrets.token_hex(12)}{TEMPORARY_SUFFIX}"))
            self.filesystem.pipe_file(temporary, bytes(data))
            self._rename(temporary, target)

    @contextmanager
    def writer(self, path: str) -> Iterator[IO[bytes]]:
        """Stream to a temporary file, which is moved to its name at the end."""
        folder, _ = split(check_file(path))
        temporary = self._full(join(folder, f".{secrets.token_hex(12)}{TEMPORARY_SUFFIX}"))
        with self._mapped(path):
            self.filesystem.makedirs(self._full(folder), exist_ok=True)
            file = self.filesystem.open(temporary, "wb")
        try:
            with file:
                yield cast("IO[bytes]", file)
        except BaseException:
            with suppress(OSError):
                self.filesystem.rm_file(temporary)
            raise
        with self._mapped(path):
            self._rename(temporary, self._full(path))

    def replace_if(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file whose version is ``version``; another writer can slip between."""
        current = self.stat(path)
        if current is None or current.version != version:
            return False
        self.write(path, data)
        return True

    def move(self, source: str, target: str) -> None:
        """Move a file; the look at the target comes before."""
        if self.stat(source) is None:
            raise not_found(source, self.uri)
        if self.stat(target) is not None:
            raise already_exists(target, self.uri)
        with self._mapped(source):
            self.filesystem.makedirs(self._full(split(target)[0]), exist_ok=True)
            self._rename(self._full(source), self._full(target))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, several requests at once."""
        for _ in map_bounded(self._delete, map(check_file, paths), threads=_THREADS):
            pass

    def _delete(self, path: str) -> None:
        with self._mapped(path):
            try:
                self.filesystem.rm_file(self._full(path))
            except OSError:
                if self.stat(path) is not None:
                    raise

    def _rename(self, source: str, target: str) -> None:
        """Move within the file system; fsspec's general way takes ``*`` and ``?`` for patterns."""
        if type(self.filesystem).mv is not fsspec.AbstractFileSystem.mv:
            self.filesystem.mv(source, target)
        else:
            self.filesystem.cp_file(source, target)
            self.filesystem.rm_file(source)

    @property
    def _writes_whole(self) -> bool:
        protocol = self.filesystem.protocol
        names = (protocol,) if isinstance(protocol, str) else protocol
        return not _WRITES_WHOLE.isdisjoint(names)

    def _full(self, path: str) -> str:
        return join(self.root, path)

    def _scan(self, folder: str) -> "tuple[Sequence[tuple[str, Any]], Sequence[str]]":
        """Return the names and descriptions of a folder's files, and its folders' paths."""
        with self._mapped(folder):
            try:
                infos = self.filesystem.ls(self._full(folder), detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return [], []
        files, folders = [], []
        full = self._full(folder).strip("/")
        for info in infos:
            if info["name"].strip("/") == full:  # some describe the folder, or a file, itself
                continue
            name = split(info["name"].rstrip("/"))[1]
            if info["type"] == "directory":
                folders.append(join(folder, name))
            elif not name.endswith(TEMPORARY_SUFFIX):
                files.append((name, info))
        return files, folders

    @contextmanager
    def _mapped(self, path: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise not_found(path, self.uri) from None
        except PermissionError as cause:
            raise Denied(
                f"Access to {path!r} in {self.uri} was refused: {cause}",
                next_step="Check the credentials.",
                path=path,
            ) from cause
        except OSError as cause:
            raise Unavailable(
                f"The file system failed on {path!r} in {self.uri}: {cause}",
                next_step="Try again later.",
                path=path,
            ) from cause


def _file_stat(path: str, info: Mapping[str, Any]) -> FileStat:
    modified = _seconds(next((info[name] for name in _TIMES if info.get(name) is not None), None))
    tag = info.get("ETag") or info.get("etag") or info.get("ino")
    size = int(info["size"])
    return FileStat(path, size, modified, json.dumps([str(tag), modified, size]))


def _seconds(time: object) -> float | None:
    """Return seconds since the epoch from whatever a file system gives as a time."""
    match time:
        case int() | float():
            return float(time)
        case datetime.datetime():
            aware = time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
            return aware.timestamp()
        case str():
            with suppress(ValueError):
                return _seconds(datetime.datetime.fromisoformat(time))
            return None
        case _:
            return None
