"""Cleaning: the plan of which files go, and the record of which went."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.container import decode_container, encode_container
from lakewright.format.hudi.metadata.shapes import (
    BOOLEAN,
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
class ActionInstant:
    """An instant as a cleaner's plan names it; the state is upper case."""

    timestamp: str
    action: str
    state: str


@dataclass(frozen=True, slots=True)
class CleanFile:
    """A file to delete, by its full name."""

    path: str | None
    is_bootstrap_base_file: bool | None = False


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """Which files a clean deletes, by partition.

    ``old_files`` is where version 1 plans keep file names; later ones fill ``files``.
    """

    earliest_to_retain: ActionInstant | None
    last_completed: str
    policy: str
    old_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    version: int | None = 2
    files: Mapping[str, tuple[CleanFile, ...]] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """What a clean deleted in one partition; names are relative to it from version 2 on."""

    partition: str
    policy: str
    patterns: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    is_partition_deleted: bool | None = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """What a clean deleted; ``earliest_to_retain`` is the oldest instant still readable.

    It is empty under policies that count versions instead of commits.
    """

    start: str
    millis: int
    total_deleted: int
    earliest_to_retain: str
    last_completed: str
    partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    version: int | None = 2
    bootstrap_partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


CLEAN_PLAN = RecordOf(
    "HoodieCleanerPlan",
    CleanPlan,
    (
        optional(
            "earliestInstantToRetain",
            RecordOf(
                "HoodieActionInstant",
                ActionInstant,
                (Member("timestamp", STRING), Member("action", STRING), Member("state", STRING)),
            ),
        ),
        Member("lastCompletedCommitTimestamp", STRING, ""),
        Member("policy", STRING),
        mapped("filesToBeDeletedPerPartition", ListOf(STRING)),
        versioned(),
        mapped(
            "filePathsToBeDeletedPerPartition",
            ListOf(
                RecordOf(
                    "HoodieCleanFileInfo",
                    CleanFile,
                    (optional("filePath", STRING), optional("isBootstrapBaseFile", BOOLEAN)),
                )
            ),
        ),
        listed("partitionsToBeDeleted", STRING),
        mapped("extraMetadata", STRING),
    ),
)
CLEANED_PARTITION = RecordOf(
    "HoodieCleanPartitionMetadata",
    CleanedPartition,
    (
        Member("partitionPath", STRING),
        Member("policy", STRING),
        Member("deletePathPatterns", ListOf(STRING)),
        Member("successDeleteFiles", ListOf(STRING)),
        Member("failedDeleteFiles", ListOf(STRING)),
        optional("isPartitionDeleted", BOOLEAN),
    ),
)
CLEAN = RecordOf(
    "HoodieCleanMetadata",
    CleanMetadata,
    (
        Member("startCleanTime", STRING),
        Member("timeTakenInMillis", LONG),
        Member("totalFilesDeleted", INT),
        Member("earliestCommitToRetain", STRING),
        Member("lastCompletedCommitTimestamp", STRING, ""),
        Member("partitionMetadata", MapOf(CLEANED_PARTITION)),
        versioned(),
        mapped("bootstrapPartitionMetadata", CLEANED_PARTITION),
        mapped("extraMetadata", STRING),
    ),
)


def decode_clean_plan(data: bytes, path: str) -> CleanPlan:
    """Read the body of a requested clean."""
    return decode_container(data, path, CLEAN_PLAN)


def encode_clean_plan(plan: CleanPlan) -> bytes:
    """Write the body of a requested clean."""
    return encode_container(plan, CLEAN_PLAN)


def decode_clean(data: bytes, path: str) -> CleanMetadata:
    """Read the body of a completed clean."""
    return decode_container(data, path, CLEAN)


def encode_clean(metadata: CleanMetadata) -> bytes:
    """Write the body of a completed clean."""
    return encode_container(metadata, CLEAN)


def planned_names(plan: CleanPlan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Stream the file names of a plan by partition; full names count by their last part alone.

    A table may have moved since it was planned.
    """
    for partition, names in plan.old_files.items():
        yield partition, names
    for partition, files in plan.files.items():
        yield partition, tuple(_last(file.path or "") for file in files)


def cleaned_names(metadata: CleanMetadata) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Stream the names of the files that a clean meant to delete, by partition."""
    for partition, entry in metadata.partitions.items():
        yield partition, tuple(_last(name) for name in (*entry.deleted, *entry.failed))


def _last(path: str) -> str:
    return path.rpartition("/")[2]
