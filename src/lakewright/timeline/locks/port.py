"""The port of locks: who holds a table, and for how long."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LockStatus:
    """What a lock says of its holder.

    ``host`` and ``pid`` are None where other software holds it. ``age`` is the seconds since it
    was taken or last renewed, ``valid_for`` the seconds until it may be broken (None: never by
    time alone). ``alive`` is False when the holder's process has certainly ended.
    """

    kind: str
    place: str
    owner: str
    host: str | None
    pid: int | None
    age: float | None
    valid_for: float | None
    alive: bool

    def __str__(self) -> str:
        who = self.owner if self.pid is None else f"process {self.pid} of {self.host}"
        since = "" if self.age is None else f", taken or renewed {self.age:.0f} s ago"
        return f"{who}{since} ({self.place})"


class Lease(AbstractContextManager["Lease"], Protocol):
    """A lock that is held; leaving its block releases it."""

    @property
    def owner(self) -> str:
        """The name under which the lock is held."""
        ...

    def secure(self, seconds: float) -> None:
        """Make sure that the lock is ours for so many seconds more, renewing it if need be.

        ``Conflict`` when it has been lost.
        """
        ...

    def release(self) -> None:
        """Give the lock back; one that was lost meanwhile is left to its new holder."""
        ...


class TableLock(Protocol):
    """The lock of one table. Threads may share it: each acquiring is on its own."""

    def acquire(self, timeout: float | None = None) -> Lease:
        """Wait for the lock and take it; ``Unavailable``, naming the holder, when time is up.

        Without ``timeout`` the option ``hoodie.write.lock.wait_time_ms`` counts.
        """
        ...

    def describe(self) -> LockStatus | None:
        """Return who holds the lock now; None when nobody does."""
        ...
