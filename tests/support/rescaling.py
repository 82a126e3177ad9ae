"""Bucket tables to rescale, and the law that holds after every rescale and undo."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakewright.actions.buckets.rescale import RescaleResult, rescale
from lakewright.actions.buckets.rescale_plan import RescalePlan, plan_rescale
from lakewright.actions.buckets.rescale_undo import undo_rescale
from lakewright.actions.create import create_table
from lakewright.api.creating import plan_table
from lakewright.api.table import Table
from lakewright.format.hudi.bucket_hash import bucket_number, bucket_of
from lakewright.format.hudi.hashing_config import CONFIGS_FOLDER, decode_hashing_config
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.index.layout import layout_of
from lakewright.model.bucket_rules.rules import BucketRule, BucketRules
from lakewright.model.bucket_rules.text import parse_shipped
from lakewright.model.files import FileSlice
from lakewright.model.schema import RECORD_KEY, STRING, Field, Struct
from lakewright.model.table import TableId
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.port import Storage
from lakewright.table.file_index import FileIndex
from lakewright.table.reader.slice_reader import FileSliceReader
from lakewright.table.state import TableState, open_state
from support.servicing import servicing

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("sub", pa.int64()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int64()),
    ]
)
#: Kinds of tables on which everything is tried.
SHAPES: dict[str, dict[str, Any]] = {
    f"{'mor' if mor else 'cow'}-v{version}-{'parts' if parted else 'whole'}": {
        "mor": mor,
        "version": version,
        "partitioned": parted,
    }
    for mor, version, parted in itertools.product((False, True), (9, 6), (True, False))
}
_NUMBERS = itertools.count()


def memory() -> MemoryStorage:
    """Return a place where no table is yet."""
    return MemoryStorage(f"memory://rescale-{next(_NUMBERS)}/t", {})


def rules(*given: tuple[str, int], default: int = 4) -> BucketRules:
    """Return rules of patterns."""
    return BucketRules(tuple(BucketRule(pattern, n) for pattern, n in given), default)


def made_table(
    storage: Storage,
    *,
    mor: bool = False,
    version: int = 9,
    partitioned: bool = True,
    buckets: int = 4,
    key: str | Sequence[str] = "id",
    properties: Mapping[str, str] | None = None,
) -> Table:
    """Create a bucket table without rows."""
    details: dict[str, Any] = {
        "partition_by": ["p"] if partitioned else [],
        "order_by": "ts",
        "type": "MERGE_ON_READ" if mor else "COPY_ON_WRITE",
        "version": version,
        "buckets": buckets,
        "properties": properties or {},
    }
    create_table(storage, plan_table(TableId("", "t"), SCHEMA, key, details))
    return Table(storage)


def rows(ids: range, ts: int, parts: Sequence[str] = "xyz") -> list[dict[str, Any]]:
    """Return rows, each id in a partition of its own choice."""
    return [
        {"id": f"k{i}", "sub": i % 7, "p": parts[i // 5 % len(parts)], "ts": ts, "n": ts * 1000 + i}
        for i in ids
    ]


def table_of(given: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table."""
    return pa.Table.from_pylist(list(given), schema=SCHEMA)


def filled_table(storage: Storage, **shape: Any) -> Table:
    """Create a bucket table with a past: inserts, updates and deletes."""
    table = made_table(storage, **shape)
    table.upsert(table_of(rows(range(60), 1)))
    table.upsert(table_of(rows(range(0, 60, 2), 2)))
    table.delete(table_of(rows(range(0, 60, 10), 3)))
    return table


def plan(
    storage: Storage,
    wanted: BucketRules | None = None,
    partitions: Sequence[str] | None = None,
) -> RescalePlan:
    """Plan a rescale."""
    return plan_rescale(servicing(storage), rules=wanted, partitions=partitions)


def rescaled(
    storage: Storage,
    wanted: BucketRules | None = None,
    partitions: Sequence[str] | None = None,
    **options: str,
) -> RescaleResult:
    """Plan a rescale and carry it out."""
    work = servicing(storage, **options)
    return rescale(work, plan_rescale(work, rules=wanted, partitions=partitions))


def undone(storage: Storage, **given: Any) -> RescaleResult:
    """Undo rescales."""
    return undo_rescale(servicing(storage), **given)


def content(storage: Storage, *, meta: bool = True) -> Counter[tuple[Any, ...]]:
    """Return what our reader sees, with the columns of Hudi's that a rescale must keep."""
    kept = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key") if meta else ()
    found = Table(storage).scan(meta=meta).to_arrow().to_pylist()
    return Counter(tuple(row[name] for name in (*kept, *SCHEMA.names)) for row in found)


def by_hudi(path: str | Path) -> Counter[tuple[Any, ...]]:
    """Return what the hudi package sees."""
    import hudi

    batches = hudi.HudiTableBuilder.from_base_uri(str(path)).build().read()
    found = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
    return Counter(tuple(row[name] for name in SCHEMA.names) for row in found)


def live_groups(storage: Storage) -> dict[str, list[FileSlice]]:
    """Return the live file groups of every partition that has some."""
    parts = FileIndex(open_state(storage)).list_files_at()
    return {part.descriptor.path: list(part.file_slices) for part in parts if part.file_slices}


def check_law(storage: Storage) -> dict[str, int]:
    """Check what must hold at any time; return the number of buckets of each partition.

    The hashing config, as shipped Hudi reads it, says how many buckets a partition has; no
    bucket has two file groups, none is beyond the number, and every row lies in the bucket of
    its hash. The hashing metadata says the same numbers.
    """
    state = open_state(storage)
    layout = layout_of(state, {})
    assert layout.buckets is not None
    fields = layout.hash_fields or state.config.record_key
    numbers: dict[str, int] = {}
    for path, slices in live_groups(storage).items():
        count = layout.buckets.number_of(path)
        assert _shipped(storage, state, path) in (count, None), path
        found = [bucket_number(piece.group.file_id) for piece in slices]
        assert len(set(found)) == len(found) <= count, f"{path!r}: {sorted(map(str, found))}"
        for piece, bucket in zip(slices, found, strict=True):
            assert bucket is not None and bucket < count, f"{piece.group} of {count}"
            keys = _keys(state, piece)
            wrong = {key for key in bucket_of(keys, fields, count).tolist() if key != bucket}
            assert not wrong, f"{piece.group} holds rows of the buckets {sorted(wrong)}"
        numbers[path] = count
    for path, info in HashingStore(storage).fixed(state.timeline).items():
        if path in numbers and layout.buckets.version is not None:
            assert info.bucket_number == numbers[path] or info.instant < layout.buckets.version
    return numbers


def _keys(state: TableState, piece: FileSlice) -> pa.Array:
    reader = FileSliceReader.of(state).project(Struct((Field(RECORD_KEY, STRING),)))
    parts = [batch.column(0) for batch in reader.open(piece)]
    return pa.chunked_array(parts, pa.string()).combine_chunks()


def _shipped(storage: Storage, state: TableState, partition: str) -> int | None:
    """Return the number by Hudi's own rule: the newest config that is not pending."""
    pending = {instant.requested for instant in state.timeline.pending()}
    names = sorted(file.path for file in storage.list(CONFIGS_FOLDER))
    kept = [n for n in names if n.rpartition("/")[2].split(".")[0] not in pending]
    if not kept:
        return None
    config = decode_hashing_config(storage.read(kept[-1]), kept[-1])
    stored, pins = parse_shipped(config.expressions, config.default_bucket_number)
    return BucketCounts(stored, pins).number_of(partition)
