"""Avro object container files that hold one record, as timeline files are.

The schema inside a file comes from whoever wrote it. It is checked before a byte of the
record is decoded: it must fit the shape that is expected, and it must not be able to make
much of few bytes (types without width, recursion). After that every decoded value costs at
least one byte of input, so memory stays proportional to the file.
"""

import functools
import hashlib
import io
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, TypeVar

import fastavro

from lakewright.format.hudi.metadata.shapes import Raw, RecordOf, avro_schema, reader, writer
from lakewright.format.hudi.metadata.writer_schema import checked_schema
from lakewright.model.errors import Corrupt, Unsupported

T = TypeVar("T")

MAGIC = b"Obj\x01"
#: The largest record that a compressed file may unfold to.
MAX_UNCOMPRESSED = 1 << 28
_MAX_SCHEMA = 1 << 20
_SYNC = 16

#: What fastavro raises for bytes that do not follow the schema.
UNREADABLE = (
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
    RecursionError,
    struct.error,
)


_UNREADABLE_SCHEMA = (
    ValueError,
    TypeError,
    KeyError,
    RecursionError,
    fastavro.schema.SchemaParseException,
)


def is_container(data: bytes) -> bool:
    """Say whether these bytes begin like an Avro container file."""
    return data[:4] == MAGIC


def decode_container(data: bytes, path: str, shape: RecordOf[T]) -> T:
    """Return the one record of a container as the value that ``shape`` builds."""
    schema_text, blocks = _open(data, path)
    schema = parsed_schema(schema_text, shape, path)
    for offset, block in blocks:
        try:
            fields = fastavro.schemaless_reader(io.BytesIO(block), schema, None)
        except UNREADABLE as cause:
            raise Corrupt(
                f"{path}: the {shape.name} at byte {offset} cannot be decoded ({cause}).",
                next_step=_DAMAGED,
                path=path,
                offset=offset,
            ) from cause
        value: T = reader(shape)(fields)
        return value
    raise Corrupt(
        f"{path}: the file holds no record.", next_step=_DAMAGED, path=path, offset=len(data)
    )


_DAMAGED = "The file is damaged or was written by something else; restore it from a copy."


def encode_container(value: object, shape: RecordOf[Any]) -> bytes:
    """Write one value as a container file, uncompressed, as real Hudi writes it."""
    schema_text, schema = _own(shape)
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, writer(shape)(value))
    return contained(body.getvalue(), schema_text)


def contained(content: bytes, schema_text: bytes) -> bytes:
    """Put a container around one encoded record."""
    # Equal values give equal files, so a retried write can be recognised.
    sync = hashlib.blake2b(content, digest_size=_SYNC).digest()
    key = b"avro.schema"
    header = b"".join(
        [MAGIC, _long(1), _long(len(key)), key, _long(len(schema_text)), schema_text, _long(0)]
    )
    return b"".join([header, sync, _long(1), _long(len(content)), content, sync])


@functools.cache
def _own(shape: RecordOf[Any]) -> tuple[bytes, Raw]:
    schema = avro_schema(shape)
    return json.dumps(schema, separators=(",", ":")).encode(), fastavro.parse_schema(schema)


def parsed_schema(text: bytes, shape: RecordOf[Any], path: str) -> Raw:
    """Return a writer's schema, checked against the shape, ready for fastavro."""
    if len(text) > _MAX_SCHEMA:
        raise Corrupt(
            f"{path}: a schema of {len(text)} bytes.",
            next_step=_DAMAGED,
            path=path,
            offset=len(MAGIC),
        )
    try:
        return _checked(text, shape)
    except Corrupt as error:
        raise Corrupt(
            f"{path}: {error.message}", next_step=_DAMAGED, path=path, offset=len(MAGIC)
        ) from error


@functools.lru_cache(maxsize=64)
def _checked(text: bytes, shape: RecordOf[Any]) -> Raw:
    try:
        schema = checked_schema(text, shape)
        return fastavro.parse_schema(schema)
    except _UNREADABLE_SCHEMA as cause:
        raise Corrupt(f"the Avro schema cannot be read ({cause}).") from cause


def _open(data: bytes, path: str) -> tuple[bytes, Iterator[tuple[int, bytes]]]:
    """Read the header; return the schema's text and the blocks with their offsets."""
    if not is_container(data):
        raise Corrupt(f"{path}: no Avro container file.", next_step=_DAMAGED, path=path, offset=0)
    cursor = _Cursor(data, path, len(MAGIC))
    metadata: dict[bytes, bytes] = {}
    while (count := cursor.long()) != 0:
        if count < 0:
            count = -count
            cursor.long()
        for _ in range(cursor.plausible(count)):
            key = cursor.sized()
            metadata[key] = cursor.sized()
    sync = cursor.take(_SYNC)
    codec = metadata.get(b"avro.codec", b"null")
    if codec not in (b"null", b"deflate"):
        raise Unsupported(
            f"{path}: Avro codec {codec.decode('latin-1')!r}.",
            next_step="Known: null, deflate.",
            path=path,
        )
    return metadata.get(b"avro.schema", b""), _blocks(cursor, sync, codec == b"deflate")


def _blocks(cursor: "_Cursor", sync: bytes, deflated: bool) -> Iterator[tuple[int, bytes]]:
    while not cursor.at_end:
        count = cursor.long()
        offset = cursor.offset
        block = cursor.sized()
        if cursor.take(_SYNC) != sync:
            raise cursor.corrupt("the block does not end with the file's marker")
        if count > 0:
            yield offset, _inflate(block, cursor) if deflated else block


def _inflate(block: bytes, cursor: "_Cursor") -> bytes:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = stream.decompress(block, MAX_UNCOMPRESSED)
    except zlib.error as cause:
        raise cursor.corrupt("the block cannot be decompressed") from cause
    if stream.unconsumed_tail:
        raise cursor.corrupt(f"the block unfolds to more than {MAX_UNCOMPRESSED} bytes")
    return content


class _Cursor:
    """Reads Avro's primitives from the framing of a file, never past its end."""

    def __init__(self, data: bytes, path: str, offset: int) -> None:
        self._data, self._path, self.offset = data, path, offset

    @property
    def at_end(self) -> bool:
        return self.offset >= len(self._data)

    def corrupt(self, message: str) -> Corrupt:
        return Corrupt(
            f"{self._path}: {message}, at byte {self.offset}.",
            next_step=_DAMAGED,
            path=self._path,
            offset=self.offset,
        )

    def long(self) -> int:
        value = shift = 0
        while True:
            if self.at_end or shift > 63:
                raise self.corrupt("a number is cut off or too long")
            byte = self._data[self.offset]
            self.offset += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def plausible(self, count: int) -> int:
        """Refuse a count of entries that the rest of the file cannot hold."""
        if count > len(self._data) - self.offset:
            raise self.corrupt(f"{count} entries are announced")
        return count

    def sized(self) -> bytes:
        return self.take(self.long())

    def take(self, length: int) -> bytes:
        if not 0 <= length <= len(self._data) - self.offset:
            raise self.corrupt(f"{length} bytes are announced")
        start = self.offset
        self.offset += length
        return self._data[start : self.offset]


def _long(value: int) -> bytes:
    encoded = (value << 1) ^ (value >> 63)
    out = bytearray()
    while encoded > 0x7F:
        out.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    out.append(encoded)
    return bytes(out)
