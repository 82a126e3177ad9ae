"""Markers: names of the files that a write is about to make, in Hudi's own form.

One empty file ``.hoodie/.temp/<instant>/<partition>/<file>.marker.<kind>`` lies there before the
file it names does. Whoever takes a write back, this software or Hudi, deletes the files that its
markers name; a file without one outlives the rollback and turns visible when the timeline has
moved past its instant. Hudi's timeline server gathers markers in ``MARKERS<n>`` instead, one a
line; those are read too.
"""

import os
import re
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from lakewright.model.errors import Corrupt, NotFound
from lakewright.storage.fleeting import fleeting
from lakewright.storage.paths import check_file
from lakewright.storage.port import Storage

TEMPORARY = ".hoodie/.temp"

_NAME = re.compile(r"(.+)\.marker\.(CREATE|MERGE|APPEND)", re.DOTALL).fullmatch
_GATHERED = re.compile(r"MARKERS[0-9]+").fullmatch


class MarkerKind(StrEnum):
    """How a file comes into being; the names are Hudi's.

    A base file of a new file group is CREATE, one that replaces another MERGE. A log file is
    CREATE in layout 2 and APPEND in layout 1, where Hudi refuses anything else.
    """

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    """A file that a write was about to make; ``path`` is relative to the table."""

    path: str
    kind: MarkerKind


class Markers:
    """The markers of one write."""

    def __init__(self, storage: Storage, instant: str) -> None:
        self._storage = fleeting(storage)
        self.folder = f"{TEMPORARY}/{instant}"

    def create(self, path: str, kind: MarkerKind) -> None:
        """Announce a file; one that is announced already stays so."""
        self._storage.write(f"{self.folder}/{check_file(path)}.marker.{kind}", b"")

    def names(self) -> Iterator[Marker]:
        """Stream the markers, in no particular order."""
        return (marker for marker, _ in self._found())

    def any(self) -> bool:
        """Say whether anything was announced."""
        return next(self._found(), None) is not None

    def strays(self, written: Container[str]) -> Iterator[str]:
        """Stream the paths of announced files that are not among ``written``."""
        return (marker.path for marker in self.names() if marker.path not in written)

    def clear(self) -> None:
        """Remove the markers; the files that they name must be settled by then."""
        self._storage.delete(f.path for f in self._storage.list(self.folder, recursive=True))
        if self._storage.uri.startswith("/"):
            _remove_empty(self._storage.locate(self.folder))

    def _found(self) -> Iterator[tuple[Marker, str]]:
        for file in self._storage.list(self.folder, recursive=True):
            name = file.path.removeprefix(f"{self.folder}/")
            if _GATHERED(name):
                for line in self._lines(file.path):
                    yield _marker(line, file.path), file.path
            elif match := _NAME(name):
                yield Marker(match[1], MarkerKind(match[2])), file.path

    def _lines(self, path: str) -> Iterator[str]:
        try:
            text = self._storage.read(path).decode("utf-8", "surrogateescape")
        except NotFound:
            return  # another writer has just taken the write back
        yield from filter(None, text.split("\n"))


def _remove_empty(folder: str) -> None:
    """Remove a local folder and those in it, which would gather there by the thousand."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # a task that was given up may just have put a marker there
            os.rmdir(path)  # noqa: PTH106  (a text, as os.walk gives it)


def _marker(line: str, path: str) -> Marker:
    match = _NAME(line.strip("\r"))
    if match is None:
        raise Corrupt(
            f"{path}: {line!r} is no marker.",
            next_step="Nothing was deleted; see what wrote that file.",
            path=path,
        )
    return Marker(match[1], MarkerKind(match[2]))
