"""The clock by which a store dates its files: the one that all writers of a table share.

Machines disagree about the time. Whether a lease has run out, or a heart stands still, is a
question about the age of a file, and only the clock that dated the file knows that.
"""

import time

from lakewright.storage.port import Storage

#: A file that is written to be dated, and holds nothing.
PATH = ".hoodie/.locks/clock"
#: Seconds by which two clocks may differ and count as one: stores date files by whole seconds.
_ALIKE = 5.0


def store_time(storage: Storage) -> float:
    """Return the store's time, in seconds since the epoch; costs two requests.

    Files of this machine are dated by its own clock, and a store that dates nothing has none.
    """
    if storage.uri.startswith(("/", "memory://")):
        return time.time()
    storage.write(PATH, b"")
    stat = storage.stat(PATH)
    return time.time() if stat is None or stat.modified is None else stat.modified


def earlier_time(storage: Storage) -> float:
    """Return the time by which something is over: that of the clock that is behind.

    Of this machine's and the store's; what is deleted for good must be over by both.
    """
    here, there = time.time(), store_time(storage)
    return there if there < here - _ALIKE else here


def later_time(storage: Storage) -> float:
    """Return the time from which a term counts: that of the clock that is ahead."""
    here, there = time.time(), store_time(storage)
    return there if there > here + _ALIKE else here
