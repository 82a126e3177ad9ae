"""Tables made of our files alone, read by another implementation of the format.

Base files, log blocks of every kind, footers and commits are written by ``format/hudi`` into a
bare folder; the ``hudi`` wheel must return the rows that went in.
"""

import datetime as dt
import io
import zlib
from collections.abc import Mapping
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.base_write import BaseFileSpec, write_base
from lakewright.format.hudi.log.deletes import wrap_ordering
from lakewright.format.hudi.log.write import (
    avro_block,
    data_header,
    delete_block,
    parquet_block,
    rollback_block,
)
from lakewright.format.hudi.metadata.commit import CommitMetadata, WriteStat, encode_commit
from lakewright.format.hudi.properties import render_properties
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    META_FIELDS,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    List,
    Map,
    Struct,
)

hudi = pytest.importorskip("hudi", reason="the hudi wheel is not installed")

SCHEMA = Struct(
    (
        Field("id", STRING),
        Field("region", STRING),
        Field("ts", LONG),
        Field("ok", BOOLEAN),
        Field("d", DOUBLE),
        Field("dec", Decimal(20, 4)),
        Field("day", DATE),
        Field("at", TIMESTAMP),
        Field("raw", BINARY),
        Field("who", Struct((Field("name", STRING), Field("age", INT)))),
        Field("tags", List(STRING)),
        Field("attrs", Map(INT)),
    )
)
NAME, SPACE = "t_record", "hoodie.t"
BASE, UPDATE, UNDO = "20260101000000000", "20260102000000000", "20260103000000000"
FILE_ID = "1f3c4a6e-0000-4000-8000-000000000001-0"
META = Struct((*META_FIELDS, *SCHEMA.fields))


def row(i: int, ts: int, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": f"k{i}",
        "region": "eu",
        "ts": ts,
        "ok": i % 2 == 0,
        "d": i / 8,
        "dec": Number(i * 10001).scaleb(-4),
        "day": dt.date(2026, 1, 1 + i),
        "at": dt.datetime(2026, 1, 1, 0, 0, 0, i, tzinfo=dt.UTC),
        "raw": bytes([255] * i),
        "who": None if i % 3 == 0 else {"name": f"p{i}", "age": i},
        "tags": ["ü"] * (i % 3),
        "attrs": [("a", i)],
    }
    return made | changes


def rows_table(rows: list[dict[str, Any]], instant: str) -> pa.Table:
    table = pa.Table.from_pylist(rows, to_arrow_schema(SCHEMA))
    count = len(rows)
    meta = {
        "_hoodie_commit_time": [instant] * count,
        "_hoodie_commit_seqno": [f"{instant}_0_{i}" for i in range(count)],
        "_hoodie_record_key": [made["id"] for made in rows],
        "_hoodie_partition_path": ["region=eu"] * count,
        "_hoodie_file_name": [FILE_ID] * count,
    }
    for name, values in meta.items():
        table = table.append_column(name, pa.array(values, pa.string()))
    return table


class Maker:
    """Writes one table, a commit at a time."""

    def __init__(self, root: Path, version: int, mor: bool) -> None:
        self._root = root
        self._layout = 1 if version == 6 else 2
        self._mor = mor
        timeline = ".hoodie" if version == 6 else ".hoodie/timeline"
        self._timeline = root / timeline
        self._timeline.mkdir(parents=True)
        (root / "region=eu").mkdir()
        (root / ".hoodie" / "hoodie.properties").write_bytes(
            render_properties(_properties(version, mor))
        )

    def commit(self, instant: str, action: str, stat: WriteStat, operation: str) -> None:
        metadata = CommitMetadata(
            {"region=eu": (stat,)},
            extra={"schema": to_avro_schema(SCHEMA, NAME, SPACE)},
            operation=operation,
        )
        body = encode_commit(metadata, self._layout, replace=False)
        done = f"{instant}.{action}"
        if self._layout == 2:
            done = f"{instant}_{instant[:-3]}500.{action}"
        (self._timeline / f"{instant}.{action}.requested").write_bytes(b"")
        inflight = f"{instant}.inflight" if action == "commit" else f"{instant}.{action}.inflight"
        (self._timeline / inflight).write_bytes(b"")
        (self._timeline / done).write_bytes(body)

    def base(self, rows: list[dict[str, Any]]) -> None:
        name = f"{FILE_ID}_0-0-1_{BASE}.parquet"
        spec = BaseFileSpec(SCHEMA, NAME, SPACE, name, "region=eu", BASE, keys=("id",))
        table = pa.Table.from_pylist(rows, to_arrow_schema(SCHEMA))
        sink = io.BytesIO()
        write_base(sink, table.append_column("_hoodie_record_key", table["id"]).to_batches(2), spec)
        (self._root / "region=eu" / name).write_bytes(sink.getvalue())
        stat = WriteStat(
            file_id=FILE_ID,
            path=f"region=eu/{name}",
            prev_commit="null",
            num_writes=len(rows),
            num_inserts=len(rows),
            partition_path="region=eu",
            total_write_bytes=len(sink.getvalue()),
            file_size_in_bytes=len(sink.getvalue()),
        )
        self.commit(BASE, "deltacommit" if self._mor else "commit", stat, "INSERT")

    def log(self, instant: str, data: bytes, version: int = 1) -> None:
        own = instant if self._layout == 2 else BASE
        name = f".{FILE_ID}_{own}.log.{version}_0-0-1"
        (self._root / "region=eu" / name).write_bytes(data)
        stat = WriteStat(
            file_id=FILE_ID,
            path=f"region=eu/{name}",
            prev_commit=BASE,
            num_writes=1,
            partition_path="region=eu",
            total_write_bytes=len(data),
            file_size_in_bytes=len(data),
            log_version=version,
            log_offset=0,
            base_file="",
            log_files=(name,),
        )
        self.commit(instant, "deltacommit", stat, "UPSERT")


