"""Running a scan in this process: tasks in threads, a little ahead of whoever takes the rows."""

import os
import queue
import threading
from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa

from lakewright.actions.scan import ScanPlan
from lakewright.actions.tasks.read import Task, task_runner
from lakewright.model.files import ReadingMode
from lakewright.model.options import declare, parse_count

THREADS = declare(
    "lakewright.read.threads",
    parse_count,
    0,
    doc="File slices that are read at the same time without Spark; 0 stands for one more than "
    "there are processors.",
    since="0.1",
    allowed="a whole number, 0 or more",
)
#: Batches that wait for their reader, per thread. They bound memory, so they are few.
WAITING = 2


def scan_batches(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a plan as Arrow batches, in bounded memory.

    Changes come in order of effect; the order of other rows is not promised. Leaving the
    iterator early stops the work. The first error of any task is raised here.
    """
    # One thread more than processors: some thread always waits for a file or the interpreter.
    threads = min(THREADS.read(plan.options) or (os.cpu_count() or 1) + 1, len(plan.tasks))
    if threads <= 1 or plan.mode is ReadingMode.CDC:
        return _in_turn(plan)
    return _in_threads(plan, threads)


def _in_turn(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    run = task_runner(plan.spec)
    for task in plan.tasks:
        yield from run(task)


def _in_threads(plan: ScanPlan, threads: int) -> Iterator[pa.RecordBatch]:
    crew = _Crew(plan, threads)
    with closing(crew):
        yield from crew.batches()


class _Done:
    """What a worker says last."""


class _Crew:
    """Threads that take tasks off one list and put batches into one bounded queue."""

    def __init__(self, plan: ScanPlan, threads: int) -> None:
        self._run = task_runner(plan.spec)
        self._tasks = iter(plan.tasks)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._made: queue.Queue[pa.RecordBatch | BaseException | _Done] = queue.Queue(
            threads * WAITING
        )
        self._threads = [
            threading.Thread(target=self._work, name=f"scan-{n}", daemon=True)
            for n in range(threads)
        ]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Start the work and stream what it makes."""
        for thread in self._threads:
            thread.start()
        working = len(self._threads)
        while working:
            item = self._made.get()
            if isinstance(item, _Done):
                working -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item

    def close(self) -> None:
        """Stop the work and wait until every thread has let go of its files."""
        self._stop.set()
        while any(thread.is_alive() for thread in self._threads):
            try:
                self._made.get(timeout=0.05)
            except queue.Empty:
                continue

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                for batch in self._run(task):
                    self._made.put(batch)
                    if self._stop.is_set():
                        return
        except BaseException as error:  # noqa: BLE001 - whoever takes the rows raises it again
            self._made.put(error)
        finally:
            self._made.put(_Done())

    def _next(self) -> Task | None:
        with self._lock:
            return None if self._stop.is_set() else next(self._tasks, None)
