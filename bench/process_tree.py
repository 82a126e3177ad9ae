"""What a process and all its descendants use: processor seconds, and resident memory at its peak.

A JVM under Python and Python workers under the JVM count as one program.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


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


class Used:
    """The processor time that a counter has seen."""

    seconds = 0.0


@contextmanager
def counted(every: float = 0.2) -> Iterator[Used]:
    """Count the processor seconds of this process's tree while the block runs.

    The daemon of Spark's Python workers does not wait for those that end, and the system keeps
    no account of their time: what each process used is looked at again and again, and the last
    look counts. A process that ends loses what it used since, one that lives for less than that
    may be missed.
    """
    before = _ticks()
    seen, used, stop = dict(before), Used(), threading.Event()

    def watch() -> None:
        while not stop.wait(every):
            seen.update(_ticks())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield used
    finally:
        stop.set()
        thread.join()
        seen.update(_ticks())
        used.seconds = sum(ticks - before.get(who, 0) for who, ticks in seen.items()) / _TICK


def _ticks() -> dict[tuple[int, str], int]:
    """Return the processor time of every process of the tree, by its number and its start."""
    found = {}
    for pid in descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[pid, fields[19]] = int(fields[11]) + int(fields[12])
    return found


def resident_bytes() -> int:
    """Return the resident memory of the tree now; a page that processes share counts once."""
    return sum(map(_resident, descendants(os.getpid())))


def python_bytes() -> int:
    """Return the resident memory of the Python processes of the tree now."""
    return sum(_resident(pid) for pid in descendants(os.getpid()) if "python" in _program(pid))


def _resident(pid: int) -> int:
    """Return what a process holds; of shared pages, as forked workers have them, its part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


class Peak:
    """The greatest memory that a watcher has seen."""

    bytes = 0


@contextmanager
def watched(look: Callable[[], int], every: float) -> Iterator[Peak]:
    """Look at memory every so many seconds while the block runs, and once at its end."""
    peak, stop = Peak(), threading.Event()

    def watch() -> None:
        while not stop.wait(every):
            peak.bytes = max(peak.bytes, look())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()
        peak.bytes = max(peak.bytes, look())
