"""The decoders of data files: log blocks, Avro records, base files and what their footers hold."""

import base64
import datetime as dt
import io
import struct
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal as Number

import numpy as np
import pyarrow as pa

from lakewright.format.arrow.parquet_splice import OneValue, SpliceSource, splice, why_apart
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_encoding import encode_records
from lakewright.format.hudi.avro_records import decode_framed
from lakewright.format.hudi.avro_schema import parse_avro_schema, to_avro_schema
from lakewright.format.hudi.base_file import open_base
from lakewright.format.hudi.base_pruning import file_ranges, may_contain_key
from lakewright.format.hudi.base_write import BaseFileSpec, write_base
from lakewright.format.hudi.bloom import DYNAMIC, SIMPLE, BloomBuilder, parse_bloom
from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.internal_schema import (
    numbered,
    parse_history,
    parse_internal_schema,
    render_history,
    render_internal_schema,
)
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.deletes import decode_deletes, encode_deletes, wrap_ordering
from lakewright.format.hudi.log.read import read_data, read_deletes, read_positions, scan_blocks
from lakewright.format.hudi.log.write import (
    avro_block,
    data_header,
    delete_block,
    parquet_block,
    rollback_block,
)
from lakewright.format.hudi.positions import decode_bitmap, encode_bitmap
from lakewright.model.errors import Corrupt, LakewrightError
from lakewright.model.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
)
from lakewright.storage.open import open_storage

SCHEMA = Struct(
    (
        Field("id", STRING),
        Field("n", INT, nullable=False),
        Field("d", DOUBLE),
        Field("ok", BOOLEAN),
        Field("day", DATE),
        Field("at", TIMESTAMP),
        Field("dec", Decimal(20, 4)),
        Field("raw", BINARY),
        Field("four", Fixed(4)),
        Field("who", Struct((Field("name", STRING), Field("tags", List(STRING))))),
        Field("grid", List(List(INT))),
        Field("attrs", Map(Struct((Field("x", INT),)))),
    )
)
TEXT = to_avro_schema(SCHEMA, "t_record", "hoodie.t")
ROWS = pa.Table.from_pylist(
    [
        {
            "id": f"k{i}",
            "n": i - 20,
            "d": None if i % 4 == 0 else i / 3,
            "ok": i % 2 == 0,
            "day": dt.date(2026, 1, 1),
            "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
            "dec": Number(i).scaleb(-2),
            "raw": b"\xff" * (i % 5),
            "four": b"four",
            "who": None if i % 3 == 0 else {"name": "é", "tags": ["x", None] * (i % 3)},
            "grid": [[1], [], None][: i % 4],
            "attrs": [("a", {"x": i}), ("b", None)],
        }
        for i in range(40)
    ],
    to_arrow_schema(SCHEMA),
)
ONE, TWO = "20260101000000000", "20260102000000000"
KEYS = pa.array([f"k{i}" for i in range(40)])
PATH = "f-0_0-0-1_20260101000000000.parquet"


def log_file(data: bytes) -> None:
    file = io.BytesIO(data)
    for block in scan_blocks(file, len(data), "f.log"):
        with suppress(LakewrightError):
            read_positions(block)
        with suppress(LakewrightError):
            if block.kind is BlockKind.DELETE:
                read_deletes(file, block)
            else:
                # Texts of parquet pages are handed on unread, as Spark does: a table may hold such.
                parquet = block.kind is BlockKind.PARQUET_DATA
                read_data(file, block).validate(full=not parquet)


def avro_records(data: bytes) -> None:
    """The input is the schema's length (two bytes), the schema, a count, and framed records."""
    if len(data) < 6:
        raise Corrupt("too short")
    at = 2 + int.from_bytes(data[:2], "big")
    text = data[2:at].decode("utf-8", "replace")
    (count,) = struct.unpack_from(">i", data[at : at + 4].ljust(4, b"\0"))
    decode_framed(text, data[at + 4 :], count).validate(full=True)


def avro_schema(data: bytes) -> None:
    struct_ = parse_avro_schema(data.decode("utf-8", "replace"))
    parse_avro_schema(to_avro_schema(struct_, "r", "n"))


def internal_schema(data: bytes) -> None:
    parse_internal_schema(data.decode("utf-8", "replace"))


def schema_history(data: bytes) -> None:
    parse_history(data)


def deletes(data: bytes) -> None:
    decode_deletes(data, "f.log", 0)


