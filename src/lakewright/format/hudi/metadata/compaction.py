"""Compaction and log compaction: the plan of which slices are merged."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.container import decode_container, encode_container
from lakewright.format.hudi.metadata.shapes import (
    BOOLEAN,
    DOUBLE,
    STRING,
    Member,
    Nullable,
    RecordOf,
    listed,
    mapped,
    optional,
    versioned,
)


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file slice to merge; file names alone in plans of version 2, full paths before."""

    base_instant: str | None
    log_files: tuple[str, ...]
    base_file: str | None
    file_id: str
    partition: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    bootstrap_file: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionStrategy:
    """Which class carries a plan out; log compaction is told by its name."""

    class_name: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The slices that a compaction merges."""

    operations: tuple[CompactionOperation, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    version: int | None = 2
    strategy: CompactionStrategy | None = None
    preserves_meta_columns: bool | None = True
    missing_partitions: tuple[str, ...] = ()


_TEXT = Nullable(STRING, null_is="", writes_null=False)
_OPERATION = RecordOf(
    "HoodieCompactionOperation",
    CompactionOperation,
    (
        Member("baseInstantTime", Nullable(STRING)),
        listed("deltaFilePaths", STRING),
        optional("dataFilePath", STRING),
        Member("fileId", _TEXT),
        Member("partitionPath", _TEXT, None),
        mapped("metrics", DOUBLE),
        optional("bootstrapFilePath", STRING),
    ),
)
_STRATEGY = RecordOf(
    "HoodieCompactionStrategy",
    CompactionStrategy,
    (optional("compactorClassName", STRING), mapped("strategyParams", STRING), versioned()),
)
COMPACTION_PLAN = RecordOf(
    "HoodieCompactionPlan",
    CompactionPlan,
    (
        listed("operations", _OPERATION),
        mapped("extraMetadata", STRING),
        versioned(),
        optional("strategy", _STRATEGY),
        Member("preserveHoodieMetadata", Nullable(BOOLEAN, null_first=False), False),
        listed("missingSchedulePartitions", STRING),
    ),
)


def decode_compaction_plan(data: bytes, path: str) -> CompactionPlan:
    """Read the body of a requested compaction or log compaction."""
    return decode_container(data, path, COMPACTION_PLAN)


def encode_compaction_plan(plan: CompactionPlan) -> bytes:
    """Write the body of a requested compaction or log compaction."""
    return encode_container(plan, COMPACTION_PLAN)
