"""Which bucket a record key belongs to, exactly as Hudi's bucket index computes it.

The values of the hash fields are cut out of the record key's text; their Java list hash (over
UTF-16 code units) modulo the number of buckets is the bucket.
"""

import re
import uuid
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.format.arrow.texts import Texts, texts_of
from lakewright.model.errors import Invalid

Buckets: TypeAlias = npt.NDArray[np.int32]
Hashes: TypeAlias = npt.NDArray[np.uint32]

_DIGITS = re.compile(r"\d{8}")
_NULL = "__null__"
_EMPTY = "__empty__"
_PIECE = 16 << 10
_LAST_ASCII = 0x7F


def bucket_of(keys: pa.Array, fields: Sequence[str], count: int) -> Buckets:
    """Return the bucket of each record key, of ``count``.

    ``fields`` are the hash fields, a subset of the record key's; none means all of them.
    """
    if count < 1:
        raise Invalid(f"{count} is no number of buckets.", next_step="Give 1 or more.")
    hashes = key_hashes(keys, fields)
    return ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)


def key_hashes(keys: pa.Array, fields: Sequence[str]) -> Hashes:
    """Return the Java list hash of the hash fields' values in each record key."""
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(pa.string())
    if isinstance(keys, pa.ChunkedArray):
        parts = [key_hashes(chunk, fields) for chunk in keys.chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.uint32)
    hashes = np.uint32(31) + string_hashes(keys)
    rows = _composite(keys)
    if len(rows):
        texts = keys.take(pa.array(rows)).to_pylist()
        hashes[rows] = _list_hashes([hash_values(text, fields) for text in texts])
    return hashes


def _composite(keys: pa.Array) -> npt.NDArray[np.int64]:
    """Return the rows whose key has both a comma and a colon."""
    used = texts_of(keys).used
    if not (np.any(used == ord(",")) and np.any(used == ord(":"))):
        # Cheaper than asking each key, and mostly enough.
        return np.empty(0, np.int64)
    both = pc.and_(pc.match_substring(keys, ","), pc.match_substring(keys, ":"))
    return np.flatnonzero(both.to_numpy(zero_copy_only=False))


def _list_hashes(lists: list[list[str | None]]) -> Hashes:
    """Return Java's List.hashCode of each list; all strings are hashed together first."""
    flat = [value for values in lists for value in values]
    each = string_hashes(pa.array([value or "" for value in flat], pa.string()))
    sizes = np.array([len(values) for values in lists])
    starts = np.cumsum(sizes) - sizes
    hashes = np.ones(len(lists), np.uint32)
    for place in range(int(sizes.max())):
        rows = np.flatnonzero(sizes > place)
        # An absent value hashes to 0, as the empty text does.
        hashes[rows] = hashes[rows] * np.uint32(31) + each[starts[rows] + place]
    return hashes


def hash_values(key: str, fields: Sequence[str]) -> list[str | None]:
    """Cut the values of the hash fields out of a record key, in the order of the key.

    A key without both ``,`` and ``:`` is one value. Otherwise it is ``field:value`` pairs; since
    values may hold both signs, a value ends at the last comma before the next colon.
    """
    if "," not in key or ":" not in key:
        return [key]
    keep = {field for field in fields if field}
    values: list[str | None] = []
    at = 0
    while at < len(key):
        colon = key.find(":", at)
        if colon < 0:
            break
        end = _value_end(key, colon)
        if not keep or key[at:colon] in keep:
            values.append(_unwritten(key[colon + 1 : end]))
        at = end + 1
    return values or [key]


def _value_end(key: str, colon: int) -> int:
    following = key.find(":", colon + 1)
    while following >= 0:
        comma = key.rfind(",", colon + 1, following)
        if comma >= 0:
            return comma
        following = key.find(":", following + 1)
    return len(key)


def _unwritten(value: str) -> str | None:
    if value == _NULL:
        return None
    return "" if value == _EMPTY else value


def string_hashes(values: pa.Array) -> Hashes:
    """Return Java's String.hashCode of each string."""
    texts = texts_of(values)
    hashes = _hash_groups(texts)
    if texts.used.max(initial=0) <= _LAST_ASCII:
        return hashes
    wide = np.flatnonzero(~pc.string_is_ascii(values).to_numpy(zero_copy_only=False))
    if len(wide):
        # Beyond ASCII, bytes are not code units.
        beyond = values.take(pa.array(wide)).to_pylist()
        hashes[wide] = _hash_groups(_utf16(beyond))
    return hashes


def _utf16(texts: list[str]) -> Texts[np.uint16]:
    encoded = [text.encode("utf-16-le") for text in texts]
    size = np.array([len(units) // 2 for units in encoded], np.int64)
    return Texts(np.frombuffer(b"".join(encoded), "<u2"), np.cumsum(size) - size, size)


def _hash_groups(texts: Texts[np.uint8] | Texts[np.uint16]) -> Hashes:
    out = np.zeros(len(texts), np.uint32)
    for rows, matrix in texts.by_size():
        weights = _weights(matrix.shape[1])
        for begin in range(0, len(rows), _PIECE):
            units = matrix[begin : begin + _PIECE].astype(np.uint32)
            out[rows[begin : begin + _PIECE]] = np.einsum("ij,j->i", units, weights)
    return out


@lru_cache(maxsize=64)
def _weights(size: int) -> Hashes:
    """Return what each unit of a text of so many counts in its hash: powers of 31, which wrap."""
    powers = np.full(size, 31, np.uint32)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint32)[::-1].copy()


def bucket_number(file_id: str) -> int | None:
    """Return the bucket that a file id states, None where it is no bucket's id."""
    found = _DIGITS.match(file_id)
    return int(found.group()) if found else None


def bucket_file_id(bucket: int, unique: uuid.UUID) -> str:
    """Return the id of a new file group of a bucket."""
    if not 0 <= bucket < 10**8:
        raise Invalid(f"{bucket} is no bucket number.", next_step="Give 0 to 99999999.")
    return f"{bucket:08d}{str(unique)[8:]}-0"
