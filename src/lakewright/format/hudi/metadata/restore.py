"""Savepoints and the restores that go back to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.container import decode_container, encode_container
from lakewright.format.hudi.metadata.rollback import (
    INSTANT_INFO,
    ROLLBACK,
    InstantInfo,
    RollbackMetadata,
)
from lakewright.format.hudi.metadata.shapes import (
    LONG,
    STRING,
    ListOf,
    MapOf,
    Member,
    Nullable,
    RecordOf,
    optional,
    versioned,
)


@dataclass(frozen=True, slots=True)
class SavepointPartition:
    """The names of the base and log files that a savepoint keeps in one partition."""

    partition: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """What a savepoint keeps; ``at`` is milliseconds since the epoch."""

    by: str
    at: int
    comments: str
    partitions: Mapping[str, SavepointPartition] = field(default_factory=dict)
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The instants that a restore undoes, newest first."""

    instants: tuple[InstantInfo, ...] = ()
    version: int | None = 2
    savepoint: str | None = None


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    """What a restore undid: the rollbacks by the instant they undid."""

    start: str
    millis: int
    instants: tuple[str, ...]
    rollbacks: Mapping[str, tuple[RollbackMetadata | None, ...]] = field(default_factory=dict)
    version: int | None = 1
    infos: tuple[InstantInfo, ...] = ()


SAVEPOINT = RecordOf(
    "HoodieSavepointMetadata",
    SavepointMetadata,
    (
        Member("savepointedBy", STRING),
        Member("savepointedAt", LONG),
        Member("comments", STRING),
        Member(
            "partitionMetadata",
            MapOf(
                RecordOf(
                    "HoodieSavepointPartitionMetadata",
                    SavepointPartition,
                    (Member("partitionPath", STRING), Member("savepointDataFile", ListOf(STRING))),
                )
            ),
        ),
        versioned(),
    ),
)
RESTORE_PLAN = RecordOf(
    "HoodieRestorePlan",
    RestorePlan,
    (
        Member("instantsToRollback", ListOf(INSTANT_INFO), []),
        versioned(2),
        optional("savepointToRestoreTimestamp", STRING),
    ),
)
RESTORE = RecordOf(
    "HoodieRestoreMetadata",
    RestoreMetadata,
    (
        Member("startRestoreTime", STRING),
        Member("timeTakenInMillis", LONG),
        Member("instantsToRollback", ListOf(STRING)),
        Member("hoodieRestoreMetadata", MapOf(ListOf(Nullable(ROLLBACK)))),
        versioned(),
        Member("restoreInstantInfo", ListOf(INSTANT_INFO), []),
    ),
)


def decode_savepoint(data: bytes, path: str) -> SavepointMetadata:
    """Read the body of a completed savepoint."""
    return decode_container(data, path, SAVEPOINT)


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    """Write the body of a completed savepoint."""
    return encode_container(metadata, SAVEPOINT)


def decode_restore_plan(data: bytes, path: str) -> RestorePlan:
    """Read the body of a requested restore."""
    return decode_container(data, path, RESTORE_PLAN)


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """Write the body of a requested restore."""
    return encode_container(plan, RESTORE_PLAN)


def decode_restore(data: bytes, path: str) -> RestoreMetadata:
    """Read the body of a completed restore."""
    return decode_container(data, path, RESTORE)


def encode_restore(metadata: RestoreMetadata) -> bytes:
    """Write the body of a completed restore."""
    return encode_container(metadata, RESTORE)
