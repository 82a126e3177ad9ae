"""A storage that counts its calls and fails where a test wants it to.

    faulty = FaultyStorage(storage, [Fault("create", at=2, after=True)])

fails the third ``create`` after it was done, as a network does that loses an answer.
``every_call(run)`` lists the calls that ``run`` makes, so that a test can fail each in turn::

    for call in every_call(storage_of_a_copy, commit):
        for after in (False, True):
            ...
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TypeVar

from lakewright.model.errors import Unavailable
from lakewright.storage.port import FileStat, Folder, Storage

T = TypeVar("T")

WRITING = frozenset({"create", "write", "writer", "replace_if", "move", "delete"})


class Crash(BaseException):
    """The process is gone: no handler of errors runs, as none would after a power cut."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was made: the verb, its first path, and how many such verbs came before."""

    verb: str
    path: str
    at: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong: the ``at``-th call of ``verb`` (of any verb, counting all, if None).

    ``after`` lets the call be done first. ``error`` is what the caller sees; with ``Crash`` every
    later call fails too. ``path`` narrows it to calls whose path contains that text, which are
    then counted by themselves.
    """

    verb: str | None = None
    at: int = 0
    after: bool = False
    path: str = ""
    error: Callable[[], BaseException] = lambda: Unavailable("The storage was told to fail.")


@dataclass(slots=True)
class FaultyStorage:
    """Passes every verb on to ``inner``, except where a fault stands in the way."""

    inner: Storage
    faults: Sequence[Fault] = ()
    calls: list[Call] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    crashed: bool = False
    _hits: Counter[int] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def options(self) -> Mapping[str, str]:
        return self.inner.options

    @property
    def can_create_atomically(self) -> bool:
        return self.inner.can_create_atomically

    def locate(self, path: str) -> str:
        return self.inner.locate(path)

    def read(self, path: str) -> bytes:
        return self._call("read", path, lambda: self.inner.read(path))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._call("read_range", path, lambda: self.inner.read_range(path, offset, length))

    def open(self, path: str) -> IO[bytes]:
        return self._call("open", path, lambda: self.inner.open(path))

    def stat(self, path: str) -> FileStat | None:
        return self._call("stat", path, lambda: self.inner.stat(path))

    def list(
        self, folder: str = "", *, recursive: bool = False, stats: bool = True
    ) -> Iterator[FileStat]:
        return self._call(
            "list", folder, lambda: self.inner.list(folder, recursive=recursive, stats=stats)
        )

    def folders(self, folder: str = "") -> Sequence[str]:
        return self._call("folders", folder, lambda: self.inner.folders(folder))

    def walk(
        self, folder: str = "", *, sizes: bool = True, skip: frozenset[str] = frozenset()
    ) -> Iterator[Folder]:
        return self._call("walk", folder, lambda: self.inner.walk(folder, sizes=sizes, skip=skip))

    def ensure_folder(self, path: str) -> None:
        self._call("ensure_folder", path, lambda: self.inner.ensure_folder(path))

    def create(self, path: str, data: bytes) -> bool:
        return self._call("create", path, lambda: self.inner.create(path, data))

    def write(self, path: str, data: bytes) -> None:
        return self._call("write", path, lambda: self.inner.write(path, data))

    @contextmanager
    def writer(self, path: str) -> Iterator[IO[bytes]]:
        fault = self._begin("writer", path)
        if fault is not None and not fault.after:
            raise self._failure(fault)
        with self.inner.writer(path) as file:
            yield file
        if fault is not None:
            raise self._failure(fault)

    def replace_if(self, path: str, data: bytes, version: str) -> bool:
        return self._call("replace_if", path, lambda: self.inner.replace_if(path, data, version))

    def move(self, source: str, target: str) -> None:
        return self._call("move", source, lambda: self.inner.move(source, target))

    def delete(self, paths: Iterable[str]) -> None:
        gone = tuple(paths)
        first = gone[0] if gone else ""
        return self._call("delete", first, lambda: self.inner.delete(gone))

    def _call(self, verb: str, path: str, do: Callable[[], T]) -> T:
        fault = self._begin(verb, path)
        if fault is None:
            return do()
        if fault.after:
            do()
        raise self._failure(fault)

    def _begin(self, verb: str, path: str) -> Fault | None:
        with self._lock:
            if self.crashed:
                raise Crash
            self.calls.append(Call(verb, path, self.counts[verb]))
            self.counts[verb] += 1
            return self._fault(verb, path)

    def _failure(self, fault: Fault) -> BaseException:
        error = fault.error()
        self.crashed = isinstance(error, Crash)
        return error

    def _fault(self, verb: str, path: str) -> Fault | None:
        found = None
        for number, fault in enumerate(self.faults):
            if fault.verb in {None, verb} and fault.path in path:
                if self._hits[number] == fault.at:
                    found = fault
                self._hits[number] += 1
        return found


@dataclass(slots=True)
class Outage(FaultyStorage):
    """From call ``start`` on ``length`` calls fail (None: all), until it is ``over``.

    ``done`` lets the calls be done, and only their answers are lost.
    """

    start: int = -1
    length: int | None = None
    made: int = 0
    done: bool = False
    over: bool = False

    def _begin(self, verb: str, path: str) -> Fault | None:
        with self._lock:
            if self.start < 0 or self.over:
                return None
            self.made += 1
            lost = self.made - self.start
            fails = lost > 0 and (self.length is None or lost <= self.length)
            return Fault(after=self.done) if fails else None


def every_call(
    storage: Storage, run: Callable[[Storage], object], verbs: frozenset[str] = WRITING
) -> list[Call]:
    """Run once without faults and return the calls of these verbs, in order."""
    counting = FaultyStorage(storage)
    run(counting)
    return [call for call in counting.calls if call.verb in verbs]
