"""What is requested of a replace commit: a clustering plan, or nothing in particular."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.container import decode_container, encode_container
from lakewright.format.hudi.metadata.shapes import (
    BOOLEAN,
    DOUBLE,
    INT,
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
class ClusteringSlice:
    """One input file slice, by full paths; ``base_file`` is empty for a slice of logs alone."""

    base_file: str | None
    log_files: tuple[str, ...]
    file_id: str
    partition: str
    bootstrap_file: str | None = ""
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices that are rewritten together."""

    slices: tuple[ClusteringSlice, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    output_groups: int | None = 1
    extra: Mapping[str, str] = field(default_factory=dict)
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringStrategy:
    """Which class carries a plan out, and its settings."""

    class_name: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    version: int | None = 1


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """The groups of slices that a clustering rewrites."""

    groups: tuple[ClusteringGroup, ...] = ()
    strategy: ClusteringStrategy | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    version: int | None = 1
    preserves_meta_columns: bool | None = True
    missing_partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplacePlan:
    """The body of a requested replace commit; all empty unless it names slices that it rewrites."""

    operation: str | None = None
    clustering: ClusteringPlan | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    version: int | None = None

    @property
    def is_service(self) -> bool:
        """Whether it is a clustering, which any process may carry out.

        An overwrite that moves rows names its slices in the same form, and is its writer's alone.
        """
        return self.clustering is not None and self.operation != "INSERT_OVERWRITE"


_TEXT = Nullable(STRING, null_is="", writes_null=False)
_SLICE = RecordOf(
    "HoodieSliceInfo",
    ClusteringSlice,
    (
        optional("dataFilePath", STRING),
        listed("deltaFilePaths", STRING),
        Member("fileId", _TEXT),
        Member("partitionPath", _TEXT, None),
        optional("bootstrapFilePath", STRING),
        versioned(),
    ),
)
_GROUP = RecordOf(
    "HoodieClusteringGroup",
    ClusteringGroup,
    (
        listed("slices", _SLICE),
        mapped("metrics", DOUBLE),
        Member("numOutputFileGroups", Nullable(INT, null_first=False), 1),
        mapped("extraMetadata", STRING, writes_null=True),
        versioned(),
    ),
)
_STRATEGY = RecordOf(
    "HoodieClusteringStrategy",
    ClusteringStrategy,
    (optional("strategyClassName", STRING), mapped("strategyParams", STRING), versioned()),
)
_PLAN = RecordOf(
    "HoodieClusteringPlan",
    ClusteringPlan,
    (
        listed("inputGroups", _GROUP),
        optional("strategy", _STRATEGY),
        mapped("extraMetadata", STRING),
        versioned(),
        optional("preserveHoodieMetadata", BOOLEAN),
        listed("missingSchedulePartitions", STRING, writes_null=True),
    ),
)
REPLACE_PLAN = RecordOf(
    "HoodieRequestedReplaceMetadata",
    ReplacePlan,
    (
        optional("operationType", STRING),
        optional("clusteringPlan", _PLAN),
        mapped("extraMetadata", STRING, writes_null=True),
        versioned(),
    ),
)


def decode_replace_plan(data: bytes, path: str) -> ReplacePlan:
    """Read the body of a requested replace commit or clustering; an empty one plans nothing."""
    return decode_container(data, path, REPLACE_PLAN) if data else ReplacePlan()


def encode_replace_plan(plan: ReplacePlan) -> bytes:
    """Write the body of a requested replace commit or clustering; Avro in every layout."""
    return encode_container(plan, REPLACE_PLAN)