def positions(data: bytes) -> None:
    decode_bitmap(data, limit=1 << 20)


def bloom(data: bytes) -> None:
    """The first bit chooses the kind."""
    kind = DYNAMIC if data[:1] < b"\x80" else SIMPLE
    parse_bloom(kind, base64.b64encode(data[1:]).decode()).contains(KEYS)


def bucket(data: bytes) -> None:
    keys = data.decode("utf-8", "ignore").split("\n")
    bucket_of(pa.array(keys, pa.string()), keys[:1], 7)


def base_file(data: bytes) -> None:
    storage = open_storage("memory://fuzz-base-file")
    storage.write(PATH, data)
    with open_base(storage, PATH, len(data)) as reader:
        with suppress(LakewrightError):
            may_contain_key(reader.footer, ["k1"])
        file_ranges(reader.footer, list(reader.footer.leaves))
        # A forged footer may claim any number of rows; a reader takes them batch by batch.
        for number, batch in enumerate(reader.iter_batches(use_threads=False)):
            batch.validate()
            if number == 3:
                break


def spliced(data: bytes) -> None:
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[max(len(data) - 8 - length, 0) : -8]
    made = SpliceSource("f", footer, len(data), lambda: io.BytesIO(data))
    with suppress(LakewrightError):
        if why_apart([made], OneValue("_hoodie_file_name", "")) is None:
            splice(io.BytesIO(), [made], OneValue("_hoodie_file_name", "new"), dict)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "log_file": log_file,
    "avro_records": avro_records,
    "avro_schema": avro_schema,
    "internal_schema": internal_schema,
    "schema_history": schema_history,
    "deletes": deletes,
    "positions": positions,
    "bloom": bloom,
    "bucket": bucket,
    "base_file": base_file,
    "spliced": spliced,
}


def _log_seeds() -> list[bytes]:
    plain = data_header(ONE, TEXT)
    placed = data_header(
        TWO, TEXT, positions=np.arange(40, dtype=np.uint64), base_instant=ONE, partial=True
    )
    gone = delete_block(["k1", "k2"], ["p", "p"], plain)
    avro, parquet = avro_block(ROWS, plain), parquet_block(ROWS, placed)
    return [avro, parquet, gone, avro + gone + rollback_block(TWO, ONE) + parquet]


def _record_seed() -> bytes:
    records = encode_records(ROWS, TEXT)
    framed = b"".join(struct.pack(">i", len(record)) + record for record in records)
    schema = TEXT.encode()
    return len(schema).to_bytes(2, "big") + schema + struct.pack(">i", len(records)) + framed


def _base_seed() -> bytes:
    sink = io.BytesIO()
    spec = BaseFileSpec(SCHEMA, "t_record", "hoodie.t", PATH, "p", ONE, keys=("id",))
    rows = ROWS.append_column("_hoodie_record_key", ROWS["id"])
    write_base(sink, rows.to_batches(), spec)
    return sink.getvalue()


def _bloom_seeds() -> list[bytes]:
    out = []
    for first, kind in ((b"\0", DYNAMIC), (b"\xff", SIMPLE)):
        builder = BloomBuilder()
        builder.add(KEYS)
        out.append(first + base64.b64decode(builder.build(kind).encode()))
    return out


def _delete_seeds() -> list[bytes]:
    two = [[wrap_ordering(5, pa.int64()), wrap_ordering("x", pa.string())]] * 2
    return [encode_deletes(["a", "b"], ["p", ""], None), encode_deletes(["a", "b"], ["p", ""], two)]


SEEDS: dict[str, list[bytes]] = {
    "log_file": _log_seeds(),
    "avro_records": [_record_seed()],
    "avro_schema": [TEXT.encode()],
    "internal_schema": [render_internal_schema(numbered(SCHEMA, 1)).encode()],
    "schema_history": [render_history([numbered(SCHEMA, 1), numbered(SCHEMA, 2)])],
    "deletes": _delete_seeds(),
    "positions": [
        encode_bitmap(np.array([1, 5, 1 << 40], np.uint64)),
        encode_bitmap(np.arange(70_000, dtype=np.uint64)),
        encode_bitmap(np.arange(0, 20_000, 3, dtype=np.uint64)),
    ],
    "bloom": _bloom_seeds(),
    "bucket": ["id\nid:1,name:é\n日本語\na:__null__,b:__empty__\nx,y".encode()],
    "base_file": [_base_seed()],
    "spliced": [_base_seed()],
}
