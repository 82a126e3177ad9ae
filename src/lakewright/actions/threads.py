"""Items that threads of this process work on: a driver's, or an engine's that has no others."""

import secrets
from collections.abc import Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from lakewright.actions.executor import Attempt, Item, ItemFunction, Made, Shared


def threads_for(cores: int) -> int:
    """Return how many files are written at once: one that waits for its disk frees a core."""
    return 2 * cores


def run_in_threads(
    function: ItemFunction[Shared, Item, Made],
    shared: Shared,
    items: Iterable[Item],
    *,
    threads: int,
    stage: int = 0,
) -> Iterator[Made]:
    """Run a function over items in so many threads, and stream the answers as they come.

    After the first error no further item begins; it is raised when those that run have ended,
    so that whoever cleans up after it meets no file that is still being written. The same holds
    for a caller that stops asking. Items are taken as threads become free, one ahead of them.
    """
    if isinstance(items, Sized):
        threads = min(threads, len(items))
    run = secrets.randbelow(1 << 31)
    if threads <= 1:
        for number, item in enumerate(items):
            yield function(shared, item, Attempt(number, stage, run))
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="lakewright") as pool:
        waiting = iter(enumerate(items))
        running: set[Future[Made]] = set()
        try:
            while True:
                for number, item in waiting:
                    running.add(pool.submit(function, shared, item, Attempt(number, stage, run)))
                    if len(running) > threads:
                        break
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            wait(running)
