"""Listing an S3 bucket: pages streamed, large trees listed in several key ranges at once.

A tree that fits one page of a flat listing costs that one request. A larger one is opened level
by level until there are enough folders to share out; then each thread lists one run of
neighbouring folders as a flat range of keys, so that a table of many small partitions costs one
request per thousand files, not one per partition.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from lakewright.storage.paths import split
from lakewright.storage.port import FileStat, Folder
from lakewright.storage.s3_client import Answer, Client, mapped
from lakewright.storage.streams import map_bounded, merge_streams

_DEPTH = 3
_RUNS_PER_THREAD = 4


class _Level(NamedTuple):
    """One folder as a listing with a delimiter shows it; paths are relative to the root."""

    path: str
    files: list[FileStat]
    folders: list[str]


@dataclass(frozen=True, slots=True)
class Listing:
    """What can be listed below ``prefix`` (empty, or with a slash at its end) of a bucket."""

    client: Client
    bucket: str
    prefix: str
    uri: str
    threads: int

    def files(self, folder: str, *, recursive: bool) -> Iterator[FileStat]:
        """Stream the files of a folder."""
        for page in self._pages(folder, "" if recursive else "/"):
            yield from self._files(page)

    def folders(self, folder: str) -> Sequence[str]:
        """Return the folders directly inside ``folder``, sorted."""
        pages = self._pages(folder, "/")
        return sorted(path for page in pages for path in self._folders(page))

    def walk(self, folder: str, skip: frozenset[str]) -> Iterator[Folder]:
        """Stream every folder below ``folder``, each once, except those named in ``skip``."""
        first = next(self._pages(folder, ""))
        if not first.get("IsTruncated"):
            yield from group(self._files(first), folder, skip)
            return
        level = [folder]
        for _ in range(_DEPTH):
            opened = list(map_bounded(self._level, level, threads=self.threads))
            yield from (_as_folder(found.path, found.files) for found in opened if found.files)
            inside = [path for found in opened for path in found.folders]
            level = [path for path in inside if split(path)[1] not in skip]
            if len(level) >= self.threads:
                break
        runs = _runs(inside, skip, self.threads * _RUNS_PER_THREAD)
        yield from merge_streams(
            [partial(self._run, folder, run, skip) for run in runs], threads=self.threads
        )

    def _run(self, folder: str, run: Sequence[str], skip: frozenset[str]) -> Iterator[Folder]:
        """List neighbouring folders as one range of keys."""
        if len(run) == 1:
            return group(self.files(run[0], recursive=True), folder, skip)
        start = f"{self.prefix}{run[0]}/"
        last = f"{run[-1]}/"
        wanted = frozenset(run)
        depth = run[0].count("/") + 1

        def inside() -> Iterator[FileStat]:
            for page in self._pages(folder, "", start):
                for file in self._files(page):
                    if not file.path.startswith(last) and file.path > last:
                        return
                    outer = file.path.split("/", depth)
                    # A file may bear the name of a folder: that one lies beside the run.
                    if len(outer) > depth and "/".join(outer[:depth]) in wanted:
                        yield file

        return group(inside(), folder, skip)

    def _level(self, folder: str) -> _Level:
        found = _Level(folder, [], [])
        for page in self._pages(folder, "/"):
            found.files.extend(self._files(page))
            found.folders.extend(self._folders(page))
        return found

    def _pages(self, folder: str, delimiter: str, after: str = "") -> Iterator[Answer]:
        request = {
            "Bucket": self.bucket,
            "Prefix": f"{self.prefix}{folder}/" if folder else self.prefix,
            "Delimiter": delimiter,
            "StartAfter": after,
        }
        pages = iter(
            self.client.get_paginator("list_objects_v2").paginate(
                **{name: value for name, value in request.items() if value}
            )
        )
        while True:
            with mapped(folder, self.uri):
                page = next(pages, None)
            if page is None:
                return
            yield page

    def _files(self, page: Answer) -> Iterator[FileStat]:
        skipped = len(self.prefix)
        for entry in page.get("Contents", ()):
            path = entry["Key"][skipped:]
            if _has_a_path(path):
                modified = entry["LastModified"].timestamp()
                yield FileStat(path, entry["Size"], modified, entry.get("ETag"))

    def _folders(self, page: Answer) -> Iterator[str]:
        skipped = len(self.prefix)
        for entry in page.get("CommonPrefixes", ()):
            path = entry["Prefix"][skipped:].removesuffix("/")
            if _has_a_path(path):
                yield path


def group(files: Iterable[FileStat], start: str, skip: frozenset[str]) -> Iterator[Folder]:
    """Gather files, sorted by path as stores sort them, into folders that each appear once.

    The files of a folder can have a subfolder's files between them, so the folders around the
    current file are held open until the listing has left them.
    """
    open_folders: list[tuple[str, list[FileStat]]] = []
    folder, wanted = "", False
    for file in files:
        parent, _ = split(file.path)
        if parent != folder or not open_folders:
            folder = parent
            inner = folder[len(start) :].split("/") if skip else ()
            wanted = skip.isdisjoint(inner)
            while open_folders and not _holds(open_folders[-1][0], folder):
                path, gathered = open_folders.pop()
                yield _as_folder(path, gathered)
            if wanted and (not open_folders or open_folders[-1][0] != folder):
                open_folders.append((folder, []))
        if wanted:
            open_folders[-1][1].append(file)
    while open_folders:
        path, gathered = open_folders.pop()
        yield _as_folder(path, gathered)


def _holds(outer: str, inner: str) -> bool:
    return not outer or outer == inner or inner.startswith(f"{outer}/")


def _as_folder(path: str, files: Sequence[FileStat]) -> Folder:
    names = [split(file.path)[1] for file in files]
    return Folder(path, names, [file.size for file in files])


def _has_a_path(path: str) -> bool:
    """Say whether the port can name this key: no empty name, no ``.`` and no ``..``."""
    if not path or path[0] == "/" or path[-1] == "/" or "//" in path:
        return False
    return "." not in path or {".", ".."}.isdisjoint(path.split("/"))


def _runs(folders: Iterable[str], skip: frozenset[str], wanted: int) -> list[list[str]]:
    """Cut sorted folders into runs of about equal length, also wherever one is to be skipped."""
    ordered = sorted(folders, key=lambda path: f"{path}/")
    length = max(1, -(-len(ordered) // wanted))
    runs: list[list[str]] = [[]]
    for path in ordered:
        if split(path)[1] in skip:
            runs.append([])
            continue
        if len(runs[-1]) == length:
            runs.append([])
        runs[-1].append(path)
    return [run for run in runs if run]
