"""Decoders of metadata: properties, names, bodies, archives, paths."""

import uuid
from collections.abc import Callable

from lakewright.format.hudi.config import TableConfig
from lakewright.format.hudi.file_names import base_file, log_file
from lakewright.format.hudi.hashing_config import decode_hashing_config
from lakewright.format.hudi.history import ArchivedInstant, append_history
from lakewright.format.hudi.history_log import read_log
from lakewright.format.hudi.history_lsm import read_lsm
from lakewright.format.hudi.index_defs import (
    IndexDefinition,
    decode_index_defs,
    encode_index_defs,
)
from lakewright.format.hudi.instant_names import parse_instant_name
from lakewright.format.hudi.key_text import split_complex_key
from lakewright.format.hudi.metadata import (
    archived,
    clean,
    commit,
    compaction,
    indexing,
    replace_plan,
    restore,
    rollback,
)
from lakewright.format.hudi.partition_metadata import (
    PartitionMetadata,
    decode_partition_metadata,
    encode_partition_metadata,
    encode_partition_metadata_parquet,
)
from lakewright.format.hudi.partition_paths import partition_values
from lakewright.format.hudi.properties import parse_properties
from lakewright.format.hudi.simple_hash_meta import decode_hash_meta
from lakewright.model import schema as s
from lakewright.model.instant import Action, Instant, State
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from lakewright.table.pins import decode_pin

T1, T2 = "20261115103313001", "20261115103314041"
FOLDER = ".hoodie/timeline/history"

STAT = commit.WriteStat(
    "30969e0f-0",
    f"p=1/30969e0f-0_0-1-2_{T1}.parquet",
    "null",
    3,
    log_files=("a", "b"),
    cdc_stats={"c": 1},
    runtime_stats=commit.RuntimeStats(1, 2, 3),
)
COMMIT = commit.CommitMetadata(
    {"p=1": (STAT, STAT), "": ()}, False, {"schema": "{}"}, None, "UPSERT", {"p=1": ("x", "y")}
)
PROPERTIES = {
    "hoodie.table.name": "t\u00e9",
    "hoodie.table.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.partition.fields": "p:SIMPLE,q:TIMESTAMP",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.timeline.timezone": "UTC",
}
PARTITIONED = TableConfig.of({**PROPERTIES, "hoodie.table.partition.fields": "a,b,c,d,e"})
KINDS = s.Struct(
    (
        s.Field("a", s.Decimal(20, 5)),
        s.Field("b", s.TIMESTAMP),
        s.Field("c", s.DOUBLE),
        s.Field("d", s.DATE),
        s.Field("e", s.LONG),
    )
)
INFO = rollback.InstantInfo(T1, "commit")
UNDONE = rollback.RollbackMetadata(
    T1, 5, 1, (T1,), {"p": rollback.RolledBackPartition("p", ("x",), (), {"l": 1}, {})}, 1, (INFO,)
)
CLEAN_PLAN = clean.CleanPlan(
    clean.ActionInstant(T1, "commit", "COMPLETED"),
    T1,
    "KEEP_LATEST_COMMITS",
    files={"p": (clean.CleanFile("file:/t/p/x"),)},
)


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def properties(data: bytes) -> None:
    TableConfig.of(parse_properties(data))


def names(data: bytes) -> None:
    name = text(data)
    for layout in (1, 2):
        parse_instant_name(name, layout)
    base_file("p", name)
    log_file("p", name)
    split_complex_key(name, ["a", "b"])


def paths(data: bytes) -> None:
    partition_values(text(data), PARTITIONED, KINDS)


def stored(path: str, data: bytes, *others: tuple[str, bytes]) -> Storage:
    storage = open_storage(f"memory://fuzz-{uuid.uuid4()}")
    for name, content in ((path, data), *others):
        storage.write(name, content)
    return storage


def forget(storage: Storage) -> None:
    """The files of a memory storage live as long as the process, so they are taken away."""
    storage.delete([stat.path for stat in storage.list("", recursive=True)])


