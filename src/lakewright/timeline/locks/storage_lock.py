"""Hudi's storage lock: ``.hoodie/.locks/table_lock.json``, changed by conditional writes alone.

The file says until when the lock holds, and for whom. It is created or, once it has run out or
was given back, replaced on the condition that nobody else did so meanwhile; giving it back marks
it as expired; it is never deleted. While our own lease certainly holds nobody may touch the file,
so that renewing it and giving it back need no condition.

Times in the file are those of its holder's clock. Who finds a lease that has run out by its own
clock asks the store's before it takes the lock: by that one the file must be older than a lease
lasts, so that nobody is robbed whose clock is late, or by somebody whose clock is ahead.
"""

import json
import logging
import threading
import time
from dataclasses import dataclass
from types import TracebackType

from lakewright.model.errors import Conflict, LakewrightError, NotFound
from lakewright.model.logs import facts
from lakewright.storage.port import FileStat, Storage
from lakewright.timeline.locks.port import LockStatus
from lakewright.timeline.locks.waiting import wait_for
from lakewright.timeline.owner import Owner
from lakewright.timeline.pulse import Pulse
from lakewright.timeline.store_clock import store_time

log = logging.getLogger(__name__)

PATH = ".hoodie/.locks/table_lock.json"
#: Seconds by which the clocks of two writers may differ.
DRIFT = 1.0
#: Seconds after which a lease that nobody renewed is over, whatever it says: who held it had a
#: clock that was far ahead, and is gone. Holders renew theirs every half minute.
FORGOTTEN = 3600.0
_RELEASES = 3
_LIVE: set[str] = set()
"""Tokens of the leases that this process holds; one that is missing here was given up."""


@dataclass(frozen=True, slots=True)
class LockFile:
    """The content of the file; times are seconds since the epoch."""

    owner: str
    valid_until: float
    expired: bool = False

    @staticmethod
    def parse(data: bytes) -> "LockFile":
        """Read the file; one that cannot be read holds nobody."""
        try:
            found = json.loads(data)
            until = float(found["validUntil"]) / 1000
            return LockFile(str(found["owner"]), until, found["expired"] is True)
        except (ValueError, KeyError, TypeError):
            return LockFile("unknown", 0.0, expired=True)

    def encode(self) -> bytes:
        """Write the file as Hudi does."""
        until = int(self.valid_until * 1000)
        fields = {"expired": self.expired, "validUntil": until, "owner": self.owner}
        return json.dumps(fields, separators=(",", ":")).encode()

    @property
    def is_alive(self) -> bool:
        """Whether the holder's process may still run."""
        owner = Owner.parse(self.owner)
        if owner is None:
            return True
        given_up = owner.is_here and owner.token not in _LIVE
        return not (owner.is_dead or given_up)

    @property
    def is_held(self) -> bool:
        """Whether nobody else may take the lock now."""
        return not self.expired and time.time() <= self.valid_until + DRIFT and self.is_alive


