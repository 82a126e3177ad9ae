"""Reading log files: find the blocks, then decode those that are wanted."""

import io
import logging
import struct
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.format.arrow.evolve import conform
from lakewright.format.arrow.failures import arrow_failures, placed
from lakewright.format.hudi.avro_records import decode_framed
from lakewright.format.hudi.base_footer import BaseFooter
from lakewright.format.hudi.log.blocks import (
    CONTENT_VERSION,
    LEAST_LENGTH,
    LOG_VERSION,
    MAGIC,
    BlockKind,
    HeaderKey,
    LogBlock,
)
from lakewright.format.hudi.log.deletes import DeleteRecords, decode_deletes
from lakewright.format.hudi.positions import decode_positions
from lakewright.model.errors import Corrupt, Unsupported
from lakewright.model.logs import facts

log = logging.getLogger(__name__)

_WINDOW = 64 << 10
_SEARCH = 1 << 20


class _Window:
    """Small reads at any offset, served from the last piece that was fetched.

    The end of one block is fetched together with the header of the next.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size
        self._at = 0
        self._piece = b""

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes; fewer only at the end of the file."""
        begin = offset - self._at
        if begin < 0 or begin + length > len(self._piece):
            want = min(max(length, _WINDOW), max(self._size - offset, 0))
            self._piece = self.fetch(offset, want)
            self._at, begin = offset, 0
        return self._piece[begin : begin + length]

    def fetch(self, offset: int, length: int) -> bytes:
        """Return bytes straight from the file."""
        self._file.seek(offset)
        return read_fully(self._file, length)


def read_fully(file: IO[bytes], length: int) -> bytes:
    """Return ``length`` bytes from where the file stands; fewer only at its end."""
    data = file.read(length)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing and (more := file.read(missing)):
        parts.append(more)
        missing -= len(more)
    return b"".join(parts)


def scan_blocks(file: IO[bytes], size: int, path: str) -> Iterator[LogBlock]:
    """Find the blocks of a log file in order, reading headers and passing over contents.

    A block whose two length fields disagree, that is cut off, or that is not followed by
    another block or the end of the file, is CORRUPT, as in Hudi: the scan goes on at the next
    magic. A file that does not begin with the magic, and a well-framed block with an unreadable
    header, raise ``Corrupt``.
    """
    window = _Window(file, size)
    offset = 0
    while size - offset >= len(MAGIC):
        if window.read(offset, len(MAGIC)) != MAGIC:
            raise Corrupt(
                f"{path} is no Hudi log file: no magic at byte {offset}.",
                path=path,
                offset=offset,
            )
        end = _block_end(window, offset, size)
        if end is None:
            begin = offset + len(MAGIC)
            end = _next_magic(window, begin, size)
            log.warning("a corrupt log block is passed over", extra=facts(path=path, offset=offset))
            yield LogBlock(BlockKind.CORRUPT, {}, offset, begin, end - begin, path)
        else:
            yield _block(window, offset, end, path)
        offset = end


def _block_end(window: _Window, offset: int, size: int) -> int | None:
    """Return where the block ends, or None where its frame does not hold."""
    field = window.read(offset + len(MAGIC), 8)
    if len(field) < 8:
        return None
    (length,) = struct.unpack(">q", field)
    end: int = offset + len(MAGIC) + 8 + length
    if length < LEAST_LENGTH or end > size:
        return None
    tail = window.read(end - 8, 8 + len(MAGIC))
    if len(tail) < 8 or struct.unpack(">q", tail[:8])[0] != length + len(MAGIC):
        return None
    follows = tail[8:]
    if len(follows) == len(MAGIC) and follows != MAGIC:
        return None
    return end


def _next_magic(window: _Window, offset: int, size: int) -> int:
    while offset < size:
        piece = window.fetch(offset, min(_SEARCH, size - offset))
        found = piece.find(MAGIC)
        if found >= 0:
            return offset + found
        if len(piece) < _SEARCH:
            return size
        offset += len(piece) - len(MAGIC) + 1
    return size


