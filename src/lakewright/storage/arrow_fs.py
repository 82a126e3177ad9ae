"""Any file system that pyarrow knows: Google Cloud Storage, HDFS, Azure, or an object given.

These have no conditional create, so ``can_create_atomically`` is False, and ``create``,
``replace_if`` and ``move`` look before they act: good for one writer under a lock. Symbolic
links cannot be seen through this interface, so that only ``..`` and the like are refused.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias, cast

import pyarrow as pa
from pyarrow import fs as arrow_files

from lakewright.model.errors import Denied, Invalid, Unavailable
from lakewright.model.options import declare
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
"""A ``pyarrow.fs.FileSystem``; pyarrow is not typed."""

PARAMETERS = declare(
    "arrow.parameters",
    str.strip,
    "",
    doc="Query text that pyarrow's file systems take after the URI, as in scheme=http.",
    since="0.1",
    allowed="name=value pairs joined by &",
)

#: Google's client asks for a quarter of an hour by default, even without any credentials.
_PATIENCE = ("retry_limit_seconds", "60")
_THREADS = 16
_WRITES_WHOLE = frozenset({"gcs", "abfs", "s3"})
"""File systems in which a new file shows only once it is complete."""


def open_arrow(uri: str, options: Mapping[str, str]) -> "ArrowStorage":
    """Open the file system that pyarrow has for this URI's scheme."""
    parameters = PARAMETERS.read(options)
    if uri.startswith(("gs://", "gcs://")) and _PATIENCE[0] not in parameters:
        parameters = "&".join(filter(None, (parameters, "=".join(_PATIENCE))))
    root = uri.rstrip("/")
    try:
        filesystem, path = arrow_files.FileSystem.from_uri(
            f"{root}?{parameters}" if parameters else root
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, ImportError) as cause:
        raise Invalid(
            f"pyarrow cannot open {uri!r}: {cause}",
            next_step="Check the URI and the option arrow.parameters.",
            uri=uri,
        ) from cause
    except OSError as cause:
        raise Unavailable(
            f"{uri!r} did not answer: {cause}.", next_step="Check the address.", uri=uri
        ) from cause
    return ArrowStorage(root, dict(options), filesystem, path.rstrip("/"))


def from_filesystem(filesystem: FileSystem, root: str) -> "ArrowStorage":
    """Wrap a file system that the caller made; its URI is for people, it cannot be reopened."""
    root = root.rstrip("/")
    return ArrowStorage(f"{filesystem.type_name}://{root}", {}, filesystem, root)


@dataclass(frozen=True, slots=True)
class ArrowStorage:
    """The files below ``root`` of a pyarrow file system."""

    uri: str
    options: Mapping[str, str]
    filesystem: FileSystem = field(repr=False)
    root: str

    @property
    def can_create_atomically(self) -> bool:
        """False: see the head of this module."""
        return False

    def locate(self, path: str) -> str:
        """Return the URI."""
        return join(self.uri, check_path(path))

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        with self._mapped(path), self._open(path) as file:
            return cast("bytes", file.read())

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        check_range(offset, length)
        with self._mapped(path), self._open(path) as file:
            left = max(file.size() - offset, 0)
            return cast("bytes", file.read_at(min(length, left), offset)) if left else b""

    def open(self, path: str) -> IO[bytes]:
        """Open as an Arrow file."""
        with self._mapped(path):
            return cast("IO[bytes]", self._open(path))

    def stat(self, path: str) -> FileStat | None:
        """Return size, time and version; a folder is no file."""
        with self._mapped(path):
            info = self.filesystem.get_file_info(self._full(check_file(path)))
        return _file_stat(path, info) if info.type == arrow_files.FileType.File else None

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        """Stream the files of a folder, one request per folder."""

        def scan(path: str) -> tuple[Sequence[FileStat], Sequence[str]]:
            files, folders = self._scan(path)
            found = [_file_stat(join(path, info.base_name), info) for info in files]
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
            counts = [info.size if sizes else -1 for info in files]
            found = Folder(path, [info.base_name for info in files], counts)
            return found, [inner for inner in folders if split(inner)[1] not in skip]

        for found in walk_tree(check_path(folder), scan, threads=_THREADS):
            if found.names:
                yield found

    def ensure_folder(self, path: str) -> None:
        """Make a folder the way the file system does."""
        with self._mapped(path):
            self.filesystem.create_dir(self._full(check_path(path)), recursive=True)

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
            if folder or self.root:
                self.filesystem.create_dir(self._full(folder), recursive=True)
            if self.filesystem.type_name in _WRITES_WHOLE or not data:
                self._put(target, data)
                return
            temporary = self._full(join(folder, f".{secrets.token_hex(12)}{TEMPORARY_SUFFIX}"))
            self._put(temporary, data)
            self.filesystem.move(temporary, target)

    @contextmanager
    def writer(self, path: str) -> Iterator[IO[bytes]]:
        """Stream to a temporary file, which is moved to its name at the end."""
        folder, _ = split(check_file(path))
        temporary = self._full(join(folder, f".{secrets.token_hex(12)}{TEMPORARY_SUFFIX}"))
        with self._mapped(path):
            self.filesystem.create_dir(self._full(folder), recursive=True)
            file = self.filesystem.open_output_stream(temporary)
        try:
            with file:
                yield cast("IO[bytes]", file)
        except BaseException:
            with suppress(OSError):
                self.filesystem.delete_file(temporary)
            raise
        with self._mapped(path):
            self.filesystem.move(temporary, self._full(path))

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
            self.filesystem.create_dir(self._full(split(target)[0]), recursive=True)
            self.filesystem.move(self._full(source), self._full(target))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, several requests at once."""
        for _ in map_bounded(self._delete, map(check_file, paths), threads=_THREADS):
            pass

    def _delete(self, path: str) -> None:
        with self._mapped(path):
            try:
                self.filesystem.delete_file(self._full(path))
            except OSError:
                if self.stat(path) is not None:
                    raise

    def _full(self, path: str) -> str:
        return join(self.root, path)

    def _open(self, path: str) -> Any:  # noqa: ANN401  (pyarrow is not typed)
        try:
            return self.filesystem.open_input_file(self._full(check_file(path)))
        except OSError:
            if self.stat(path) is None:  # a folder is refused in words of each file system's own
                raise not_found(path, self.uri) from None
            raise

    def _put(self, full: str, data: bytes) -> None:
        with self.filesystem.open_output_stream(full) as stream:
            stream.write(data)

    def _scan(self, folder: str) -> "tuple[Sequence[Any], Sequence[str]]":
        """Return the files (as pyarrow describes them) and the folders' paths in a folder."""
        selector = arrow_files.FileSelector(self._full(folder), allow_not_found=True)
        with self._mapped(folder):
            try:
                infos = self.filesystem.get_file_info(selector)
            except OSError:
                if folder and self.stat(folder) is not None:  # a file holds no files
                    return [], []
                raise
        files = [
            info
            for info in infos
            if info.type == arrow_files.FileType.File
            and not info.base_name.endswith(TEMPORARY_SUFFIX)
        ]
        kind = arrow_files.FileType.Directory
        return files, [join(folder, info.base_name) for info in infos if info.type == kind]

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


def _file_stat(path: str, info: Any) -> FileStat:  # noqa: ANN401  (pyarrow is not typed)
    nanoseconds = info.mtime_ns
    modified = nanoseconds / 1e9 if nanoseconds is not None else None
    return FileStat(path, info.size, modified, f"{nanoseconds or 0:x}-{info.size:x}")
