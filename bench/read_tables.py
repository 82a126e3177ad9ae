"""The tables that reading is measured on, written in Hudi's format by our own writers.

Eight columns, keys of 32 hexadecimal digits, 20 partitions of 4 buckets. One set of base files
serves a copy-on-write table and two merge-on-read tables, one per merge mode, whose logs (parquet
blocks with record positions) update a tenth of the rows, uniformly at random; a tenth of those
updates are late, so that they lose where event time decides. Beside them lie the compacted rows as
plain parquet, once per merge mode. Files that are the same are hard links.
"""

import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.actions.create import create_table, plan_create
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.base_write import BaseFileSpec, write_base
from lakewright.format.hudi.bucket_hash import bucket_file_id, bucket_of
from lakewright.format.hudi.file_names import base_file_name, log_file_name
from lakewright.format.hudi.log.write import data_header, parquet_block
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat, encode_commit
from lakewright.format.hudi.partition_metadata import PartitionMetadata, encode_partition_metadata
from lakewright.model.schema import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    META_FIELDS,
    STRING,
    Field,
    Struct,
)
from lakewright.model.table import MergeMode, TableDescriptor, TableId, TableType
from lakewright.storage.open import open_storage

PARTITIONS, BUCKETS = 20, 4
FIRST, FIRST_DONE = "20261101000000000", "20261101000100000"
SECOND, SECOND_DONE = "20261102000000000", "20261102000100000"
SCHEMA = Struct(
    (
        Field("id", STRING),
        Field("ts", LONG),
        Field("amount", DOUBLE),
        Field("qty", INT),
        Field("city", STRING),
        Field("flag", BOOLEAN),
        Field("note", STRING),
        Field("dt", STRING),
    )
)
CITIES = pa.array([f"city_{number:03d}" for number in range(200)])
MODES = {"commit": MergeMode.COMMIT_TIME_ORDERING, "event": MergeMode.EVENT_TIME_ORDERING}
VERSION = 3


@dataclass(frozen=True, slots=True)
class Tables:
    """Where the tables of one size lie."""

    root: Path
    rows: int

    @property
    def copy_on_write(self) -> Path:
        return self.root / "cow"

    @property
    def base_rows(self) -> Path:
        """The live files of the copy-on-write table, as a plain folder."""
        return self.root / "cow-plain"

    def merge_on_read(self, mode: str) -> Path:
        return self.root / f"mor-{mode}"

    def compacted(self, mode: str) -> Path:
        return self.root / f"compacted-{mode}"

    def updates(self, mode: str) -> Path:
        """The rows that win over base rows, for peers that make their own tables."""
        return self.root / f"updates-{mode}"


def tables(root: Path, rows: int) -> Tables:
    """Return the tables of a size, making them if need be."""
    made = Tables(root / f"read-{rows}-v{VERSION}", rows)
    if not (made.root / "done").exists():
        shutil.rmtree(made.root, ignore_errors=True)
        _make(made)
        (made.root / "done").touch()
    return made


