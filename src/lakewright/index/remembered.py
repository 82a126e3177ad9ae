"""Values that are dear to read and asked for again and again, kept by this process."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Remembered:
    """A few decoded files; whoever adds one too many drops the one that was not asked for longest.

    The key holds all that a listing tells of a file, so that another content has another key.
    """

    most: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    values: OrderedDict[object, object] = field(default_factory=OrderedDict)

    def get(self, key: object, make: Callable[[], T], kind: type[T]) -> T:
        """Return the value of a key, which ``make`` makes where it is not known."""
        with self.lock:
            found = self.values.get(key)
            if isinstance(found, kind):
                self.values.move_to_end(key)
                return found
        made = make()
        with self.lock:
            self.values[key] = made
            while len(self.values) > self.most:
                self.values.popitem(last=False)
        return made
