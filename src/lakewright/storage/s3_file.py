"""A file of an object store, opened for random access: few requests, each worth its latency."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_READ_AHEAD = 1 << 20
"""A request takes at least this much, so that small reads in a row cost one request."""

_KEPT = 8 << 20
"""What a longer read fetched is handed over whole and not kept."""

TAIL = 256 << 10
"""The first request takes so much of the end: parquet's footer, or the whole of a small file."""


class RangedFile(io.RawIOBase):
    """Reads byte ranges through ``fetch(offset, length)`` and keeps the last window of bytes.

    ``read(n)`` returns fewer than ``n`` bytes only at the end of the file.
    """

    def __init__(
        self, size: int, fetch: Callable[[int, int], bytes], tail: bytes, name: str
    ) -> None:
        super().__init__()
        self.name = name
        self._size = size
        self._fetch = fetch
        self._tail = tail
        self._tail_start = size - len(tail)
        self._window = b""
        self._window_start = 0
        self._position = 0

    def __repr__(self) -> str:
        return f"RangedFile({self.name!r}, size={self._size})"

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def size(self) -> int:
        """Return the length of the file."""
        return self._size

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next read; it may lie behind the end."""
        self._check_open()
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"position {start + offset} lies before the file")
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next ``size`` bytes, or all that is left."""
        self._check_open()
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if length == 0:
            return b""
        data = self._bytes_at(self._position, length)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        """Return all that is left."""
        return self.read()

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill ``buffer`` as far as the file goes."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")

    def _bytes_at(self, offset: int, length: int) -> bytes:
        pieces: list[bytes] = []
        while length > 0:
            piece = self._piece(offset, length)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            length -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _piece(self, offset: int, length: int) -> bytes:
        """Return as much as lies in one place: the tail, the window, or the next request."""
        if offset >= self._tail_start:
            begin = offset - self._tail_start
            return self._tail[begin : begin + length]
        begin = offset - self._window_start
        if 0 <= begin < len(self._window):
            return self._window[begin : begin + length]
        # What the tail holds is not asked for again.
        data = self._fetch(offset, min(max(length, _READ_AHEAD), self._tail_start - offset))
        if len(data) <= _KEPT:
            self._window, self._window_start = data, offset
        return data[:length]
