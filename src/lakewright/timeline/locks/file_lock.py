"""Hudi's file-system lock: whoever creates the file ``lock`` holds the table.

Hudi's rules: the file is created exclusively, released by deleting it, broken when it was not
touched for ``hoodie.write.lock.filesystem.expire`` minutes. Added to them here:

* The file names its holder. One whose process has ended, on this machine, is broken at once.
* While the lock is held the file is touched again, so that it never looks forgotten to others.
* Writers of this machine first wait at a gate, ``flock`` on the folder ``.hoodie/.locks``, which
  opens by itself when its holder dies. Hudi deletes the lock file whenever a writer of its own
  closes, held or not: between our writers the gate still stands then.
"""

# flock and folder descriptors: pathlib offers neither.
import datetime as dt
import errno
import fcntl
import json
import logging
import os
import threading
import time
from contextlib import suppress
from types import TracebackType

from lakewright.model.errors import Conflict, Denied, LakewrightError, NotFound
from lakewright.model.logs import facts
from lakewright.storage.port import FileStat, Storage
from lakewright.timeline.locks.port import LockStatus
from lakewright.timeline.locks.waiting import wait_for
from lakewright.timeline.owner import Owner
from lakewright.timeline.pulse import Pulse
from lakewright.timeline.store_clock import store_time

log = logging.getLogger(__name__)

#: The folder of a local table that serves as the gate; nothing else is done to it.
GATE = ".hoodie/.locks"
#: Seconds between touches of a lock file that is held.
RENEWAL = 20.0
_RELEASES = 3

_NO_FLOCK = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL})
_LIVE: set[str] = set()
"""Tokens of the lock files that this process holds; one that is missing here was given up."""