class StorageLock:
    """The lock file of the table in ``storage``, to which a write takes ``request`` seconds."""

    def __init__(
        self,
        storage: Storage,
        *,
        wait: float,
        validity: float,
        renewal: float,
        request: float = 0.0,
    ) -> None:
        self._storage = storage
        self._wait = wait
        self._validity = validity
        self._request = request
        self._renewal = min(renewal, validity / 3)

    def acquire(self, timeout: float | None = None) -> "StorageLease":
        """Wait for the lock and take it."""
        wait = self._wait if timeout is None else timeout
        return wait_for(self._attempt, self.describe, wait, first=0.02)

    def describe(self) -> LockStatus | None:
        """Return who holds the lock now."""
        stat = self._storage.stat(PATH)
        found = _read(self._storage)
        if found is None or not (found.is_held or not found.is_alive) or found.expired:
            return None
        owner = Owner.parse(found.owner)
        age = None if stat is None or stat.modified is None else time.time() - stat.modified
        return LockStatus(
            "storage",
            self._storage.locate(PATH),
            found.owner,
            owner.host if owner else None,
            owner.pid if owner else None,
            age,
            found.valid_until - time.time(),
            alive=found.is_alive,
        )

    def _attempt(self) -> "StorageLease | None":
        stat = self._storage.stat(PATH)
        found = None if stat is None else _read(self._storage)
        if found is not None and self._is_held(found, stat):
            return None
        if found is not None and not found.expired:
            log.warning("a lock without a living holder is broken", extra=facts(owner=found.owner))
        owner = Owner.here()
        since = time.monotonic()
        mine = LockFile(str(owner), time.time() + self._validity)
        _LIVE.add(owner.token)
        taken = False
        try:
            taken = self._put(mine, None if stat is None else stat.version)
        finally:
            if not taken:
                _LIVE.discard(owner.token)
        if not taken:
            return None
        return StorageLease(
            self._storage, mine, self._validity, self._renewal, self._request, since
        )

    def _is_held(self, found: LockFile, stat: FileStat | None) -> bool:
        """Say whether somebody holds the lock, by our clock or by the store's."""
        renewed = None if stat is None else stat.modified
        if renewed is None or found.expired or not found.is_alive:
            return found.is_held
        longest = max(FORGOTTEN, self._validity)
        # A file of the future is dated by a clock that is ahead of ours: only that one knows.
        if found.is_held and -DRIFT <= time.time() - renewed < longest:
            return True
        now = store_time(self._storage)
        over = now > found.valid_until + DRIFT and now - renewed >= self._validity
        return not (over or now - renewed >= longest)

    def _put(self, mine: LockFile, version: str | None) -> bool:
        try:
            if version is None:
                return self._storage.create(PATH, mine.encode())
            return self._storage.replace_if(PATH, mine.encode(), version)
        except LakewrightError:
            # The answer was lost: the file itself tells. Nothing is taken twice, because the
            # token in it is new for each attempt.
            if _read(self._storage) == mine:
                return True
            raise


class StorageLease:
    """A storage lock that is held."""

    def __init__(
        self,
        storage: Storage,
        mine: LockFile,
        validity: float,
        renewal: float,
        request: float,
        since: float,
    ) -> None:
        self._storage = storage
        self._mine = mine
        self._validity = validity
        self._request = request
        self._lock = threading.Lock()
        self._released = False
        self._since = since
        self._pulse = Pulse("lock", self._renew, renewal)

    @property
    def owner(self) -> str:
        """The name under which the lock is held."""
        return self._mine.owner

    def secure(self, seconds: float) -> None:
        """Make sure that the lease outlasts so many seconds, renewing it where it does not."""
        if self._left() < seconds:
            self._renew()
        if self._left() < seconds:
            raise Conflict(
                f"The lock {self._storage.locate(PATH)} holds for {self._left():.0f} s more, but "
                f"a request may take {seconds:.0f} s.",
                next_step="Raise hoodie.write.lock.storage.validity.timeout.secs.",
                owner=self.owner,
            )

    def release(self) -> None:
        """Mark the lock as expired if it is still ours; troubles are logged."""
        with self._lock:
            if self._released:
                return
            self._released = True
        try:
            self._pulse.stop()
            for attempt in range(_RELEASES):
                try:
                    self._write(LockFile(self._mine.owner, self._mine.valid_until, expired=True))
                    return
                except LakewrightError as error:
                    log.warning(
                        "the lock could not be released",
                        extra=facts(lock=PATH, attempt=attempt, error=str(error)),
                    )
        finally:
            owner = Owner.parse(self._mine.owner)
            if owner is not None:
                _LIVE.discard(owner.token)

    def _left(self) -> float:
        # A clock that is set back while the lease is held does not make it last longer.
        passed = time.monotonic() - self._since
        return min(self._mine.valid_until - time.time(), self._validity - passed) - DRIFT

    def _renew(self) -> None:
        with self._lock:
            if not self._released:
                since = time.monotonic()
                renewed = LockFile(self._mine.owner, time.time() + self._validity)
                if self._write(renewed):
                    self._mine, self._since = renewed, since

    def _write(self, content: LockFile) -> bool:
        """Write the file if it is still ours; False when it was lost."""
        if self._left() > self._request + DRIFT:
            self._storage.write(PATH, content.encode())
            return True
        stat = self._storage.stat(PATH)
        found = _read(self._storage)
        if stat is None or stat.version is None or found is None or found.owner != self.owner:
            return False
        return self._storage.replace_if(PATH, content.encode(), stat.version)

    def __enter__(self) -> "StorageLease":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _read(storage: Storage) -> LockFile | None:
    try:
        return LockFile.parse(storage.read(PATH))
    except NotFound:
        return None
