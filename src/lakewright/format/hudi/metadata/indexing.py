"""Indexing: which partitions of the metadata table are built, and up to when."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.container import decode_container, encode_container
from lakewright.format.hudi.metadata.shapes import (
    STRING,
    RecordOf,
    listed,
    mapped,
    optional,
    versioned,
)


@dataclass(frozen=True, slots=True)
class IndexPartition:
    """One partition of the metadata table, built from the data up to an instant."""

    version: int | None = 1
    partition: str | None = None
    up_to: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Which partitions an indexing builds."""

    version: int | None = 1
    partitions: tuple[IndexPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexCommit:
    """Which partitions an indexing built."""

    version: int | None = 1
    operation: str | None = None
    partitions: tuple[IndexPartition, ...] = ()


_PARTITION = RecordOf(
    "HoodieIndexPartitionInfo",
    IndexPartition,
    (
        versioned(),
        optional("metadataPartitionPath", STRING),
        optional("indexUptoInstant", STRING),
        mapped("extraMetadata", STRING),
    ),
)
INDEX_PLAN = RecordOf(
    "HoodieIndexPlan", IndexPlan, (versioned(), listed("indexPartitionInfos", _PARTITION))
)
INDEX_COMMIT = RecordOf(
    "HoodieIndexCommitMetadata",
    IndexCommit,
    (versioned(), optional("operationType", STRING), listed("indexPartitionInfos", _PARTITION)),
)


def decode_index_plan(data: bytes, path: str) -> IndexPlan:
    """Read the body of a requested indexing."""
    return decode_container(data, path, INDEX_PLAN)


def encode_index_plan(plan: IndexPlan) -> bytes:
    """Write the body of a requested indexing."""
    return encode_container(plan, INDEX_PLAN)


def decode_index_commit(data: bytes, path: str) -> IndexCommit:
    """Read the body of a completed indexing."""
    return decode_container(data, path, INDEX_COMMIT)


def encode_index_commit(metadata: IndexCommit) -> bytes:
    """Write the body of a completed indexing."""
    return encode_container(metadata, INDEX_COMMIT)
