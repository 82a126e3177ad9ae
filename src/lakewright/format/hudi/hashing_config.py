"""Hashing configs: how many buckets each partition has (the partition-level bucket index)."""

import re
from dataclasses import dataclass

from lakewright.format.hudi.metadata.json_text import decode_json, encode_json
from lakewright.format.hudi.metadata.shapes import INT, STRING, Member, Nullable, RecordOf
from lakewright.model.errors import Corrupt

#: The folder whose existence makes a table one with a partition-level bucket index.
CONFIGS_FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
ARCHIVE_FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/archive"
#: The instant of the config that is written when a table is created.
FIRST_INSTANT = "00000000000000"

_NAME = re.compile(r"([0-9]+)\.hashing_config", re.ASCII)


@dataclass(frozen=True, slots=True)
class HashingConfig:
    """Rules ``pattern,count;pattern,count`` and the count of partitions that match none."""

    expressions: str
    default_bucket_number: int
    instant: str
    rule: str = "regex"
    version: int = 1


@dataclass(frozen=True, slots=True)
class _Stored:
    expressions: str
    default_bucket_number: int
    rule: str
    version: int
    instant: str


_SHAPE = RecordOf(
    "hashing_config",
    _Stored,
    (
        Member("expressions", Nullable(STRING, null_is="", writes_null=False)),
        Member("defaultBucketNumber", INT),
        Member("rule", Nullable(STRING, null_is="regex", writes_null=False)),
        Member("version", Nullable(INT, null_is=1, writes_null=False)),
        Member("instant", STRING),
    ),
)


def decode_hashing_config(data: bytes, path: str) -> HashingConfig:
    """Read a hashing config; unknown keys are ignored."""
    stored = decode_json(data, path, _SHAPE)
    if stored.default_bucket_number < 1:
        raise Corrupt(
            f"{path}: defaultBucketNumber is {stored.default_bucket_number}.",
            next_step="Hudi's procedure stores that where it is given no bucket_number: call it "
            "again with one, or write the number of the table's other partitions into the file.",
            path=path,
        )
    return HashingConfig(
        stored.expressions,
        stored.default_bucket_number,
        stored.instant,
        stored.rule,
        stored.version,
    )


def encode_hashing_config(config: HashingConfig) -> bytes:
    """Write a hashing config in the form of real Hudi, byte for byte."""
    stored = _Stored(
        config.expressions,
        config.default_bucket_number,
        config.rule,
        config.version,
        config.instant,
    )
    return encode_json(stored, _SHAPE)


def hashing_config_name(instant: str) -> str:
    """Return the file name of the config that an instant wrote."""
    return f"{instant}.hashing_config"


def hashing_config_path(instant: str) -> str:
    """Return where the config of an instant lies while it may count."""
    return f"{CONFIGS_FOLDER}/{hashing_config_name(instant)}"


def parse_hashing_config_name(name: str) -> str | None:
    """Return the instant in a config's file name; None where it is no config."""
    match = _NAME.fullmatch(name)
    return match.group(1) if match else None