def _block(window: _Window, offset: int, end: int, path: str) -> LogBlock:
    at = offset + len(MAGIC) + 8
    limit = end - 8
    version, ordinal, count = struct.unpack(">iii", _take(window, at, 12, limit, path))
    at += 12
    if version != LOG_VERSION:
        raise Unsupported(
            f"{path} uses log format version {version}; version {LOG_VERSION} is known.",
            next_step="Read it with the software that wrote it, and compact it there.",
            path=path,
            offset=offset,
        )
    if ordinal not in _KINDS:
        raise Corrupt(f"{path} has a block of unknown type {ordinal}.", path=path, offset=offset)
    header, at = _map(window, at, count, limit, path)
    (length,) = struct.unpack(">q", _take(window, at, 8, limit, path))
    at += 8
    if not 0 <= length <= limit - at:
        raise Corrupt(
            f"a block of {path} claims {length} bytes of content.", path=path, offset=at - 8
        )
    return LogBlock(BlockKind(ordinal), header, offset, at, length, path)


_KINDS = frozenset(kind.value for kind in BlockKind if kind is not BlockKind.CORRUPT)


def _map(
    window: _Window, at: int, count: int, limit: int, path: str
) -> tuple[dict[HeaderKey, str], int]:
    if not 0 <= count <= len(HeaderKey):
        raise Corrupt(f"a block of {path} has {count} header entries.", path=path, offset=at - 4)
    header: dict[HeaderKey, str] = {}
    for _ in range(count):
        key, length = struct.unpack(">ii", _take(window, at, 8, limit, path))
        if not 0 <= key < len(HeaderKey):
            raise Corrupt(f"a block of {path} has an unknown header {key}.", path=path, offset=at)
        at += 8
        raw = _take(window, at, length, limit, path)
        at += length
        try:
            header[HeaderKey(key)] = raw.decode("utf-8")
        except UnicodeDecodeError as cause:
            raise Corrupt(
                f"a header of a block of {path} is not UTF-8.", path=path, offset=at - length
            ) from cause
    return header, at


def _take(window: _Window, at: int, length: int, limit: int, path: str) -> bytes:
    if length < 0 or length > limit - at:
        raise Corrupt(f"a block header of {path} is cut short.", path=path, offset=at)
    data = window.read(at, length)
    if len(data) != length:
        raise Corrupt(f"{path} ends within a block header.", path=path, offset=at)
    return data


