"""Large files of this machine: what is written first is made durable while the rest is written.

Left to the end, hundreds of megabytes wait in memory for one sync, and the kernel holds up
whoever writes more of them.
"""

import io
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: After so many bytes more a sync is begun, unless one is under way.
STEP = 32 << 20
#: The most bytes of one write. Writes of 4 MiB and more took up to four times as long on a virtual
#: machine (ext4 of Linux 6.18), all of it in the kernel's copying into its own memory.
_PIECE = 1 << 20


class WriteBehind(io.FileIO):
    """A raw file over a descriptor that a thread syncs, again and again, as the file grows.

    One that is not ``durable`` is left alone. What bypasses it, as ``sendfile`` does, counts with
    the next ``seek``. A sync that fails is the last one, and fails ``finish``: the kernel tells of
    a lost page only once.
    """

    def __init__(self, descriptor: int, *, durable: bool) -> None:
        super().__init__(os.dup(descriptor), "wb")
        self._descriptor = descriptor
        self._durable = durable
        self._at = 0
        self._asked = 0
        self._pool: ThreadPoolExecutor | None = None
        self._sync: Future[None] | None = None

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write bytes where the file is at; of many only the first, as raw files may."""
        written = super().write(memoryview(data).cast("B")[:_PIECE])
        self._grown(self._at + written)
        return written

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place, and take what lies before it for written."""
        at = super().seek(offset, whence)
        self._grown(at)
        return at

    def finish(self) -> None:
        """Wait for the sync under way; an ``OSError`` is what one of them met."""
        if self._sync is not None:
            self._sync.result()

    def stop(self) -> None:
        """End the thread; the descriptor may be closed afterwards."""
        if self._pool is not None:
            self._pool.shutdown()

    def _grown(self, at: int) -> None:
        self._at = at
        if not self._durable or at - self._asked < STEP:
            return
        if self._sync is not None and not (self._sync.done() and self._sync.exception() is None):
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="sync")
        self._asked = at
        self._sync = self._pool.submit(os.fdatasync, self._descriptor)