class FileLock:
    """The lock file at ``path`` of ``storage``; ``gate`` is the table on a local path, or None."""

    def __init__(
        self, storage: Storage, path: str, *, wait: float, expire: float, gate: Storage | None
    ) -> None:
        self._storage = storage
        self._path = path
        self._wait = wait
        self._expire = expire
        self._gate = gate

    def acquire(self, timeout: float | None = None) -> "FileLease":
        """Wait for the gate, then for the file, and take both."""
        wait = self._wait if timeout is None else timeout
        deadline = time.monotonic() + wait
        gate = None if self._gate is None else self._enter(self._gate, wait)
        try:
            left = max(deadline - time.monotonic(), 0.0)
            owner = wait_for(self._attempt, self.describe, left)
        except BaseException:
            _leave(gate)
            raise
        return FileLease(self._storage, self._path, owner, gate)

    def describe(self) -> LockStatus | None:
        """Return who holds the lock file now."""
        stat = self._storage.stat(self._path)
        body = _read(self._storage, self._path)
        if stat is None or body is None:
            return None
        owner = _owner(body)
        age = None if stat.modified is None else time.time() - stat.modified
        valid = None if not self._expire or age is None else self._expire - age
        return LockStatus(
            "file",
            self._storage.locate(self._path),
            str(owner) if owner else _other(body),
            owner.host if owner else None,
            owner.pid if owner else None,
            age,
            valid,
            alive=not (owner and _given_up(owner)),
        )

    def _attempt(self) -> Owner | None:
        owner = Owner.here()
        body = _body(owner)
        _LIVE.add(owner.token)
        taken = False
        try:
            taken = self._create(body) or self._take_over(body)
        finally:
            if not taken:
                _LIVE.discard(owner.token)
        return owner if taken else None

    def _create(self, body: bytes) -> bool:
        try:
            return self._storage.create(self._path, body)
        except LakewrightError:
            if _read(self._storage, self._path) == body:  # the answer was lost; the file tells
                return True
            raise

    def _take_over(self, body: bytes) -> bool:
        """Put our name into a lock file whose holder is gone; of several who try one succeeds."""
        stat = self._storage.stat(self._path)
        status = self.describe()
        if stat is None or stat.version is None or status is None:
            return False
        if status.alive and not (self._has_expired(status.age) and self._is_old(stat)):
            return False
        log.warning("a lock without a living holder is broken", extra=facts(lock=str(status)))
        try:
            return self._storage.replace_if(self._path, body, stat.version)
        except LakewrightError:
            if _read(self._storage, self._path) == body:  # the answer was lost; the file tells
                return True
            raise

    def _has_expired(self, age: float | None) -> bool:
        return bool(self._expire) and age is not None and age > self._expire

    def _is_old(self, stat: FileStat) -> bool:
        """Say whether the file has expired by the clock that dated it, too."""
        return stat.modified is not None and self._has_expired(
            store_time(self._storage) - stat.modified
        )

    def _enter(self, table: Storage, timeout: float) -> int:
        table.ensure_folder(GATE)
        try:
            descriptor = os.open(table.locate(GATE), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as cause:
            raise Denied(
                f"The folder {table.locate(GATE)} cannot be opened: {cause.strerror}.",
                next_step="Check its owner and permissions.",
            ) from cause
        try:
            return wait_for(lambda: _flocked(descriptor), self.describe, timeout, longest=0.05)
        except BaseException:
            os.close(descriptor)
            raise


def _flocked(descriptor: int) -> int | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError as cause:
        if cause.errno not in _NO_FLOCK:
            raise
    return descriptor


def _leave(gate: int | None) -> None:
    if gate is not None:
        # Unlocked by name: a forked process may hold the descriptor too.
        with suppress(OSError):
            fcntl.flock(gate, fcntl.LOCK_UN)
        os.close(gate)


class FileLease:
    """A lock file that is held."""

    def __init__(self, storage: Storage, path: str, owner: Owner, gate: int | None) -> None:
        self._storage = storage
        self._path = path
        self._owner = owner
        self._gate = gate
        self._released = threading.Lock()
        self._pulse = Pulse("lock", self._touch, RENEWAL)

    @property
    def owner(self) -> str:
        """The name under which the lock is held."""
        return str(self._owner)

    def secure(self, seconds: float) -> None:
        """Make sure that the file is still ours; while it is touched it does not expire."""
        if not self._is_ours():
            raise Conflict(
                f"The lock {self._storage.locate(self._path)} was taken away from this writer.",
                next_step="Try the write again; see what deletes that file.",
                owner=self.owner,
            )

    def release(self) -> None:
        """Delete the file if it is still ours, and open the gate; troubles are logged."""
        if not self._released.acquire(blocking=False):
            return
        try:
            self._pulse.stop()
            for attempt in range(_RELEASES):
                try:
                    if self._is_ours():
                        self._storage.delete([self._path])
                    return
                except LakewrightError as error:
                    log.warning(
                        "the lock could not be released",
                        extra=facts(lock=self._path, attempt=attempt, error=str(error)),
                    )
        finally:
            _LIVE.discard(self._owner.token)
            _leave(self._gate)

    def _is_ours(self) -> bool:
        body = _read(self._storage, self._path)
        return body is not None and _owner(body) == self._owner

    def _touch(self) -> None:
        stat = self._storage.stat(self._path)
        if stat is not None and stat.version is not None and self._is_ours():
            self._storage.replace_if(self._path, _body(self._owner), stat.version)

    def __enter__(self) -> "FileLease":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _given_up(owner: Owner) -> bool:
    return owner.is_dead or (owner.is_here and owner.token not in _LIVE)


def _body(owner: Owner) -> bytes:
    """Write the body as Hudi does, with the holder as one more entry."""
    moment = dt.datetime.now().astimezone()
    return json.dumps(
        {
            "lockCreateTime": moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment:%f}"[:3],
            "lockThreadName": threading.current_thread().name,
            "lockStacksInfo": [],
            "owner": str(owner),
        },
        indent=2,
        separators=(",", " : "),
    ).encode()


def _read(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path)
    except NotFound:
        return None


def _entries(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body)
    except ValueError:  # Hudi creates the file first and writes into it then
        return {}
    return found if isinstance(found, dict) else {}


def _owner(body: bytes) -> Owner | None:
    return Owner.parse(str(_entries(body).get("owner", "")))


def _other(body: bytes) -> str:
    thread = _entries(body).get("lockThreadName")
    return f"other software, thread {thread}" if thread else "other software"