def lsm_manifest(data: bytes) -> None:
    storage = stored(f"{FOLDER}/manifest_1", data, LSM_FILE, (f"{FOLDER}/_version_", b"1"))
    try:
        list(read_lsm(storage, FOLDER))
    finally:
        forget(storage)


def lsm_file(data: bytes) -> None:
    storage = stored(LSM_FILE[0], data, (f"{FOLDER}/manifest_1", LSM_MANIFEST))
    try:
        list(read_lsm(storage, FOLDER))
    finally:
        forget(storage)


def archive_log(data: bytes) -> None:
    storage = stored(f"{FOLDER}/.commits_.archive.1_1-0-1", data)
    try:
        list(read_log(storage, FOLDER))
    finally:
        forget(storage)


def archived_entry(data: bytes) -> None:
    archived.EntryDecoder(archived.ARCHIVED_SCHEMA, "x").decode(data, 0)


def _archives() -> tuple[tuple[str, bytes], bytes, bytes]:
    """An archive of each layout, as our writers make it."""
    storage = open_storage("memory://fuzz-seeds")
    body = commit.encode_commit(COMMIT, 2, replace=False)
    done = Instant(T1, Action.COMMIT, State.COMPLETED, T1)
    cleaned = Instant(T2, Action.CLEAN, State.COMPLETED, T2)
    entries = [
        ArchivedInstant(done, body),
        ArchivedInstant(cleaned, clean.encode_clean(CLEANED), clean.encode_clean_plan(CLEAN_PLAN)),
    ]
    newer = TableConfig.of(PROPERTIES)
    append_history(storage, newer, entries)
    older = TableConfig.of({"hoodie.table.name": "t", "hoodie.table.version": "6"})
    append_history(storage, older, entries)
    name = f"{FOLDER}/{T1}_{T2}_0.parquet"
    return (
        (name, storage.read(name)),
        storage.read(f"{FOLDER}/manifest_1"),
        storage.read(".hoodie/archived/.commits_.archive.1_1-0-1"),
    )


CLEANED = clean.CleanMetadata(
    T2, 1, 1, T1, T1, {"p": clean.CleanedPartition("p", "K", ("x",), ("x",))}
)
LSM_FILE, LSM_MANIFEST, ARCHIVE_LOG = _archives()


