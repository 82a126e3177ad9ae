"""A parquet file whose pages Arrow writes straight to where they belong, within another file."""

from typing import IO

import pyarrow as pa

from lakewright.format.arrow.parquet_footer import MAGIC


class PageStream:
    """What Arrow writes a file to: its pages pass on to a sink, its footer is held.

    Such a file takes no memory but for a page of it. Its first bytes are dropped, so that a page
    lies ``len(MAGIC)`` bytes before the place that the footer names, counted from where the sink
    was at.
    """

    #: Arrow asks for it.
    closed = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._dropped = 0
        self._passes = True
        self._held: list[bytes] = []
        self.passed = 0

    def write(self, data: bytes) -> int:
        """Take the next bytes of the file."""
        kept = data[len(MAGIC) - self._dropped :]
        self._dropped += len(data) - len(kept)
        if not self._passes:
            self._held.append(kept)
        elif kept:
            self._sink.write(kept)
            self.passed += len(kept)
        return len(data)

    def end_pages(self) -> None:
        """Hold what follows: the pages were written."""
        self._passes = False

    def footer(self) -> pa.Buffer:
        """Return the footer of the whole file; pages that came late pass on now."""
        held = b"".join(self._held)
        late = len(held) - int.from_bytes(held[-8:-4], "little") - 8
        if late:
            self._sink.write(held[:late])
            self.passed += late
        return pa.py_buffer(held[late:])
