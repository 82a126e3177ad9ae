"""Log files: framing, recovery from damaged blocks, and the contents of data blocks."""

import contextlib
import io
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_schema import to_avro_schema
from lakewright.format.hudi.log.blocks import MAGIC, BlockKind, HeaderKey, LogBlock
from lakewright.format.hudi.log.read import read_data, read_positions, scan_blocks
from lakewright.format.hudi.log.write import (
    avro_block,
    cdc_block,
    data_header,
    delete_block,
    frame,
    parquet_block,
    rollback_block,
)
from lakewright.model.errors import Corrupt, Invalid, LakewrightError, Unsupported
from lakewright.model.schema import INT, STRING, Field, List, Struct
from support.schemas import rows, structs

SCHEMA = Struct((Field("id", STRING), Field("n", INT), Field("l", List(STRING))))
TEXT = to_avro_schema(SCHEMA, "t_record", "hoodie.t")
ROWS: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "l": ["x", None]},
    {"id": "b", "n": None, "l": None},
]
TABLE = pa.Table.from_pylist(ROWS, to_arrow_schema(SCHEMA))
ONE, TWO = "20260101000000000", "20260102000000000"


class Counting(io.BytesIO):
    """A file that counts the bytes read from it."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def scan(data: bytes) -> list[LogBlock]:
    return list(scan_blocks(io.BytesIO(data), len(data), "p/.f.log.1"))


def kinds(data: bytes) -> list[BlockKind]:
    return [block.kind for block in scan(data)]


def good(instant: str = ONE) -> bytes:
    return avro_block(TABLE, data_header(instant, TEXT))


def test_a_rollback_block_is_the_one_that_hudi_writes() -> None:
    data = rollback_block(TWO, ONE)
    assert len(data) == 105
    (block,) = scan(data)
    assert block.kind is BlockKind.COMMAND
    assert block.is_rollback
    assert (block.instant, block.target_instant) == (TWO, ONE)
    assert block.content_length == 0


@pytest.mark.parametrize("make", [avro_block, parquet_block])
def test_records_survive_their_block(make: Any) -> None:
    data = rollback_block(ONE, TWO) + make(TABLE, data_header(ONE, TEXT)) + good(TWO)
    file = io.BytesIO(data)
    _, block, last = scan_blocks(file, len(data), "p")
    assert read_data(file, block).to_pylist() == ROWS
    assert read_data(file, block, ["n", "absent", "id"]).to_pylist() == [
        {"n": 1, "id": "a"},
        {"n": None, "id": "b"},
    ]
    assert read_data(file, last).to_pylist() == ROWS


@settings(max_examples=40)
@given(st.data())
def test_any_table_survives_a_parquet_block(data: st.DataObject) -> None:
    schema = data.draw(structs)
    table = pa.Table.from_pylist(
        data.draw(st.lists(rows(schema), max_size=4)), to_arrow_schema(schema)
    )
    raw = parquet_block(table, data_header(ONE, to_avro_schema(schema, "t", "n")))
    (block,) = scan(raw)
    assert read_data(io.BytesIO(raw), block).to_pylist() == table.to_pylist()


def test_change_blocks_are_read_like_avro() -> None:
    data = cdc_block(TABLE, data_header(ONE, TEXT))
    (block,) = scan(data)
    assert block.kind is BlockKind.CDC_DATA
    assert read_data(io.BytesIO(data), block).to_pylist() == ROWS


def test_headers_are_read() -> None:
    positions = np.array([3, 70_000], np.uint64)
    header = data_header(
        ONE, TEXT, positions=positions, base_instant=TWO, partial=True, compacted=[ONE, TWO]
    )
    (block,) = scan(avro_block(TABLE, header))
    assert block.header == header
    assert block.schema_text == TEXT
    assert block.is_partial
    assert block.compacted_instants == (ONE, TWO)
    assert block.positions_base_instant == TWO
    found = read_positions(block)
    assert found is not None
    assert found.tolist() == [3, 70_000]


def test_a_plain_block_has_no_positions() -> None:
    (block,) = scan(good())
    assert read_positions(block) is None
    assert not block.is_partial
    assert block.compacted_instants == ()


def test_positions_need_order_and_their_base_file() -> None:
    with pytest.raises(Invalid, match="must rise"):
        data_header(ONE, TEXT, positions=np.array([2, 1], np.uint64), base_instant=TWO)
    with pytest.raises(Invalid, match="need the instant"):
        data_header(ONE, TEXT, positions=np.array([1], np.uint64))


def test_contents_are_passed_over() -> None:
    big = frame(BlockKind.PARQUET_DATA, {HeaderKey.INSTANT_TIME: ONE}, bytes(5_000_000))
    file = Counting(big + big + good())
    size = len(file.getvalue())
    assert len(list(scan_blocks(file, size, "p"))) == 3
    assert file.taken < 400_000


# Damage -------------------------------------------------------------------------------------


def with_trailing(data: bytes, value: int) -> bytes:
    return data[:-8] + struct.pack(">q", value)


def with_length(data: bytes, value: int) -> bytes:
    return data[:6] + struct.pack(">q", value) + data[14:]


@pytest.mark.parametrize(
    "damaged",
    [
        with_trailing(good(), 0),
        with_trailing(good(), len(good()) - 14),
        with_length(good(), len(good())),
        with_length(good(), 2**62),
        with_length(good(), -5),
        with_length(good(), 0),
        good()[:-1],
        good()[:40],
        good()[:-8] + b"junk" + good()[-8:],
        good() + b"some bytes that are no block",
        MAGIC,
    ],
)
def test_a_damaged_block_is_passed_over(damaged: bytes) -> None:
    data = good() + damaged + good(TWO)
    found = kinds(data)
    assert found[0] is BlockKind.AVRO_DATA
    assert found[-1] is BlockKind.AVRO_DATA
    assert BlockKind.CORRUPT in found
    assert scan(data)[-1].instant == TWO


@pytest.mark.parametrize("cut", range(6, len(good())))
def test_a_file_cut_anywhere_ends_in_a_corrupt_block(cut: int) -> None:
    first, last = scan(good() + good(TWO)[:cut])
    assert (first.kind, last.kind) == (BlockKind.AVRO_DATA, BlockKind.CORRUPT)
    assert last.offset == len(good())


@pytest.mark.parametrize("cut", range(6))
def test_a_few_bytes_at_the_end_are_no_block(cut: int) -> None:
    assert kinds(good() + MAGIC[:cut]) == [BlockKind.AVRO_DATA]


def test_the_next_magic_is_found_across_the_edges_of_reads() -> None:
    for before in (1 << 20, (1 << 20) - 3, (1 << 20) + 5, 3 << 20):
        filler = b"x" * (before - len(MAGIC))
        corrupt, last = scan(MAGIC + filler + good())
        assert corrupt.kind is BlockKind.CORRUPT
        assert (last.kind, last.offset) == (BlockKind.AVRO_DATA, before)


def test_a_file_that_begins_otherwise_is_no_log() -> None:
    with pytest.raises(Corrupt, match="no Hudi log file") as caught:
        scan(b"PAR1 and so on")
    assert caught.value.facts["offset"] == 0
    assert scan(b"") == []


def reframed(kind: int, header: bytes, content: bytes = b"", version: int = 1) -> bytes:
    body = struct.pack(">ii", version, kind) + header + struct.pack(">q", len(content))
    body += content + struct.pack(">i", 0)
    length = len(body) + 8
    return MAGIC + struct.pack(">q", length) + body + struct.pack(">q", length + 6)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (reframed(9, struct.pack(">i", 0)), Corrupt),
        (reframed(2, struct.pack(">i", 0)), Corrupt),
        (reframed(1, struct.pack(">i", -1)), Corrupt),
        (reframed(1, struct.pack(">i", 2**31 - 1)), Corrupt),
        (reframed(1, struct.pack(">iii", 1, 9, 0)), Corrupt),
        (reframed(1, struct.pack(">iii", 1, 0, 10_000)), Corrupt),
        (reframed(1, struct.pack(">iii", 1, 0, -1)), Corrupt),
        (reframed(1, struct.pack(">iii", 1, 0, 1) + b"\xff"), Corrupt),
        (reframed(1, struct.pack(">i", 0), version=2), Unsupported),
    ],
)
def test_a_framed_block_with_a_bad_header_is_refused(
    data: bytes, error: type[LakewrightError]
) -> None:
    with pytest.raises(error) as caught:
        scan(data)
    assert caught.value.facts["path"] == "p/.f.log.1"
    assert "offset" in caught.value.facts


@settings(max_examples=200)
@given(st.data())
def test_mutated_files_raise_our_errors_alone(data: st.DataObject) -> None:
    raw = bytearray(good() + delete_block(["a"], [""], data_header(TWO, TEXT)) + good(TWO))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    file = io.BytesIO(bytes(raw))
    with contextlib.suppress(LakewrightError):
        for block in scan_blocks(file, len(raw), "p"):
            if block.kind is BlockKind.AVRO_DATA:
                with contextlib.suppress(LakewrightError):
                    read_data(file, block).validate(full=True)


# Contents that cannot be read ------------------------------------------------------------------


def data_block(kind: BlockKind, content: bytes) -> tuple[io.BytesIO, LogBlock]:
    raw = frame(kind, data_header(ONE, TEXT), content)
    (block,) = scan(raw)
    return io.BytesIO(raw), block


@pytest.mark.parametrize(
    ("kind", "content", "error"),
    [
        (BlockKind.HFILE_DATA, b"DATABLK*", Unsupported),
        (BlockKind.COMMAND, b"", Unsupported),
        (BlockKind.DELETE, b"", Unsupported),
        (BlockKind.AVRO_DATA, struct.pack(">ii", 2, 0), Unsupported),
        (BlockKind.AVRO_DATA, b"\0\0\0\3", Corrupt),
        (BlockKind.AVRO_DATA, struct.pack(">ii", 3, 5), Corrupt),
        (BlockKind.AVRO_DATA, struct.pack(">ii", 3, 0) + b"more", Corrupt),
        (BlockKind.PARQUET_DATA, b"", Corrupt),
        (BlockKind.PARQUET_DATA, b"PAR1" + bytes(40) + b"PAR1", Corrupt),
    ],
)
def test_contents_that_cannot_be_read(
    kind: BlockKind, content: bytes, error: type[LakewrightError]
) -> None:
    file, block = data_block(kind, content)
    with pytest.raises(error):
        read_data(file, block)


def test_a_data_block_needs_a_schema() -> None:
    raw = frame(BlockKind.AVRO_DATA, {HeaderKey.INSTANT_TIME: ONE}, struct.pack(">ii", 3, 0))
    (block,) = scan(raw)
    with pytest.raises(Corrupt, match="no schema"):
        read_data(io.BytesIO(raw), block)


def test_a_block_without_an_instant_is_not_written() -> None:
    with pytest.raises(Invalid, match="without an instant"):
        frame(BlockKind.AVRO_DATA, {}, b"")


def test_an_empty_block_has_no_rows() -> None:
    for make in (avro_block, parquet_block):
        raw = make(TABLE.slice(0, 0), data_header(ONE, TEXT))
        (block,) = scan(raw)
        made = read_data(io.BytesIO(raw), block)
        assert (made.num_rows, made.schema.names) == (0, ["id", "n", "l"])


def test_members_that_are_never_null_under_structs_that_may_be() -> None:
    """Arrow's own cast takes what lies under an absent struct for null, and refuses it."""
    within = Struct((Field("tags", List(INT), nullable=False),))
    schema = Struct((Field("s", Struct((Field("within", within, nullable=False),))),))
    rows = [{"s": {"within": {"tags": [1]}}}, {"s": None}]
    table = pa.Table.from_pylist(rows, to_arrow_schema(schema))
    raw = parquet_block(table, data_header(ONE, to_avro_schema(schema, "t", "n")))
    (block,) = scan(raw)
    assert read_data(io.BytesIO(raw), block).to_pylist() == rows