class _Stats:
    """What the commits wrote, gathered from threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.base: dict[str, list[WriteStat]] = {}
        self.logs: dict[str, list[WriteStat]] = {}

    def add(self, into: dict[str, list[WriteStat]], partition: str, stat: WriteStat) -> None:
        with self._lock:
            into.setdefault(partition, []).append(stat)


def _make(made: Tables) -> None:
    tables = {
        made.copy_on_write: (TableType.COPY_ON_WRITE, MergeMode.EVENT_TIME_ORDERING),
        **{made.merge_on_read(m): (TableType.MERGE_ON_READ, mode) for m, mode in MODES.items()},
    }
    for path, (kind, mode) in tables.items():
        ordering = ("ts",) if mode is MergeMode.EVENT_TIME_ORDERING else ()
        descriptor = TableDescriptor(
            TableId("", "bench"), SCHEMA, ("id",), kind, None, ("dt",), ordering
        )
        path.mkdir(parents=True)
        create_table(open_storage(path), plan_create(descriptor, merge_mode=mode))
    stats = _Stats()
    with ThreadPoolExecutor() as pool:
        for _ in pool.map(lambda number: _partition(made, number, stats), range(PARTITIONS)):
            pass
    for path, (kind, _) in tables.items():
        action = "commit" if kind is TableType.COPY_ON_WRITE else "deltacommit"
        _commit(path, FIRST, FIRST_DONE, action, "BULK_INSERT", stats.base)
        if kind is TableType.MERGE_ON_READ:
            _commit(path, SECOND, SECOND_DONE, action, "UPSERT", stats.logs)


def _partition(made: Tables, number: int, stats: _Stats) -> None:
    random = np.random.default_rng([made.rows, number])
    count = made.rows // PARTITIONS
    day = f"2026-10-{number + 1:02d}"
    keys = pa.array(np.frombuffer(random.bytes(16 * count).hex().encode(), "S32").astype(str))
    ts = random.integers(1_000_000, 2_000_000, count)
    rows = _rows(random, keys, ts, day)
    buckets = bucket_of(keys, ("id",), BUCKETS)
    for bucket in range(BUCKETS):
        chosen = np.flatnonzero(buckets == bucket)
        _group(made, random, rows.take(pa.array(chosen)), bucket, day, stats)


def _rows(random: np.random.Generator, keys: pa.Array, ts: np.ndarray, day: str) -> pa.Table:
    count = len(keys)
    return pa.table(
        {
            "id": keys,
            "ts": pa.array(ts, pa.int64()),
            "amount": np.round(random.random(count) * 1000, 2),
            "qty": random.integers(1, 100, count, dtype=np.int32),
            "city": CITIES.take(pa.array(random.integers(0, len(CITIES), count))),
            "flag": random.random(count) < 0.5,
            "note": pa.array(np.char.add("note ", random.integers(0, 10**6, count).astype(str))),
            "dt": pa.array([day] * count),
        }
    )


def _group(
    made: Tables, random: np.random.Generator, rows: pa.Table, bucket: int, day: str, stats: _Stats
) -> None:
    partition = f"dt={day}"
    file_id = bucket_file_id(bucket, uuid.UUID(bytes=random.bytes(16), version=4))
    token = f"{bucket}-0-0"
    name = base_file_name(file_id, token, FIRST)
    spec = BaseFileSpec(
        SCHEMA, "bench_record", "hoodie.bench", name, partition, FIRST, bucket, ("id",)
    )
    path = made.copy_on_write / partition / name
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as sink:
        write_base(sink, rows.append_column("_hoodie_record_key", rows["id"]).to_batches(), spec)
    for folder in (made.base_rows, *(made.merge_on_read(mode) for mode in MODES)):
        _link(path, folder / partition / name)
    size, count = path.stat().st_size, rows.num_rows
    stats.add(
        stats.base,
        partition,
        WriteStat(
            file_id=file_id,
            path=f"{partition}/{name}",
            prev_commit="null",
            num_writes=count,
            num_inserts=count,
            total_write_bytes=size,
            file_size_in_bytes=size,
            partition_path=partition,
        ),
    )
    positions = np.sort(random.choice(count, count // 10, replace=False))
    old = rows["ts"].to_numpy()[positions]
    late = random.random(len(positions)) < 0.1
    ts = np.where(late, old - 1 - random.integers(0, 1000, len(old)), old + 1_000_000)
    updates = _rows(random, rows["id"].take(pa.array(positions)).combine_chunks(), ts, day)
    _write_log(made, updates, positions, (partition, file_id, name, token), stats)
    everything = np.ones(count, dtype=bool)
    for mode in MODES:
        wins = ~late if mode == "event" else np.ones(len(late), dtype=bool)
        winners = updates.filter(pa.array(wins))
        kept = everything.copy()
        kept[positions[wins]] = False
        merged = pa.concat_tables([rows.filter(pa.array(kept)), winners])
        plain = SCHEMA.names[:-1]
        _write_plain(merged.select(plain), made.compacted(mode) / partition / name)
        _write_plain(winners.select(plain), made.updates(mode) / partition / name)


def _write_plain(rows: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    low = ["city", "flag", "qty"]
    pq.write_table(rows.combine_chunks(), path, compression="snappy", use_dictionary=low)


def _write_log(
    made: Tables,
    updates: pa.Table,
    positions: np.ndarray,
    place: tuple[str, str, str, str],
    stats: _Stats,
) -> None:
    partition, file_id, base, token = place
    count = updates.num_rows
    meta = {
        "_hoodie_commit_time": pa.array([SECOND] * count),
        "_hoodie_commit_seqno": pa.array([f"{SECOND}_0_{i}" for i in range(count)]),
        "_hoodie_record_key": updates["id"],
        "_hoodie_partition_path": pa.array([partition] * count),
        "_hoodie_file_name": pa.array([file_id] * count),
    }
    rows = pa.table({**meta, **{name: updates[name] for name in updates.schema.names}})
    header = data_header(
        SECOND,
        _with_meta(),
        positions=positions.astype(np.uint64),
        base_instant=FIRST,
    )
    block = parquet_block(rows, header)
    name = log_file_name(file_id, SECOND, 1, token)
    first, *others = (made.merge_on_read(mode) / partition / name for mode in MODES)
    first.write_bytes(block)
    for other in others:
        _link(first, other)
    stats.add(
        stats.logs,
        partition,
        WriteStat(
            file_id=file_id,
            path=f"{partition}/{name}",
            prev_commit=FIRST,
            num_writes=count,
            num_update_writes=count,
            total_write_bytes=len(block),
            file_size_in_bytes=len(block),
            partition_path=partition,
            log_version=1,
            log_offset=0,
            base_file=base,
            log_files=(name,),
        ),
    )


def _with_meta() -> str:
    return to_avro_schema(Struct((*META_FIELDS, *SCHEMA.fields)), "bench_record", "hoodie.bench")


def _commit(
    path: Path, at: str, done: str, action: str, operation: str, stats: dict[str, list[WriteStat]]
) -> None:
    schema = to_avro_schema(SCHEMA, "bench_record", "hoodie.bench")
    metadata = CommitMetadata(
        write_stats={p: tuple(s) for p, s in sorted(stats.items())},
        extra={"schema": schema},
        operation=operation,
    )
    timeline = path / ".hoodie" / "timeline"
    timeline.mkdir(parents=True, exist_ok=True)
    inflight = f"{at}.inflight" if action == "commit" else f"{at}.{action}.inflight"
    (timeline / f"{at}.{action}.requested").write_bytes(b"")
    (timeline / inflight).write_bytes(
        encode_commit(CommitMetadata(operation=operation), 2, replace=False)
    )
    (timeline / f"{at}_{done}.{action}").write_bytes(encode_commit(metadata, 2, replace=False))
    for partition in stats:
        marker = path / partition / ".hoodie_partition_metadata"
        if not marker.exists():
            marker.write_bytes(encode_partition_metadata(PartitionMetadata.of(partition, at)))


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.link(source, target)


def many_files(root: Path, count: int) -> Path:
    """Return a copy-on-write table of so many tiny base files in a hundred partitions."""
    made = root / f"many-{count}-v{VERSION}"
    if (made / "done").exists():
        return made / "t"
    shutil.rmtree(made, ignore_errors=True)
    path = made / "t"
    path.mkdir(parents=True)
    descriptor = TableDescriptor(
        TableId("", "many"), SCHEMA, ("id",), TableType.COPY_ON_WRITE, None, ("dt",), ("ts",)
    )
    create_table(open_storage(path), plan_create(descriptor))
    random = np.random.default_rng(1)
    stats: dict[str, list[WriteStat]] = {}
    for number in range(count):
        day = f"{number % 100:04d}-01-01"
        partition = f"dt={day}"
        file_id = str(uuid.UUID(bytes=random.bytes(16), version=4)) + "-0"
        name = base_file_name(file_id, "0-0-0", FIRST)
        target = path / partition / name
        target.parent.mkdir(exist_ok=True)
        if number < 100:
            rows = _rows(random, pa.array([f"k{number}"]), np.array([1]), day)
            spec = BaseFileSpec(SCHEMA, "r", "hoodie.many", name, partition, FIRST, 0, ("id",))
            with target.open("wb") as sink:
                write_base(
                    sink, rows.append_column("_hoodie_record_key", rows["id"]).to_batches(), spec
                )
            first = target
        else:
            shutil.copyfile(first, target)
        size = target.stat().st_size
        stats.setdefault(partition, []).append(
            WriteStat(
                file_id=file_id,
                path=f"{partition}/{name}",
                prev_commit="null",
                num_writes=1,
                num_inserts=1,
                total_write_bytes=size,
                file_size_in_bytes=size,
                partition_path=partition,
            )
        )
    _commit(path, FIRST, FIRST_DONE, "commit", "BULK_INSERT", stats)
    (made / "done").touch()
    return path
