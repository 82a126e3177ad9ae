"""Histories of one file group, written by hand, and what merging one by one makes of them."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from lakewright.format.hudi.avro_schema import parse_avro_schema, to_avro_schema
from lakewright.format.hudi.log.deletes import OrderingValue
from lakewright.format.hudi.log.write import avro_block, data_header, delete_block, parquet_block
from lakewright.model.schema import META_FIELDS, Struct
from support.tiny_tables import TinyTable, at, base_name, log_name

GROUP = "00000000-0000-0000-0000-000000000000-0"
SCHEMA = (
    '{"type":"record","name":"t","fields":[{"name":"id","type":["null","string"]},'
    '{"name":"n","type":["null","long"]},{"name":"ts","type":["null","long"]},'
    '{"name":"_hoodie_is_deleted","type":["null","boolean"]}]}'
)
WHOLE = Struct((*META_FIELDS, *parse_avro_schema(SCHEMA).fields))
WHOLE_TEXT = to_avro_schema(WHOLE, "t", "n")


@dataclass(frozen=True)
class Record:
    key: str
    ts: int
    n: int
    deletes: bool = False


@dataclass(frozen=True)
class Block:
    """What one commit adds: records, or keys to delete, with or without ordering values."""

    records: tuple[Record, ...]
    tombstones: bool = False
    hard: bool = False
    avro: bool = True
    positions: bool = False


def table_of(records: list[Record], instant: str) -> pa.Table:
    count = len(records)
    return pa.table(
        {
            "_hoodie_commit_time": pa.array([instant] * count, pa.string()),
            "_hoodie_commit_seqno": pa.array(
                [f"{instant}_0_{i}" for i in range(count)], pa.string()
            ),
            "_hoodie_record_key": pa.array([r.key for r in records], pa.string()),
            "_hoodie_partition_path": pa.array([""] * count, pa.string()),
            "_hoodie_file_name": pa.array([GROUP] * count, pa.string()),
            "id": pa.array([r.key for r in records], pa.string()),
            "n": pa.array([r.n for r in records], pa.int64()),
            "ts": pa.array([r.ts for r in records], pa.int64()),
            "_hoodie_is_deleted": pa.array([r.deletes for r in records], pa.bool_()),
        }
    )


def base_bytes(
    records: list[Record], instant: str, rows: list[dict[str, Any]] | None = None
) -> bytes:
    """Return a base file of small row groups; ``rows`` replaces what the records would make."""
    table = table_of(records, instant)
    if rows is not None:
        table = pa.Table.from_pylist(rows, schema=table.schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2)
    return sink.getvalue()


def log_bytes(block: Block, minute: int, base: list[Record]) -> bytes:
    places = {r.key: i for i, r in enumerate(base)}
    records = list(block.records)
    where = None
    if block.positions and all(r.key in places for r in records):
        records.sort(key=lambda r: places[r.key])
        where = np.array([places[r.key] for r in records], dtype=np.uint64)
        if len(np.unique(where)) < len(where):
            where, records = None, list(block.records)
    header = data_header(
        at(minute), WHOLE_TEXT, positions=where, base_instant=None if where is None else at(1)
    )
    if block.tombstones:
        ordering = None if block.hard else [[OrderingValue("LongWrapper", r.ts)] for r in records]
        return delete_block([r.key for r in records], [""] * len(records), header, ordering)
    rows = table_of(records, at(minute))
    return avro_block(rows, header) if block.avro else parquet_block(rows, header)


def build(
    base: list[Record], blocks: list[Block], *, event_time: bool, version: int = 9
) -> TinyTable:
    mode = "EVENT_TIME_ORDERING" if event_time else "COMMIT_TIME_ORDERING"
    payload = "DefaultHoodieRecordPayload" if event_time else "OverwriteWithLatestAvroPayload"
    merge = {"hoodie__record__merge__mode": mode}
    if version == 6:
        merge = {"hoodie__compaction__payload__class": f"org.apache.hudi.common.model.{payload}"}
    ordering = {"hoodie__table__ordering__fields": "ts"} if event_time else {}
    table = TinyTable(version, partition_by="", mor=True, **merge, **ordering)
    table.commit(1, {"": {base_name(GROUP, 1): base_bytes(base, at(1))}}, schema=SCHEMA)
    for number, block in enumerate(blocks, 2):
        name = log_name(GROUP, 1, number - 1) if version == 6 else log_name(GROUP, number)
        data = log_bytes(block, number, base)
        table.commit(number, {"": {name: data}}, schema=SCHEMA)
    return table


def merged(base: list[Record], blocks: list[Block], *, event_time: bool) -> list[tuple[Any, ...]]:
    """Merge record after record: (record, hard delete or not, from a delete block or not)."""
    logs: dict[str, tuple[Record, bool, bool]] = {}
    for block in blocks:
        for record in block.records:
            hard = block.tombstones and block.hard
            gone = block.tombstones or record.deletes
            held = logs.get(record.key)
            if held is None or not event_time:
                logs[record.key] = (record, hard, gone)
            elif block.tombstones and held[1]:
                continue
            elif hard or held[1] or record.ts >= held[0].ts:
                logs[record.key] = (record, hard, gone)
    rows = []
    for row in base:
        held = logs.get(row.key)
        if held is None or (event_time and not held[1] and row.ts > held[0].ts):
            rows.append(row)
            logs.pop(row.key, None)
    rows += [record for record, _, gone in logs.values() if not gone]
    return sorted((r.key, r.ts, r.n) for r in rows)


keys = st.sampled_from("abcde")
numbers = st.integers(0, 9)
base_files = st.lists(
    st.builds(Record, keys, st.integers(0, 3), numbers), max_size=5, unique_by=lambda r: r.key
)
log_blocks = st.lists(
    st.builds(
        Block,
        records=st.lists(
            st.builds(Record, keys, st.integers(0, 3), numbers, st.booleans()),
            min_size=1,
            max_size=4,
        ).map(tuple),
        tombstones=st.booleans(),
        hard=st.booleans(),
        avro=st.booleans(),
        positions=st.booleans(),
    ),
    max_size=4,
)
