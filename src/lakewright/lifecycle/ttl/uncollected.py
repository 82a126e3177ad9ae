"""Making very many values at once, without the search for cycles among them.

Each value that is kept makes Python look through all of them again, ever so often, for cycles that
nobody else refers to. A hundred thousand records of texts and numbers have none: looking is a third
of the time that they take.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Put the search for cycles off, in the whole process, until the block ends.

    Use it for work of a second at most that waits for nothing. Blocks may overlap, in threads too:
    the search is on again when the one that found it on ends.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
