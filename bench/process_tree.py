"""What a process and all its descendants use: processor seconds, and resident memory at its peak.

A JVM under Python and Python workers under the JVM count as one program.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(root: int) -> list[int]:
    """Return the process and everything below it."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for task in _tasks(pid):
            try:
                waiting += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
            except OSError:
                continue
    return found


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names alone, many times a second
    except OSError:
        return []


def processor_ticks() -> dict[int, int]:
    """Return the processor time of every process of this one's tree."""
    found = {}
    for pid in descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[pid] = int(fields[11]) + int(fields[12])
    return found


def seconds_between(before: dict[int, int], after: dict[int, int]) -> float:
    """Return the processor seconds between two looks; what ended in between counts for nothing."""
    return sum(ticks - before.get(pid, 0) for pid, ticks in after.items()) / _TICK


def resident_bytes(root: int) -> int:
    """Return the resident memory of the tree now."""
    total = 0
    for pid in descendants(root):
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
        except OSError:
            continue
    return total


class Peak:
    """The greatest resident memory that a watcher has seen."""

    bytes = 0


@contextmanager
def watched(every: float = 0.1) -> Iterator[Peak]:
    """Watch the memory of this process's tree while the block runs."""
    peak, stop, root = Peak(), threading.Event(), os.getpid()

    def watch() -> None:
        while not stop.wait(every):
            peak.bytes = max(peak.bytes, resident_bytes(root))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()
        peak.bytes = max(peak.bytes, resident_bytes(root))
