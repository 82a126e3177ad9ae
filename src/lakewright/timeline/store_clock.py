"""The clock by which a store dates its files: the one that all writers of a table share.

Machines disagree about the time. Whether a lease has run out, or a heart stands still, is a
question about the age of a file, and only the clock that dated the file knows that.
"""

import time

from lakewright.storage.port import Storage

#: A file that is written to be dated, and holds nothing.
PATH = ".hoodie/.locks/clock"


def store_time(storage: Storage) -> float:
    """Return the store's time, in seconds since the epoch; costs two requests.

    Files of this machine are dated by its own clock, and a store that dates nothing has none.
    """
    if storage.uri.startswith(("/", "memory://")):
        return time.time()
    storage.write(PATH, b"")
    stat = storage.stat(PATH)
    return time.time() if stat is None or stat.modified is None else stat.modified
