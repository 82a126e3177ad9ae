"""The storage port: the verbs that Lakewright needs from any file system or object store.

Paths are relative to the storage's root, with ``/`` between names and no leading slash; the
empty path is the root. A path that leaves the root (``..``, an absolute path, a symbolic link
that points outside) raises ``InvalidPath``.

Every verb can raise ``Unavailable`` (try again) and ``Denied`` (do not). Files that are still
being written show in no listing. A folder is there because files are: writing makes it, and
whether it stays when its last file goes is the store's own affair.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Protocol


@dataclass(frozen=True, slots=True)
class FileStat:
    """What a listing knows of one file.

    ``size`` is -1 where the listing was told not to ask; ``modified`` is seconds since the
    epoch, or None where the store does not say; ``version`` changes whenever the content does,
    and may also change, or not, when the same bytes are written again.
    """

    path: str
    size: int
    modified: float | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """The files directly inside one folder, as a walk finds them."""

    path: str
    names: Sequence[str]
    sizes: Sequence[int]


class Storage(Protocol):
    """Bytes by path below one root. Implementations can be pickled and used from threads."""

    @property
    def uri(self) -> str:
        """The root as a user writes it: a plain path for local files, a URI elsewhere."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """The settings with which ``open_storage(uri, options)`` opens the same storage again."""
        ...

    @property
    def can_create_atomically(self) -> bool:
        """Whether ``create`` and ``replace_if`` are atomic here; writers refuse where not."""
        ...

    def locate(self, path: str) -> str:
        """Return the full name of ``path`` under which other software finds it."""
        ...

    def read(self, path: str) -> bytes:
        """Return the whole file; ``NotFound`` where there is none."""
        ...

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``; shorter only at the end of the file."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Open for random access reading (seekable; pyarrow accepts it); the caller closes it."""
        ...

    def stat(self, path: str) -> FileStat | None:
        """Return size, time and version of a file; None where there is none."""
        ...

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        """Stream the files of a folder; an absent folder has none. Order is not promised.

        With ``stats=False`` a store that would have to ask for each file tells paths alone: size
        -1, no time, no version.
        """
        ...

    def folders(self, folder: str = "") -> Sequence[str]:
        """Return the paths of the folders directly inside ``folder``, sorted."""
        ...

    def walk(
        self, folder: str = "", *, sizes: bool = True, skip: frozenset[str] = frozenset()
    ) -> Iterator[Folder]:
        """Stream every folder below ``folder`` (itself included) that holds files, each once.

        Folders whose name is in ``skip`` are not entered. With ``sizes=False`` a store that
        would have to ask for each gives -1. The work is done in parallel where the store
        profits; memory holds the files of a few folders at a time and the names of folders
        still to be read, never the tree. Order is not promised.
        """
        ...

    def ensure_folder(self, path: str) -> None:
        """Make an empty folder, with those above it, where the store knows folders at all.

        Where a folder is no more than the names of its files, as in object stores, nothing
        happens. One that is there already is no error.
        """
        ...

    def create(self, path: str, data: bytes) -> bool:
        """Write a file only where nothing is yet; False when another writer was first.

        Atomic and durable: whoever sees the file sees all of it, and it survives a crash.
        ``CommitStateUnknown`` where the answer was lost and cannot be found out any more.
        """
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically; readers see the old bytes or the new."""
        ...

    def writer(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Stream a file of any length; closing it early is no harm.

        The file appears, whole, when the block ends, and takes the place of one that was there.
        A block that ends with an error leaves everything as it was.
        """
        ...

    def replace_if(self, path: str, data: bytes, version: str) -> bool:
        """Replace a file only while its version is still ``version``; False when it is not.

        An absent file has no version. ``CommitStateUnknown`` as with ``create``.
        """
        ...

    def move(self, source: str, target: str) -> None:
        """Move a file; ``NotFound`` without a source, ``AlreadyExists`` with a target."""
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files in batches; a path that is already gone is no error."""
        ...
