"""Files in memory, shared by name within one process: ``memory://name/folder``."""

import io
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from lakewright.model.errors import InvalidPath, Unsupported
from lakewright.storage.paths import (
    already_exists,
    check_file,
    check_path,
    check_range,
    join,
    not_found,
    split,
)
from lakewright.storage.port import FileStat, Folder


@dataclass(frozen=True, slots=True)
class _Blob:
    data: bytes
    version: int
    modified: float


@dataclass(slots=True)
class _Node:
    """One folder: its files and the folders inside it, which are never empty."""

    files: dict[str, _Blob] = field(default_factory=dict)
    folders: dict[str, "_Node"] = field(default_factory=dict)


@dataclass(slots=True)
class _Store:
    """All the files of one name; every look and every change is made under its lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    root: _Node = field(default_factory=_Node)
    last_version: int = 0

    def node(self, folder: str) -> _Node | None:
        node: _Node | None = self.root
        for name in folder.split("/") if folder else ():
            node = node.folders.get(name) if node else None
        return node

    def get(self, path: str) -> _Blob | None:
        folder, name = split(path)
        node = self.node(folder)
        return node.files.get(name) if node else None

    def put(self, path: str, data: bytes) -> None:
        folder, name = split(path)
        node = self.root
        for part in folder.split("/") if folder else ():
            node = node.folders.setdefault(part, _Node())
        self.last_version += 1
        node.files[name] = _Blob(data, self.last_version, time.time())

    def drop(self, path: str) -> None:
        folder, name = split(path)
        chain = [("", self.root)]
        for part in folder.split("/") if folder else ():
            child = chain[-1][1].folders.get(part)
            if child is None:
                return
            chain.append((part, child))
        chain[-1][1].files.pop(name, None)
        for (_, parent), (part, child) in zip(chain[-2::-1], chain[:0:-1], strict=True):
            if child.files or child.folders:
                return
            del parent.folders[part]


_STORES: dict[str, _Store] = {}
_STORES_LOCK = threading.Lock()


def _store(name: str) -> _Store:
    with _STORES_LOCK:
        return _STORES.setdefault(name, _Store())


class _Gathered(io.BytesIO):
    """Keeps its bytes beyond its closing."""

    gathered = b""

    def close(self) -> None:
        if not self.closed:
            self.gathered = self.getvalue()
        super().close()


class MemoryStorage:
    """The files below ``memory://name/folder``; two of the same name share their files.

    It can be pickled within its process; another process refuses it, as it has not the files.
    """

    __slots__ = ("_prefix", "_store", "options", "uri")

    def __init__(self, uri: str, options: Mapping[str, str] | None = None) -> None:
        place = uri.removeprefix("memory://").rstrip("/")
        name, _, prefix = place.partition("/")
        if not name:
            raise InvalidPath(
                f"{uri!r} has no name.",
                next_step="Give one, as in memory://scratch.",
                uri=uri,
            )
        self.uri = f"memory://{place}"
        self.options: Mapping[str, str] = dict(options or {})
        self._prefix = check_path(prefix)
        self._store = _store(name)

    def __repr__(self) -> str:
        return f"MemoryStorage({self.uri!r})"

    def __reduce__(self) -> tuple[Callable[..., "MemoryStorage"], tuple[object, ...]]:
        return (_reopen, (self.uri, dict(self.options), os.getpid()))

    @property
    def can_create_atomically(self) -> bool:
        """True: every change is made under one lock."""
        return True

    def locate(self, path: str) -> str:
        """Return the URI, which nothing outside this process can open."""
        return join(self.uri, check_path(path))

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        return self._blob(path).data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        check_range(offset, length)
        return self._blob(path).data[offset : offset + length]

    def open(self, path: str) -> IO[bytes]:
        """Open the bytes as they are now; a later write does not show."""
        return io.BytesIO(self._blob(path).data)

    def stat(self, path: str) -> FileStat | None:
        """Return size, time and version."""
        key = self._key(path)
        with self._store.lock:
            blob = self._store.get(key)
        return _file_stat(path, blob) if blob else None

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        """Stream the files of a folder."""
        for path, files in self._walk(folder, frozenset(), recursive):
            for name, blob in files:
                yield _file_stat(join(path, name), blob)

    def folders(self, folder: str = "") -> Sequence[str]:
        """Return the folders directly inside ``folder``; none is empty."""
        key = join(self._prefix, check_path(folder))
        with self._store.lock:
            node = self._store.node(key)
            names = sorted(node.folders) if node else []
        return [join(folder, name) for name in names]

    def walk(
        self, folder: str = "", *, sizes: bool = True, skip: frozenset[str] = frozenset()
    ) -> Iterator[Folder]:
        """Stream every folder that holds files."""
        for path, files in self._walk(folder, skip, True):
            if files:
                counts = [len(blob.data) if sizes else -1 for _, blob in files]
                yield Folder(path, [name for name, _ in files], counts)

    def ensure_folder(self, path: str) -> None:
        """Check the path and do nothing: there are no folders without files here."""
        check_path(path)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file only where nothing is yet."""
        key, data = self._key(path), bytes(data)
        with self._store.lock:
            if self._store.get(key):
                return False
            self._store.put(key, data)
            return True

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file."""
        key, data = self._key(path), bytes(data)
        with self._store.lock:
            self._store.put(key, data)

    @contextmanager
    def writer(self, path: str) -> Iterator[IO[bytes]]:
        """Gather the bytes, and put them at the end."""
        self._key(path)
        with _Gathered() as file:
            yield file
        self.write(path, file.gathered)

    def replace_if(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file only while its version is still ``version``."""
        key, data = self._key(path), bytes(data)
        with self._store.lock:
            blob = self._store.get(key)
            if blob is None or str(blob.version) != version:
                return False
            self._store.put(key, data)
            return True

    def move(self, source: str, target: str) -> None:
        """Move a file in one step."""
        old, new = self._key(source), self._key(target)
        with self._store.lock:
            blob = self._store.get(old)
            if blob is None:
                raise not_found(source, self.uri)
            if self._store.get(new):
                raise already_exists(target, self.uri)
            self._store.put(new, blob.data)
            self._store.drop(old)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, and the folders that become empty."""
        for path in paths:
            key = self._key(path)
            with self._store.lock:
                self._store.drop(key)

    def _key(self, path: str) -> str:
        return join(self._prefix, check_file(path))

    def _blob(self, path: str) -> _Blob:
        key = self._key(path)
        with self._store.lock:
            blob = self._store.get(key)
        if blob is None:
            raise not_found(path, self.uri)
        return blob

    def _walk(
        self, folder: str, skip: frozenset[str], recursive: bool
    ) -> Iterator[tuple[str, Sequence[tuple[str, _Blob]]]]:
        pending = [check_path(folder)]
        while pending:
            path = pending.pop()
            with self._store.lock:
                node = self._store.node(join(self._prefix, path))
                files = list(node.files.items()) if node else []
                inside = [name for name in node.folders if name not in skip] if node else []
            if recursive:
                pending.extend(join(path, name) for name in inside)
            yield path, files


def _file_stat(path: str, blob: _Blob) -> FileStat:
    return FileStat(path, len(blob.data), blob.modified, str(blob.version))


def _reopen(uri: str, options: Mapping[str, str], process: int) -> MemoryStorage:
    if process != os.getpid():
        raise Unsupported(
            f"{uri} lives in process {process} and cannot be used in another.",
            next_step="Use a folder or an object store for work on several processes.",
            uri=uri,
        )
    return MemoryStorage(uri, options)
