"""Work on many folders or batches at once, streamed: bounded memory, stopped by closing."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def walk_tree(
    start: A, scan: Callable[[A], tuple[B, Sequence[A]]], *, threads: int, batch: int = 1
) -> Iterator[B]:
    """Yield what ``scan`` finds for ``start`` and for every child that it names, depth first.

    One thread does it while the tree is narrow; once more than ``batch`` children wait, up to
    ``threads`` threads each take ``batch`` of them at a time. At most twice as many batches as
    threads are finished and not yet yielded.
    """
    pending = [start]
    while pending and (threads < 2 or len(pending) <= batch):
        found, children = scan(pending.pop())
        pending.extend(children)
        yield found
    if not pending:
        return

    def scan_all(places: Sequence[A]) -> list[tuple[B, Sequence[A]]]:
        return [scan(place) for place in places]

    running: deque[Future[list[tuple[B, Sequence[A]]]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="lakewright-walk")
    try:
        while pending or running:
            while pending and len(running) < 2 * threads:
                running.append(pool.submit(scan_all, pending[-batch:]))
                del pending[-batch:]
            for found, children in running.popleft().result():
                pending.extend(children)
                yield found
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def map_bounded(work: Callable[[A], B], items: Iterable[A], *, threads: int) -> Iterator[B]:
    """Yield ``work(item)`` in order, several at once; ``items`` is read only as far as needed."""
    running: deque[Future[B]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="lakewright-map")
    try:
        for item in items:
            running.append(pool.submit(work, item))
            if len(running) >= 2 * threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def merge_streams(
    sources: Sequence[Callable[[], Iterator[A]]], *, threads: int, held: int = 256
) -> Iterator[A]:
    """Yield from all sources, several at once, in the order of arrival.

    At most ``held`` items wait. The first error of a source ends the whole stream with it.
    """
    if len(sources) < 2 or threads < 2:
        for source in sources:
            yield from source()
        return
    arrived: queue.Queue[A | _End] = queue.Queue(held)
    stopped = threading.Event()

    def put(item: "A | _End") -> bool:
        while not stopped.is_set():
            try:
                arrived.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def drain(source: Callable[[], Iterator[A]]) -> None:
        error: BaseException | None = None
        try:
            for item in source():
                if not put(item):
                    return
        except BaseException as cause:  # noqa: BLE001  (raised again where the stream is read)
            error = cause
        put(_End(error))

    pool = ThreadPoolExecutor(threads, thread_name_prefix="lakewright-merge")
    try:
        for source in sources:
            pool.submit(drain, source)
        ended = 0
        while ended < len(sources):
            item = arrived.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                ended += 1
            else:
                yield item
    finally:
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)


class _End:
    """Marks the end of one source, with the error that ended it."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