def _properties(version: int, mor: bool) -> Mapping[str, str]:
    schema = to_avro_schema(SCHEMA, NAME, SPACE)
    values = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ" if mor else "COPY_ON_WRITE",
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": "1" if version == 6 else "2",
        "hoodie.table.checksum": str(zlib.crc32(b".t")),
        "hoodie.table.create.schema": schema,
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "region",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.timeline.timezone": "UTC",
    }
    if version == 6:
        return values | {
            "hoodie.table.precombine.field": "ts",
            "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
            "hoodie.compaction.payload.class": (
                "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
            ),
        }
    return values | {
        "hoodie.table.initial.version": "9",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.format": "native",
        "hoodie.table.keygenerator.type": "SIMPLE",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    }


def read_back(root: Path) -> list[dict[str, Any]]:
    table = hudi.HudiTableBuilder.from_base_uri(str(root)).build()
    made = pa.Table.from_batches(table.read())
    rows = made.select(list(SCHEMA.names)).to_pylist()
    return sorted(rows, key=lambda r: r["id"])


@pytest.mark.parametrize("version", [6, 9])
def test_base_files(tmp_path: Path, version: int) -> None:
    rows = [row(i, 100) for i in range(5)]
    Maker(tmp_path, version, mor=False).base(rows)
    assert read_back(tmp_path) == rows


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("make", [avro_block, parquet_block])
def test_log_blocks(tmp_path: Path, version: int, make: Any) -> None:
    maker = Maker(tmp_path, version, mor=True)
    maker.base([row(i, 100) for i in range(5)])
    changed = [row(1, 200, d=-1.5, tags=None), row(2, 50, d=-2.5)]
    text = to_avro_schema(META, NAME, SPACE)
    positions: dict[str, Any] = {}
    if version == 9:
        positions = {"positions": np.array([1, 2], np.uint64), "base_instant": BASE}
    data = make(rows_table(changed, UPDATE), data_header(UPDATE, text, **positions))
    header = data_header(UPDATE, text)
    data += delete_block(["k3"], ["region=eu"], header)
    data += delete_block(
        ["k0", "k4"],
        ["region=eu"] * 2,
        header,
        [[wrap_ordering(99, pa.int64())], [wrap_ordering(101, pa.int64())]],
    )
    maker.log(UPDATE, data)
    # k2 came too late to win, k3 is gone, k0's delete was older than the row, k4's was younger.
    assert read_back(tmp_path) == [row(0, 100), changed[0], row(2, 100)]


def test_a_rollback_block_undoes_its_target(tmp_path: Path) -> None:
    maker = Maker(tmp_path, 6, mor=True)
    rows = [row(i, 100) for i in range(3)]
    maker.base(rows)
    text = to_avro_schema(META, NAME, SPACE)
    maker.log(UPDATE, avro_block(rows_table([row(1, 200)], UPDATE), data_header(UPDATE, text)))
    assert read_back(tmp_path) == [rows[0], row(1, 200), rows[2]]
    maker.log(UNDO, rollback_block(UNDO, UPDATE), version=2)
    assert read_back(tmp_path) == rows
