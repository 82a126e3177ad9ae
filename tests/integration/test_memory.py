"""Reading streams: the memory for a file group does not grow with the group."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.format.hudi.avro_schema import parse_avro_schema, to_avro_schema
from lakewright.format.hudi.log.write import data_header, delete_block, parquet_block
from lakewright.model.schema import META_FIELDS, Struct
from lakewright.storage.open import open_storage
from support.tiny_tables import TinyTable, at, base_name, log_name

MB = 1 << 20
GROUP = "00000000-0000-0000-0000-000000000000-0"
TEXT = "x" * 180
SCHEMA = (
    '{"type":"record","name":"t","fields":[{"name":"id","type":["null","string"]},'
    '{"name":"ts","type":["null","long"]},{"name":"text","type":["null","string"]}]}'
)
WHOLE = Struct((*META_FIELDS, *parse_avro_schema(SCHEMA).fields))
UPDATED = 125_000
#: Bytes of one row, decoded: its key twice, and the text.
ROW_BYTES = 2 * 12 + 8 + len(TEXT)
#: What reading may hold at any time, however large the group is.
ARROW_LIMIT = 200 * MB
RESIDENT_LIMIT = 600 * MB

READ = """
import json, re, sys
import pyarrow as pa
from lakewright.actions.scan import ScanRequest, plan_scan
from lakewright.engine.local.scan import scan_batches
from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
plan = plan_scan(open_state(open_storage(sys.argv[1])), ScanRequest())
rows = total = late = 0
for batch in scan_batches(plan):
    rows += batch.num_rows
    total += batch.nbytes
    late += sum(1 for v in batch.column("ts").unique().to_pylist() if v == 200)
# Not ru_maxrss: it starts from the memory of the process that started this one.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(json.dumps({
    "rows": rows, "bytes": total, "batches_with_updates": late,
    "arrow": pa.default_memory_pool().max_memory(),
    "resident": int(peak[1]) * 1024,
}))
"""


def rows_of(first: int, count: int, time: int, instant: str) -> pa.Table:
    keys = pa.array(np.arange(first, first + count)).cast(pa.string())
    constants = {
        "_hoodie_commit_time": instant,
        "_hoodie_commit_seqno": "s",
        "_hoodie_partition_path": "",
        "_hoodie_file_name": "f",
        "text": TEXT,
    }
    columns = {name: pa.repeat(value, count) for name, value in constants.items()}
    columns |= {"_hoodie_record_key": keys, "id": keys}
    columns["ts"] = pa.array(np.full(count, time))
    return pa.table({field.name: columns[field.name] for field in WHOLE})


def make_table(folder: Path, rows: int, *, positions: bool) -> None:
    """Write one file group: a base file of ``rows`` rows, and logs over a part of them."""
    table = TinyTable(
        partition_by="",
        mor=True,
        storage=open_storage(folder),
        hoodie__record__merge__mode="EVENT_TIME_ORDERING",
        hoodie__table__ordering__fields="ts",
    )
    piece = 500_000
    with pq.ParquetWriter(folder / base_name(GROUP, 1), rows_of(0, 1, 0, at(1)).schema) as writer:
        for first in range(0, rows, piece):
            writer.write_table(rows_of(first, min(piece, rows - first), 100, at(1)))
    table.commit(1, {"": {}}, schema=SCHEMA)
    header = to_avro_schema(WHOLE, "t", "n")
    for minute, time in ((2, 200), (3, 50)):  # newer than the base, then too late
        where = np.arange(UPDATED, dtype=np.uint64) if positions else None
        base = at(1) if positions else None
        block = parquet_block(
            rows_of(0, UPDATED, time, at(minute)),
            data_header(at(minute), header, positions=where, base_instant=base),
        )
        table.commit(minute, {"": {log_name(GROUP, minute): block}}, schema=SCHEMA)
    gone = [str(key) for key in range(rows - 1000, rows)]
    where = np.arange(rows - 1000, rows, dtype=np.uint64) if positions else None
    head = data_header(at(4), header, positions=where, base_instant=at(1) if positions else None)
    block = delete_block(gone, [""] * len(gone), head)
    table.commit(4, {"": {log_name(GROUP, 4): block}}, schema=SCHEMA)


def read_apart(folder: Path) -> dict[str, int]:
    """Read the table in a process of its own, and return what it saw and what it took."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def check(folder: Path, rows: int, *, positions: bool) -> None:
    make_table(folder, rows, positions=positions)
    seen = read_apart(folder)
    assert seen["rows"] == rows - 1000
    assert seen["bytes"] > 0.95 * rows * ROW_BYTES
    assert seen["batches_with_updates"] >= 1
    assert seen["arrow"] < ARROW_LIMIT
    assert seen["resident"] < RESIDENT_LIMIT


@pytest.mark.parametrize("positions", [True, False], ids=["by position", "by key"])
def test_a_group_larger_than_the_limit_is_read_within_it(tmp_path: Path, positions: bool) -> None:
    rows = 2_500_000
    assert rows * ROW_BYTES > 1.5 * ARROW_LIMIT
    check(tmp_path, rows, positions=positions)


@pytest.mark.slow
@pytest.mark.parametrize("positions", [True, False], ids=["by position", "by key"])
def test_two_gigabytes_are_read_within_the_same_limit(tmp_path: Path, positions: bool) -> None:
    rows = 10_500_000
    assert rows * ROW_BYTES > 2 << 30
    check(tmp_path, rows, positions=positions)