def read_data(file: IO[bytes], block: LogBlock, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the records of an AVRO_DATA, PARQUET_DATA or CDC_DATA block, in block order.

    ``columns`` names the columns wanted, in the order wanted; names that the block lacks are
    passed over. Types are those of the block's own schema.
    """
    match block.kind:
        case BlockKind.AVRO_DATA | BlockKind.CDC_DATA:
            with placed(block.path, block.offset):
                return _avro_data(file, block, columns)
        case BlockKind.PARQUET_DATA:
            with placed(block.path, block.offset):
                return _parquet_data(file, block, columns)
        case BlockKind.HFILE_DATA:
            raise Unsupported(
                f"{block.path} holds records in an HFile; Avro and parquet blocks are read.",
                next_step="Compact the table with the release of Hudi that wrote it, and write "
                "with hoodie.logfile.data.block.format=avro from then on.",
                path=block.path,
                offset=block.offset,
            )
        case _:
            raise Unsupported(
                f"a {block.kind.name} block of {block.path} holds no records.",
                next_step="Please report it: this is a fault of Lakewright.",
                path=block.path,
                offset=block.offset,
            )


def _content(file: IO[bytes], block: LogBlock) -> bytes:
    file.seek(block.content_offset)
    data = read_fully(file, block.content_length)
    if len(data) != block.content_length:
        raise Corrupt(f"{block.path} ends within a block.", path=block.path, offset=block.offset)
    return data


def _avro_data(file: IO[bytes], block: LogBlock, columns: Sequence[str] | None) -> pa.Table:
    if block.schema_text is None:
        raise Corrupt(
            f"a data block of {block.path} has no schema.", path=block.path, offset=block.offset
        )
    data = _content(file, block)
    if len(data) < 8:
        raise Corrupt(
            f"a data block of {block.path} is cut short.", path=block.path, offset=block.offset
        )
    version, count = struct.unpack_from(">ii", data)
    if version != CONTENT_VERSION:
        raise Unsupported(
            f"a data block of {block.path} has content version {version}.",
            next_step=f"Version {CONTENT_VERSION} is read; compact the table with Hudi 0.7 or "
            "later.",
            path=block.path,
            offset=block.offset,
        )
    return decode_framed(
        block.schema_text,
        memoryview(data)[8:],
        count,
        columns,
        path=block.path,
        offset=block.content_offset + 8,
    )


def _parquet_data(file: IO[bytes], block: LogBlock, columns: Sequence[str] | None) -> pa.Table:
    part = _Part(file, block.content_offset, block.content_length)
    with arrow_failures(block.path, block.offset):
        # Bounds for the footer's thrift: no text or list in it is larger than the block.
        parquet = pq.ParquetFile(
            pa.PythonFile(part, mode="r"),
            coerce_int96_timestamp_unit="us",
            thrift_string_size_limit=max(1, block.content_length),
            thrift_container_size_limit=max(1, block.content_length),
        )
        end = block.content_offset + block.content_length
        target = BaseFooter(block.path, end, parquet.metadata).schema
        if columns is not None:
            target = pa.schema([target.field(c) for c in columns if c in target.names])
        rows = conform(parquet.read(columns=target.names), target)
    if target.names and len(rows) != parquet.metadata.num_rows:
        raise Corrupt(
            f"a block of {block.path} claims {parquet.metadata.num_rows} records and holds "
            f"{len(rows)}.",
            path=block.path,
            offset=block.offset,
        )
    return rows


class _Part(io.RawIOBase):
    """A range of a file as a file of its own; the outer file stays open."""

    def __init__(self, file: IO[bytes], offset: int, length: int) -> None:
        super().__init__()
        self._file = file
        self._offset = offset
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        """Return the length; pyarrow asks for it."""
        return self._length

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._length - self._at)
        self._file.seek(self._offset + self._at)
        data = read_fully(self._file, left if size < 0 else min(size, left))
        self._at += len(data)
        return data


def read_deletes(file: IO[bytes], block: LogBlock) -> DeleteRecords:
    """Return the keys of a DELETE block; only content version 3 can be read outside Java."""
    if block.kind is not BlockKind.DELETE:
        raise Unsupported(
            f"a {block.kind.name} block of {block.path} holds no deletes.",
            next_step="Please report it: this is a fault of Lakewright.",
            path=block.path,
        )
    data = _content(file, block)
    if len(data) < 8:
        raise Corrupt(
            f"a delete block of {block.path} is cut short.", path=block.path, offset=block.offset
        )
    version, length = struct.unpack_from(">ii", data)
    if version in (1, 2):
        raise Unsupported(
            f"a delete block of {block.path} has content version {version}, which is serialised "
            "Java objects.",
            next_step="Compact the table with Hudi, which rewrites its deletes.",
            path=block.path,
            offset=block.offset,
        )
    if version != CONTENT_VERSION or length != len(data) - 8:
        raise Corrupt(
            f"a delete block of {block.path} is malformed (version {version}, {length} bytes).",
            path=block.path,
            offset=block.offset,
        )
    return decode_deletes(data[8:], block.path, block.content_offset + 8)


def read_positions(block: LogBlock) -> npt.NDArray[np.uint64] | None:
    """Return the base file rows that the block's records replace, ascending; None if unsaid."""
    text = block.header.get(HeaderKey.RECORD_POSITIONS)
    if not text:
        return None
    # Records with distinct keys take a byte each at least, so the content bounds their number.
    with placed(block.path, block.offset):
        return decode_positions(text, limit=block.content_length, path=block.path)