def decoder(decode: Callable[[bytes, str], object]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        decode(data, "some/file")

    return run


TARGETS: dict[str, Callable[[bytes], None]] = {
    "properties": properties,
    "names": names,
    "partition_paths": paths,
    "commit": decoder(commit.decode_commit),
    "clean_plan": decoder(clean.decode_clean_plan),
    "clean": decoder(clean.decode_clean),
    "compaction_plan": decoder(compaction.decode_compaction_plan),
    "replace_plan": decoder(replace_plan.decode_replace_plan),
    "rollback_plan": decoder(rollback.decode_rollback_plan),
    "rollback": decoder(rollback.decode_rollback),
    "restore_plan": decoder(restore.decode_restore_plan),
    "restore": decoder(restore.decode_restore),
    "savepoint": decoder(restore.decode_savepoint),
    "index_plan": decoder(indexing.decode_index_plan),
    "index_commit": decoder(indexing.decode_index_commit),
    "partition_metadata": decoder(decode_partition_metadata),
    "index_defs": decoder(decode_index_defs),
    "hashing_config": decoder(decode_hashing_config),
    "hashing_meta": decoder(decode_hash_meta),
    "pin": decoder(decode_pin),
    "archived_entry": archived_entry,
    "archive_log": archive_log,
    "archive_manifest": lsm_manifest,
    "archive_file": lsm_file,
}
SEEDS: dict[str, list[bytes]] = {
    "pin": [b'{"id": "a", "until": 1.5, "why": "undo", "files": {"dt=1": ["x", "y"], "": []}}'],
    "properties": [
        b"".join(f"{k}={v}\n".encode() for k, v in PROPERTIES.items()),
        b"#c\n!d\na\\ b : c\\\n  d\\u00e9\n" + b"hoodie.table.name=x\nhoodie.table.version=6\n",
    ],
    "names": [
        f"{T1}_{T2}.replacecommit".encode(),
        f"{T1}.inflight".encode(),
        f"30969e0f-0_0-1-2_{T1}.parquet".encode(),
        f".30969e0f-0_{T1}.log.1_0-1-2.cdc".encode(),
        b"a:1,b:2",
    ],
    "partition_paths": [
        b"1.5/2024-02-29 13:14:15.5/1.0E10/2024-02-29/7",
        b"a=1/b=__HIVE_DEFAULT_PARTITION__/c=NaN/d=x%2Fy/e=-1",
    ],
    "commit": [
        commit.encode_commit(COMMIT, 2, replace=True),
        commit.encode_commit(COMMIT, 2, replace=False),
        commit.encode_commit(COMMIT, 1, replace=True),
    ],
    "clean_plan": [clean.encode_clean_plan(CLEAN_PLAN)],
    "clean": [clean.encode_clean(CLEANED)],
    "compaction_plan": [
        compaction.encode_compaction_plan(
            compaction.CompactionPlan(
                (compaction.CompactionOperation(T1, ("l",), "b", "f", "p", {"m": 1.5}),),
                strategy=compaction.CompactionStrategy("c", {"k": "v"}),
            )
        )
    ],
    "replace_plan": [
        replace_plan.encode_replace_plan(replace_plan.ReplacePlan()),
        replace_plan.encode_replace_plan(
            replace_plan.ReplacePlan(
                "CLUSTER",
                replace_plan.ClusteringPlan(
                    (
                        replace_plan.ClusteringGroup(
                            (replace_plan.ClusteringSlice("b", ("l",), "f", "p"),), {"m": 1.0}
                        ),
                    ),
                    replace_plan.ClusteringStrategy("c", {"k": "v"}),
                ),
                version=1,
            )
        ),
    ],
    "rollback_plan": [
        rollback.encode_rollback_plan(
            rollback.RollbackPlan(INFO, (rollback.RollbackRequest("p", "f", T1, ("x",), {"l": 9}),))
        )
    ],
    "rollback": [rollback.encode_rollback(UNDONE)],
    "restore_plan": [restore.encode_restore_plan(restore.RestorePlan((INFO,), 2, T1))],
    "restore": [
        restore.encode_restore(restore.RestoreMetadata(T2, 3, (T1,), {T1: (UNDONE, None)}))
    ],
    "savepoint": [
        restore.encode_savepoint(
            restore.SavepointMetadata(
                "me", 1, "why", {"p": restore.SavepointPartition("p", ("x", "y"))}
            )
        )
    ],
    "index_plan": [
        indexing.encode_index_plan(
            indexing.IndexPlan(1, (indexing.IndexPartition(1, "files", T1, {"a": "b"}),))
        )
    ],
    "index_commit": [
        indexing.encode_index_commit(
            indexing.IndexCommit(1, "x", (indexing.IndexPartition(1, "files", T1),))
        )
    ],
    "partition_metadata": [
        encode_partition_metadata(PartitionMetadata(T1, 2)),
        encode_partition_metadata_parquet(PartitionMetadata(T1, 2)),
    ],
    "index_defs": [
        encode_index_defs(
            [IndexDefinition("column_stats", "column_stats", "f", ("a", "b"), {"k": "v"}, "V2")]
        )
    ],
    "hashing_config": [
        b'{"expressions": "2024-.*,3;x,5", "defaultBucketNumber": 1, "rule": "regex",'
        b'"version": 1, "instant": "00000000000000"}'
    ],
    "hashing_meta": [
        b'{"version": 1, "partitionMeta": {"dt=1": {"bucketNumber": 4, "instant": "1"}},'
        b'"defaultBucketNumber": 256}'
    ],
    "archived_entry": [
        archived.encode_entry(archived.ArchivedEntry(COMMIT, time=T1, action="commit")),
        archived.encode_entry(
            archived.ArchivedEntry(
                clean_plan=CLEAN_PLAN, time=T2, action="clean", state="REQUESTED"
            )
        ),
    ],
    "archive_log": [ARCHIVE_LOG],
    "archive_manifest": [LSM_MANIFEST],
    "archive_file": [LSM_FILE[1]],
}
