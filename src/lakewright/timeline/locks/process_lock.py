"""A lock between the threads of this process, for tables that no other process can see."""

import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

from lakewright.model.errors import Conflict
from lakewright.timeline.locks.port import LockStatus
from lakewright.timeline.locks.waiting import wait_for
from lakewright.timeline.owner import Owner


@dataclass(slots=True)
class _Held:
    """One table's lock, shared by all who open it in this process."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    owner: Owner | None = None
    since: float = 0.0


_HELD: dict[str, _Held] = {}
_HELD_LOCK = threading.Lock()


class ProcessLock:
    """The lock of the table at ``place`` within this process."""

    def __init__(self, place: str, wait: float) -> None:
        self._place = place
        self._wait = wait
        with _HELD_LOCK:
            self._held = _HELD.setdefault(place, _Held())

    def acquire(self, timeout: float | None = None) -> "ProcessLease":
        """Wait for the lock and take it."""
        wait = self._wait if timeout is None else timeout
        return wait_for(self._attempt, self.describe, wait)

    def describe(self) -> LockStatus | None:
        """Return who holds the lock now."""
        owner, since = self._held.owner, self._held.since
        if owner is None:
            return None
        age = time.monotonic() - since
        return LockStatus(
            "process", self._place, str(owner), owner.host, owner.pid, age, None, alive=True
        )

    def _attempt(self) -> "ProcessLease | None":
        if not self._held.lock.acquire(blocking=False):
            return None
        self._held.owner, self._held.since = Owner.here(), time.monotonic()
        return ProcessLease(self._held, self._held.owner)


class ProcessLease:
    """A process lock that is held: nobody can take it away."""

    def __init__(self, held: _Held, owner: Owner) -> None:
        self._held = held
        self._owner = owner

    @property
    def owner(self) -> str:
        """The name under which the lock is held."""
        return str(self._owner)

    def secure(self, seconds: float) -> None:
        """Check that the lock was not released."""
        if self._held.owner != self._owner:
            raise Conflict(
                "The lock was released already.", next_step="Acquire it anew.", owner=self.owner
            )

    def release(self) -> None:
        """Give the lock back."""
        if self._held.owner == self._owner:
            self._held.owner = None
            self._held.lock.release()

    def __enter__(self) -> "ProcessLease":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
