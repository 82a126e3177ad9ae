"""Hashing metadata: which number of buckets each partition was given, and by which write.

It lies beside the hash configs, the rules as a user wrote them. Both are JSON, and both are named
after the instant that wrote them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.hashing_config import hashing_config_path
from lakewright.model.bucket_rules.rules import DEFAULT_BUCKETS, MOST_BUCKETS
from lakewright.model.errors import Corrupt

#: Where hash configs and hashing metadata of simple buckets lie.
SIMPLE_FOLDER = ".hoodie/.hashing_meta/simple"
#: Where the hash configs go whose hashing configs are archived.
SIMPLE_ARCHIVE = f"{SIMPLE_FOLDER}/archive"

_NAME = re.compile(r"([0-9]+)\.(hash_config|hashing_meta)", re.ASCII)


@dataclass(frozen=True, slots=True)
class PartitionHashInfo:
    """The number of buckets of a partition, and the instant of the write that fixed it."""

    bucket_number: int
    instant: str


@dataclass(frozen=True, slots=True)
class SimpleHashMeta:
    """The numbers of buckets that writes have fixed, by the path of the partition."""

    partitions: Mapping[str, PartitionHashInfo] = field(default_factory=dict)
    default_bucket_number: int = DEFAULT_BUCKETS
    version: int = 1


def decode_hash_meta(data: bytes, path: str) -> SimpleHashMeta:
    """Read hashing metadata; unknown keys are ignored, and null stands for the default.

    Partitions that one write fixed at the same number share one value.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as cause:
        raise _damaged(path, str(cause)) from cause
    if not isinstance(body, dict):
        raise _damaged(path, "it is no object")
    entries = body.get("partitionMeta")
    if entries is None:
        entries = {}
    if not isinstance(entries, dict):
        raise _damaged(path, "partitionMeta is no object")
    shared: dict[tuple[int, str], PartitionHashInfo] = {}
    partitions: dict[str, PartitionHashInfo] = {}
    default = _number(body.get("defaultBucketNumber"), DEFAULT_BUCKETS, "defaultBucketNumber", path)
    for partition, entry in entries.items():
        if not isinstance(entry, dict):
            raise _damaged(path, f"partition {partition!r} is no object")
        number = _number(entry.get("bucketNumber"), default, f"partition {partition!r}", path)
        instant = entry.get("instant")
        if instant is None:
            instant = ""
        if not isinstance(instant, str):
            raise _damaged(path, f"the instant of partition {partition!r} is no text")
        made = shared.get((number, instant))
        if made is None:
            made = shared[number, instant] = PartitionHashInfo(number, instant)
        partitions[partition] = made
    return SimpleHashMeta(partitions, default, _number(body.get("version"), 1, "version", path))


def encode_hash_meta(meta: SimpleHashMeta) -> bytes:
    """Write hashing metadata, a line for each partition, sorted."""
    lines = (
        f'{_quoted(partition)}: {{"bucketNumber": {info.bucket_number}, '
        f'"instant": {_quoted(info.instant)}}}'
        for partition, info in sorted(meta.partitions.items())
    )
    text = (
        f'{{"version": {meta.version}, "defaultBucketNumber": {meta.default_bucket_number}, '
        '"partitionMeta": {\n' + ",\n".join(lines) + "\n}}"
    )
    return text.encode()


def _quoted(text: str) -> str:
    """Return a text as JSON, readable unless it holds what UTF-8 cannot."""
    quoted = json.dumps(text, ensure_ascii=False)
    try:
        quoted.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return quoted


def hash_config_path(instant: str) -> str:
    """Return where the rules lie that were set at an instant, as their user wrote them."""
    return f"{SIMPLE_FOLDER}/{instant}.hash_config"


def hash_meta_path(instant: str) -> str:
    """Return where the hashing metadata of a write lies."""
    return f"{SIMPLE_FOLDER}/{instant}.hashing_meta"


def parse_simple_name(name: str) -> tuple[str, str] | None:
    """Return instant and kind (``hash_config``, ``hashing_meta``) of a file; None for others."""
    match = _NAME.fullmatch(name)
    return (match.group(1), match.group(2)) if match else None


def bucket_files_of(instant: str) -> tuple[str, str, str]:
    """Return the files of the bucket index that a write may have made, in the order to delete them.

    The hashing config is what other software believes: it goes first.
    """
    return hashing_config_path(instant), hash_config_path(instant), hash_meta_path(instant)


def _number(value: object, absent: int, what: str, path: str) -> int:
    if value is None:
        return absent
    if type(value) is not int or not 1 <= value <= MOST_BUCKETS:
        raise _damaged(path, f"{what} has the number {value!r}")
    return value


def _damaged(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path}: the hashing metadata cannot be read ({why}).",
        next_step="See table.buckets.check(); repair() writes it anew from the hashing config.",
        path=path,
    )
