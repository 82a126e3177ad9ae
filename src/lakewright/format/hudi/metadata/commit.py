"""What commits, delta commits and replace commits wrote: JSON in layout 1, Avro in layout 2."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakewright.format.hudi.metadata.container import (
    decode_container,
    encode_container,
    is_container,
)
from lakewright.format.hudi.metadata.json_text import decode_json, encode_json
from lakewright.format.hudi.metadata.shapes import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    ListOf,
    Member,
    Nullable,
    RecordOf,
    counter,
    listed,
    mapped,
    optional,
    versioned,
)

#: In the extra metadata of an overwrite that moved rows to other buckets and changed none: the
#: instant of the hashing config that the buckets had before.
RESCALED = "lakewright.rescaled-from"
#: In the extra metadata of a commit: the plan that it applies.
PLAN_ENTRY = "lakewright.plan"
#: In the extra metadata of a commit: the plan that it undoes. Rows that came back keep the commit
#: times that they had.
UNDO_ENTRY = "lakewright.plan.undone"


@dataclass(frozen=True, slots=True)
class RuntimeStats:
    """Milliseconds spent on one file."""

    total_scan_time: int = 0
    total_create_time: int = 0
    total_upsert_time: int = 0


@dataclass(frozen=True, slots=True)
class WriteStat:
    """What an action did to one file; ``path`` is relative to the table.

    ``prev_commit`` is the text ``null`` for a new file group, as real Hudi writes it.
    """

    file_id: str = ""
    path: str | None = None
    prev_commit: str | None = None
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    partition_path: str | None = None
    total_log_records: int = 0
    total_log_files: int = 0
    total_updated_records_compacted: int = 0
    num_inserts: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    file_size_in_bytes: int = 0
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] = ()
    cdc_stats: Mapping[str, int] = field(default_factory=dict)
    prev_base_file: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: RuntimeStats | None = None
    total_log_files_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_log_size_compacted: int = 0
    temp_path: str | None = None
    num_updates: int = 0


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """What a commit wrote and replaced.

    ``write_stats`` and ``replaced`` (file ids that vanish) are by partition path; ``extra``
    holds the writer's schema under ``schema``. ``replaced`` is empty for plain commits.
    """

    write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    compacted: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    version: int | None = None
    operation: str | None = None
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def schema(self) -> str | None:
        """The Avro schema of the table as this commit wrote it, without meta columns."""
        return self.extra.get("schema") or None


RUNTIME_STATS = RecordOf(
    "HoodieRuntimeStats",
    RuntimeStats,
    (counter("totalScanTime"), counter("totalCreateTime"), counter("totalUpsertTime")),
)
WRITE_STAT = RecordOf(
    "HoodieWriteStat",
    WriteStat,
    (
        Member("fileId", Nullable(STRING, null_is="", writes_null=False), None),
        optional("path", STRING),
        optional("prevCommit", STRING),
        counter("numWrites"),
        counter("numDeletes"),
        counter("numUpdateWrites"),
        counter("totalWriteBytes"),
        counter("totalWriteErrors"),
        optional("partitionPath", STRING),
        counter("totalLogRecords"),
        counter("totalLogFiles"),
        counter("totalUpdatedRecordsCompacted"),
        counter("numInserts"),
        counter("totalLogBlocks"),
        counter("totalCorruptLogBlock"),
        counter("totalRollbackBlocks"),
        counter("fileSizeInBytes"),
        optional("logVersion", INT),
        optional("logOffset", LONG),
        optional("baseFile", STRING),
        listed("logFiles", STRING, writes_null=True),
        mapped("cdcStats", LONG, writes_null=True),
        optional("prevBaseFile", STRING),
        optional("minEventTime", LONG),
        optional("maxEventTime", LONG),
        optional("runtimeStats", RUNTIME_STATS),
        counter("totalLogFilesCompacted"),
        counter("totalLogReadTimeMs"),
        counter("totalLogSizeCompacted"),
        optional("tempPath", STRING),
        counter("numUpdates"),
    ),
)
_STATS = (
    mapped("partitionToWriteStats", ListOf(WRITE_STAT)),
    Member("compacted", Nullable(BOOLEAN, null_is=False, writes_null=False), None),
    mapped("extraMetadata", STRING),
)
_OPERATION = optional("operationType", STRING)
_REPLACED = mapped("partitionToReplaceFileIds", ListOf(STRING))
COMMIT = RecordOf("HoodieCommitMetadata", CommitMetadata, (*_STATS, versioned(), _OPERATION))
REPLACE_COMMIT = RecordOf(
    "HoodieReplaceCommitMetadata", CommitMetadata, (*COMMIT.members, _REPLACED)
)
#: JSON bodies have no version; null in Avro means the same.
_JSON_COMMIT = RecordOf(
    "HoodieReplaceCommitMetadata",
    CommitMetadata,
    (*_STATS, optional("version", INT), _OPERATION, _REPLACED),
)


def decode_commit(data: bytes, path: str) -> CommitMetadata:
    """Read the body of a commit, delta commit or replace commit, pending or completed.

    An empty body, as some writers leave it while an action is pending, is an empty commit.
    """
    if not data:
        return CommitMetadata()
    if is_container(data):
        return decode_container(data, path, REPLACE_COMMIT)
    return decode_json(data, path, _JSON_COMMIT)


def encode_commit(metadata: CommitMetadata, layout: int, *, replace: bool) -> bytes:
    """Write the body of a commit; ``replace`` adds the replaced file ids, which only the
    completed file of a replace commit carries."""
    shape = REPLACE_COMMIT if replace else COMMIT
    if layout == 1:
        return encode_json(metadata, shape, omit=frozenset({"version"}))
    return encode_container(metadata, shape)
