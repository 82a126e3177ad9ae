"""Waiting for a lock: short pauses that grow and differ, and an error that names the holder."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from lakewright.model.errors import Unavailable
from lakewright.timeline.locks.port import LockStatus

T = TypeVar("T")


def wait_for(
    attempt: Callable[[], T | None],
    describe: Callable[[], LockStatus | None],
    timeout: float,
    *,
    first: float = 0.002,
    longest: float = 1.0,
) -> T:
    """Return what ``attempt`` gives once it is not None, trying again until time is up."""
    deadline = time.monotonic() + timeout
    pause = first
    while True:
        taken = attempt()
        if taken is not None:
            return taken
        left = deadline - time.monotonic()
        if left <= 0:
            holder = describe()
            raise Unavailable(
                f"The table's lock was not free within {timeout:.0f} s: it is held by "
                f"{holder or 'another writer, which has just released it'}.",
                next_step="Try again later, or raise hoodie.write.lock.wait_time_ms.",
                holder=None if holder is None else holder.owner,
            )
        time.sleep(min(left, pause * random.uniform(0.5, 1.5)))
        pause = min(pause * 1.5, longest)


def names_holder(error: Unavailable) -> bool:
    """Say whether a lock was not to be had because of its holder, and not of storage."""
    return "holder" in error.facts
