"""Errors about damaged data files say which file it is, and where in it the damage lies."""

import io
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.format.arrow.thrift_compact import (
    I64,
    LIST,
    Fields,
    join,
    join_list,
    packed,
    split,
    split_list,
)
from lakewright.format.hudi.base_file import open_base
from lakewright.format.hudi.base_footer import parse_footer
from lakewright.format.hudi.base_pruning import file_ranges, may_contain_key
from lakewright.format.hudi.base_write import BaseFileSpec, write_base
from lakewright.format.hudi.log.blocks import BlockKind
from lakewright.format.hudi.log.read import read_data, read_deletes, read_positions, scan_blocks
from lakewright.format.hudi.log.write import avro_block, data_header, delete_block, parquet_block
from lakewright.format.hudi.positions import encode_positions
from lakewright.model.errors import Corrupt, LakewrightError
from lakewright.model.schema import LONG, STRING, Field, Struct
from lakewright.storage.open import open_storage

SCHEMA = Struct((Field("id", STRING), Field("n", LONG)))
TEXT = (
    '{"type":"record","name":"r","fields":[{"name":"id","type":["null","string"],"default":null},'
    '{"name":"n","type":["null","long"],"default":null}]}'
)
ROWS = pa.table({"id": [f"k{i}" for i in range(400)], "n": pa.array(range(400), pa.int64())})
ONE = "20260101000000000"
BASE, LOG = "f-0_0-0-1_20260101000000000.parquet", ".f-0_20260101000000000.log.1_0-0-1"


def base_file() -> bytes:
    sink = io.BytesIO()
    spec = BaseFileSpec(SCHEMA, "r", "hoodie.t", BASE, "", ONE, keys=("id",))
    write_base(sink, ROWS.append_column("_hoodie_record_key", ROWS["id"]).to_batches(), spec)
    return sink.getvalue()


def log_file() -> bytes:
    placed = data_header(ONE, TEXT, positions=np.arange(400, dtype=np.uint64), base_instant=ONE)
    gone = delete_block(["k1", "k2"], ["", ""], data_header(ONE, TEXT))
    return avro_block(ROWS, placed) + gone + parquet_block(ROWS, placed)


def base_errors(data: bytes) -> Iterator[LakewrightError]:
    storage = open_storage("memory://damaged-places")
    storage.write(BASE, data)
    try:
        reader = open_base(storage, BASE, len(data))
    except LakewrightError as error:
        yield error
        return
    footer = reader.footer
    with reader:
        yield from errors_of(
            lambda: may_contain_key(footer, ["k1"]),
            lambda: file_ranges(footer, list(footer.leaves)),
            lambda: reader.read(),
        )


def log_errors(data: bytes) -> Iterator[LakewrightError]:
    file = io.BytesIO(data)
    blocks = []
    try:
        blocks.extend(scan_blocks(file, len(data), LOG))
    except LakewrightError as error:
        yield error
    for block in blocks:
        if block.kind is BlockKind.CORRUPT:
            continue
        read = read_deletes if block.kind is BlockKind.DELETE else read_data
        yield from errors_of(partial(read_positions, block), partial(read, file, block))


def errors_of(*calls: Callable[[], object]) -> Iterator[LakewrightError]:
    for call in calls:
        try:
            call()
        except LakewrightError as error:
            yield error


@pytest.mark.parametrize(
    ("whole", "errors", "path"),
    [(base_file(), base_errors, BASE), (log_file(), log_errors, LOG)],
    ids=["base file", "log file"],
)
def test_every_error_names_the_file_and_an_offset_within_it(
    whole: bytes, errors: Callable[[bytes], Iterator[LakewrightError]], path: str
) -> None:
    assert not list(errors(whole))
    random = Random(7)
    found = 0
    for _ in range(300):
        data = bytearray(whole)
        at = random.randrange(len(data))
        for place in range(at, min(len(data), at + random.choice((1, 4, 40)))):
            data[place] = random.randrange(256)
        for error in errors(bytes(data)):
            found += 1
            assert error.facts["path"] == path, error
            assert 0 <= error.facts["offset"] <= len(data), error
    assert found > 50


@pytest.mark.parametrize(
    ("held", "instead"),
    [
        (encode_positions(np.arange(400, dtype=np.uint64))[:8].encode(), b"!!!!!!!!"),
        (encode_positions(np.arange(400, dtype=np.uint64))[:8].encode(), b"////////"),
        (b'"long"', b'"lonk"'),
    ],
    ids=["no base64", "no bitmap", "schema"],
)
def test_what_a_header_holds_is_placed_at_its_block(held: bytes, instead: bytes) -> None:
    whole = avro_block(ROWS, data_header(ONE, TEXT))
    placed = data_header(ONE, TEXT, positions=np.arange(400, dtype=np.uint64), base_instant=ONE)
    damaged = avro_block(ROWS, placed).replace(held, instead)
    (error,) = log_errors(whole + damaged)
    assert error.facts["path"] == LOG and error.facts["offset"] == len(whole)


def test_a_damaged_page_is_placed_in_its_row_group() -> None:
    sink = io.BytesIO()
    texts = pa.array([str(i % 100) for i in range(4000)])
    pq.write_table(pa.table({"s": texts}), sink, row_group_size=1000, compression="none")
    data = bytearray(sink.getvalue())
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(2).column(0)
    start = chunk.dictionary_page_offset
    data[start : start + 60] = b"\xff" * 60
    (error,) = base_errors(bytes(data))
    assert isinstance(error, Corrupt)
    assert error.facts == {"path": BASE, "offset": start}


def forged(change: Callable[[Fields, Fields], None]) -> bytes:
    """Return a file of 10 rows whose footer was changed: the fields of it, and of its group."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": range(10)}), sink)
    data = sink.getvalue()
    size = int.from_bytes(data[-8:-4], "little")
    fields = split(data[-8 - size : -8])
    kind, (group,) = split_list(fields[4][1])
    inner = split(group)
    change(fields, inner)
    fields[4] = LIST, join_list(kind, [join(inner)])
    footer = join(fields)
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def rows(count: int) -> tuple[int, bytes]:
    return I64, packed(count)


def test_rows_that_the_footer_claims_must_be_there() -> None:
    # Arrow returns the rows that it finds and says nothing of the others.
    def more(fields: Fields, group: Fields) -> None:
        fields[3], group[3] = rows(1 << 40), rows(1 << 40)

    data = forged(more)
    (error,) = base_errors(data)
    assert isinstance(error, Corrupt)
    assert str(error).startswith(f"{BASE} claims {1 << 40} rows in row group 0; {(1 << 40) - 10} ")
    assert error.facts["offset"] == 4


@pytest.mark.parametrize(("total", "group"), [(11, 10), (10, 11), (-1, -1), (1 << 62, 10)])
def test_a_footer_must_agree_with_its_row_groups(total: int, group: int) -> None:
    def other(fields: Fields, inner: Fields) -> None:
        fields[3], inner[3] = rows(total), rows(group)

    data = forged(other)
    with pytest.raises(Corrupt, match=f"claims {total} rows, and {group} in its row groups") as got:
        parse_footer(data, len(data), BASE)
    assert got.value.facts["path"] == BASE and "offset" in got.value.facts
