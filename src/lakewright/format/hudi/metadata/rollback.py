"""Rollbacks: the plan of what to undo, and the record of what was undone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.container import decode_container, encode_container
from lakewright.format.hudi.metadata.shapes import (
    INT,
    LONG,
    STRING,
    ListOf,
    MapOf,
    Member,
    RecordOf,
    listed,
    mapped,
    optional,
    versioned,
)


@dataclass(frozen=True, slots=True)
class InstantInfo:
    """An instant by its time and action."""

    time: str
    action: str


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Files to delete and log blocks to undo in one file group; paths are full ones.

    ``file_id`` and ``base_instant`` are empty where files are only deleted.
    """

    partition: str
    file_id: str | None = ""
    base_instant: str | None = ""
    files: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What a rollback will undo."""

    instant: InstantInfo | None
    requests: tuple[RollbackRequest, ...] = ()
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class RolledBackPartition:
    """What a rollback deleted and appended in one partition; paths are full ones."""

    partition: str
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    rollback_logs: Mapping[str, int] = field(default_factory=dict)
    failed_commit_logs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """What a rollback undid."""

    start: str
    millis: int
    total_deleted: int
    commits: tuple[str, ...]
    partitions: Mapping[str, RolledBackPartition] = field(default_factory=dict)
    version: int | None = 1
    instants: tuple[InstantInfo, ...] = ()


INSTANT_INFO = RecordOf(
    "HoodieInstantInfo", InstantInfo, (Member("commitTime", STRING), Member("action", STRING))
)
_REQUEST = RecordOf(
    "HoodieRollbackRequest",
    RollbackRequest,
    (
        Member("partitionPath", STRING),
        optional("fileId", STRING),
        optional("latestBaseInstant", STRING),
        Member("filesToBeDeleted", ListOf(STRING), []),
        mapped("logBlocksToBeDeleted", LONG),
    ),
)
ROLLBACK_PLAN = RecordOf(
    "HoodieRollbackPlan",
    RollbackPlan,
    (
        optional("instantToRollback", INSTANT_INFO),
        listed("RollbackRequests", _REQUEST),
        versioned(),
    ),
)
_PARTITION = RecordOf(
    "HoodieRollbackPartitionMetadata",
    RolledBackPartition,
    (
        Member("partitionPath", STRING),
        Member("successDeleteFiles", ListOf(STRING)),
        Member("failedDeleteFiles", ListOf(STRING)),
        mapped("rollbackLogFiles", LONG),
        mapped("logFilesFromFailedCommit", LONG),
    ),
)
ROLLBACK = RecordOf(
    "HoodieRollbackMetadata",
    RollbackMetadata,
    (
        Member("startRollbackTime", STRING),
        Member("timeTakenInMillis", LONG),
        Member("totalFilesDeleted", INT),
        Member("commitsRollback", ListOf(STRING)),
        Member("partitionMetadata", MapOf(_PARTITION)),
        versioned(),
        Member("instantsRollback", ListOf(INSTANT_INFO), []),
    ),
)


def decode_rollback_plan(data: bytes, path: str) -> RollbackPlan:
    """Read the body of a requested rollback."""
    return decode_container(data, path, ROLLBACK_PLAN)


def encode_rollback_plan(plan: RollbackPlan) -> bytes:
    """Write the body of a requested rollback."""
    return encode_container(plan, ROLLBACK_PLAN)


def decode_rollback(data: bytes, path: str) -> RollbackMetadata:
    """Read the body of a completed rollback."""
    return decode_container(data, path, ROLLBACK)


def encode_rollback(metadata: RollbackMetadata) -> bytes:
    """Write the body of a completed rollback."""
    return encode_container(metadata, ROLLBACK)
