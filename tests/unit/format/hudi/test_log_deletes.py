"""Delete blocks: real bytes, every wrapper, and contents of other versions."""

import io
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.hudi.log.blocks import BlockKind, HeaderKey, LogBlock
from lakewright.format.hudi.log.deletes import (
    DeleteRecords,
    decode_deletes,
    encode_deletes,
    wrap_ordering,
)
from lakewright.format.hudi.log.read import read_deletes, scan_blocks
from lakewright.format.hudi.log.write import data_header, delete_block, frame
from lakewright.model.errors import Corrupt, Invalid, LakewrightError, Unsupported

ONE = "20260101000000000"
#: As Hudi wrote it for a SQL DELETE: the ordering value is the int 0.
SQL_DELETE = bytes.fromhex("02") + b"\x02\x0eTXN-002\x02\x12region=us\x04\x00\x00"
#: As Hudi 1.1 wrote the ordering values (long 100, int 6) of a table with two ordering fields.
TWO_VALUES = b"\x02\x02\x04k1\x02\x00\x18\x02\x04\x06\xc8\x01\x04\x0c\x00\x00"


def block_of(content: bytes) -> tuple[io.BytesIO, LogBlock]:
    raw = frame(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: ONE}, content)
    (block,) = scan_blocks(io.BytesIO(raw), len(raw), "p/.f.log.1")
    return io.BytesIO(raw), block


def decoded(data: bytes) -> DeleteRecords:
    return decode_deletes(data, "p", 0)


def test_real_bytes() -> None:
    made = decoded(SQL_DELETE)
    assert made.keys.to_pylist() == ["TXN-002"]
    assert made.partitions.to_pylist() == ["region=us"]
    assert made.ordering == [None]
    assert encode_deletes(["TXN-002"], ["region=us"], None) == SQL_DELETE


def test_real_bytes_of_two_ordering_fields() -> None:
    assert decoded(TWO_VALUES).ordering == [(100, 6)]
    values = [wrap_ordering(100, pa.int64()), wrap_ordering(6, pa.int32())]
    assert encode_deletes(["k1"], [""], [values]) == TWO_VALUES


def test_the_marker_of_a_new_file_group_has_no_records() -> None:
    file, block = block_of(struct.pack(">ii", 3, 1) + b"\0")
    assert len(read_deletes(file, block)) == 0


@pytest.mark.parametrize(
    ("value", "kind", "branch"),
    [
        (True, pa.bool_(), 1),
        (7, pa.int32(), 2),
        (7, pa.int64(), 3),
        (0, pa.int64(), 3),
        (0.5, pa.float32(), 4),
        (0.1, pa.float64(), 5),
        (b"\xff", pa.binary(), 6),
        ("é", pa.string(), 7),
        (20_000, pa.date32(), 2),
        (Decimal("-12.500000000000000"), pa.decimal128(10, 2), 9),
        (5, pa.time64("us"), 10),
        (1_700_000_000_000_000, pa.timestamp("us", "UTC"), 3),
    ],
)
def test_every_wrapper(value: Any, kind: pa.DataType, branch: int) -> None:
    wrapped = wrap_ordering(value, kind)
    data = encode_deletes(["k"], ["p"], [[wrapped]])
    # One record, key "k", partition "p", then the number of the branch as a zigzag varint.
    assert data[:7] == bytes([2, 2, 2, ord("k"), 2, 2, ord("p")])
    assert data[7] == 2 * branch
    assert decoded(data).ordering == [(value,)]
    both = encode_deletes(["k"], ["p"], [[wrapped, None]])
    assert decoded(both).ordering == [(value, None)]


def test_a_decimal_is_as_long_as_that_of_a_column_and_no_longer() -> None:
    longest = Decimal(-(10**38) + 1)
    value = wrap_ordering(longest, pa.decimal128(38, 0))
    data = encode_deletes(["k"], [""], [[value]])
    assert decoded(data).ordering == [(longest,)]
    # The bytes of the value stand behind their number, which is written twice as large.
    start = data.index(bytes([2 * 23]))
    longer = data[:start] + bytes([2 * 24, 0x7F]) + data[start + 1 :]
    with pytest.raises(Corrupt, match="a decimal of 24 bytes"):
        decoded(longer)


def test_local_dates_occur_in_arrays() -> None:
    # Branch 12, one item: LocalDateWrapper (branch 12 of the items) of day 3.
    data = b"\x02\x02\x02k\x02\x00\x18\x02\x02\x18\x06\x00\x00"
    assert decoded(data).ordering == [(3,)]


def test_null_and_the_int_zero_are_unconditional() -> None:
    assert decoded(encode_deletes(["k"], ["p"], [[None]])).ordering == [None]
    zero = wrap_ordering(0, pa.int32())
    assert decoded(encode_deletes(["k"], ["p"], [[zero]])).ordering == [None]


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.integers(-(2**63), 2**63 - 1)))
)
def test_deletes_survive_their_block(records: list[tuple[str, str, int]]) -> None:
    keys, partitions, order = ([r[i] for r in records] for i in range(3))
    ordering = [[wrap_ordering(value, pa.int64())] for value in order]
    raw = delete_block(keys, partitions, data_header(ONE, "{}"), ordering)
    (block,) = scan_blocks(io.BytesIO(raw), len(raw), "p")
    made = read_deletes(io.BytesIO(raw), block)
    assert made.keys.to_pylist() == keys
    assert made.partitions.to_pylist() == partitions
    assert made.ordering == [(value,) for value in order]


@pytest.mark.parametrize("version", [1, 2])
def test_java_objects_are_refused(version: int) -> None:
    file, block = block_of(struct.pack(">ii", version, 4) + b"\xac\xed\0\5")
    with pytest.raises(Unsupported, match=f"version {version}.*Compact the table"):
        read_deletes(file, block)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0\0\3", struct.pack(">ii", 3, 2) + b"\0", struct.pack(">ii", 7, 1) + b"\0"],
)
def test_malformed_contents(content: bytes) -> None:
    file, block = block_of(content)
    with pytest.raises(Corrupt) as caught:
        read_deletes(file, block)
    assert caught.value.facts["path"] == "p/.f.log.1"


def test_every_cut_is_found() -> None:
    for data in (SQL_DELETE, TWO_VALUES):
        for cut in range(len(data)):
            with pytest.raises(Corrupt):
                decoded(data[:cut])


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_noise_raises_our_errors_alone(noise: bytes) -> None:
    try:
        decoded(noise)
    except LakewrightError as error:
        assert isinstance(error, Corrupt)


def test_other_blocks_hold_no_deletes() -> None:
    raw = frame(BlockKind.COMMAND, {HeaderKey.INSTANT_TIME: ONE}, b"")
    (block,) = scan_blocks(io.BytesIO(raw), len(raw), "p")
    with pytest.raises(Unsupported, match="holds no deletes"):
        read_deletes(io.BytesIO(raw), block)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(Invalid, match="one partition"):
        encode_deletes(["a"], [], None)
    with pytest.raises(Unsupported, match="cannot order"):
        wrap_ordering([1], pa.list_(pa.int32()))
    with pytest.raises(Invalid, match="15 digits"):
        encode_deletes(["a"], [""], [[wrap_ordering(Decimal("1e-16"), pa.decimal128(38, 16))]])
