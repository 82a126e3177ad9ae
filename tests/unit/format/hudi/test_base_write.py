"""Writing base files: meta columns, footers, layout, and rows that keep their history."""

import io
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi.avro_schema import parse_avro_schema
from lakewright.format.hudi.base_file import BaseFileReader, open_base
from lakewright.format.hudi.base_pruning import may_contain_key
from lakewright.format.hudi.base_write import (
    BaseFileSpec,
    WrittenBase,
    key_bounds,
    sequence_numbers,
    write_base,
)
from lakewright.format.hudi.bloom import SIMPLE
from lakewright.model.errors import Invalid
from lakewright.model.schema import (
    DATE,
    INT,
    META_COLUMNS,
    META_FIELDS,
    STRING,
    TIMESTAMP,
    Decimal,
    Field,
    List,
    Map,
    Struct,
)
from lakewright.storage.open import open_storage
from support.schemas import rows, structs

INSTANT = "20260101000000000"
NAME = f"f-0_3-0-1_{INSTANT}.parquet"
SCHEMA = Struct((Field("id", STRING), Field("n", INT), Field("must", INT, nullable=False)))


def spec(schema: Struct = SCHEMA, **changes: Any) -> BaseFileSpec:
    given: dict[str, Any] = {"task": 3, "keys": ("id",), **changes}
    return BaseFileSpec(schema, "t_record", "hoodie.t", NAME, "region=eu", INSTANT, **given)


def batch(keys: list[str], **columns: Any) -> pa.RecordBatch:
    count = len(keys)
    values = {"id": keys, "n": list(range(count)), "must": [1] * count, "_hoodie_record_key": keys}
    return pa.RecordBatch.from_pydict(values | columns)


def written(
    batches: list[pa.RecordBatch], how: BaseFileSpec
) -> tuple[WrittenBase, BaseFileReader, bytes]:
    sink = io.BytesIO()
    result = write_base(sink, batches, how)
    storage = open_storage(f"memory://{uuid.uuid4()}")
    storage.write(f"region=eu/{NAME}", sink.getvalue())
    return result, open_base(storage, f"region=eu/{NAME}"), sink.getvalue()


def test_meta_columns_lead_every_row() -> None:
    result, reader, _ = written([batch(["b", "a"]), batch(["c"])], spec())
    assert result == WrittenBase(3, "a", "c")
    assert tuple(reader.schema.names[:5]) == META_COLUMNS
    made = reader.read().to_pylist()
    assert [row["_hoodie_commit_seqno"] for row in made] == [f"{INSTANT}_3_{i}" for i in range(3)]
    assert {row["_hoodie_commit_time"] for row in made} == {INSTANT}
    assert {row["_hoodie_partition_path"] for row in made} == {"region=eu"}
    assert {row["_hoodie_file_name"] for row in made} == {NAME}
    assert [row["_hoodie_record_key"] for row in made] == ["b", "a", "c"]


def test_rows_that_were_carried_over_keep_their_time() -> None:
    old = batch(
        ["a", "b"],
        _hoodie_commit_time=["19990101000000000", None],
        _hoodie_commit_seqno=["19990101000000000_0_7", None],
        _hoodie_file_name=["old", "old"],
    )
    _, reader, _ = written([old, batch(["c"])], spec())
    made = reader.read().to_pylist()
    assert [r["_hoodie_commit_time"] for r in made] == ["19990101000000000", INSTANT, INSTANT]
    assert [r["_hoodie_commit_seqno"] for r in made] == [
        "19990101000000000_0_7",
        f"{INSTANT}_3_1",
        f"{INSTANT}_3_2",
    ]
    assert {r["_hoodie_file_name"] for r in made} == {NAME}


def test_the_footer_says_what_hudi_wants_to_know() -> None:
    _, reader, _ = written([batch(["b", "a"])], spec())
    footer = reader.footer
    assert footer.key_range == ("a", "b")
    assert footer.bloom is not None
    assert footer.bloom[0] == "DYNAMIC_V0"
    assert footer.values["writer.model.name"] == "avro"
    assert footer.avro_schema is not None
    assert parse_avro_schema(footer.avro_schema) == Struct((*META_FIELDS, *SCHEMA.fields))
    assert may_contain_key(footer, ["a"])
    assert not may_contain_key(footer, ["aa"])
    assert b"ARROW:schema" not in footer.metadata.metadata


def test_a_simple_filter() -> None:
    _, reader, _ = written([batch(["b", "a"])], spec(bloom_kind=SIMPLE))
    assert reader.footer.bloom is not None
    assert reader.footer.bloom[0] == SIMPLE
    assert may_contain_key(reader.footer, ["b"])


def test_the_layout_is_the_one_that_hudi_rewrites_without_loss() -> None:
    schema = Struct(
        (
            Field("dec", Decimal(20, 4)),
            Field("small", Decimal(5, 2)),
            Field("day", DATE),
            Field("at", TIMESTAMP),
            Field("tags", List(STRING)),
            Field("attrs", Map(INT)),
        )
    )
    empty = pa.RecordBatch.from_pydict({"_hoodie_record_key": ["k"]})
    _, _, data = written([empty], spec(schema, keys=()))
    columns = pq.ParquetFile(io.BytesIO(data)).schema
    found = {columns.column(i).path: columns.column(i) for i in range(5, len(columns))}
    assert list(found) == [
        "dec",
        "small",
        "day",
        "at",
        "tags.list.element",
        "attrs.key_value.key",
        "attrs.key_value.value",
    ]
    assert (found["dec"].physical_type, found["dec"].length) == ("FIXED_LEN_BYTE_ARRAY", 9)
    assert (found["small"].physical_type, found["small"].length) == ("FIXED_LEN_BYTE_ARRAY", 3)
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(found["at"].logical_type)


def test_row_groups_are_closed_by_size() -> None:
    _, reader, _ = written([batch([f"k{i}"]) for i in range(6)], spec(row_group_bytes=200))
    assert 1 < reader.num_row_groups < 6
    assert reader.num_rows == 6


def test_keys_compress_harder_than_the_rest() -> None:
    _, reader, _ = written([batch(["a"])], spec())
    group = reader.footer.metadata.row_group(0)
    codecs = {group.column(i).path_in_schema: group.column(i).compression for i in range(8)}
    assert codecs["_hoodie_record_key"] == codecs["id"] == "ZSTD"
    assert codecs["n"] == "SNAPPY"


def test_a_file_without_rows() -> None:
    result, reader, _ = written([], spec())
    assert result == WrittenBase(0, None, None)
    assert reader.num_rows == 0
    assert reader.footer.key_range is None
    assert reader.footer.bloom is not None
    assert not may_contain_key(reader.footer, ["a"])


def test_a_file_without_meta_columns() -> None:
    _, reader, _ = written([batch(["a"])], spec(meta=False))
    assert reader.schema.names == ["id", "n", "must"]
    assert reader.footer.bloom is None
    assert reader.footer.key_range is None


def test_columns_conform() -> None:
    narrow = batch(["a"], n=pa.array([5], pa.int8()))
    _, reader, _ = written([narrow.select(["n", "must", "_hoodie_record_key"])], spec())
    assert reader.read(["id", "n"]).to_pylist() == [{"id": None, "n": 5}]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (batch(["a"]).drop_columns(["_hoodie_record_key"]), "no column _hoodie_record_key"),
        (batch(["a"], _hoodie_record_key=pa.array([None], pa.string())), "no record key"),
        (batch(["a"], must=pa.array([None], pa.int32())), "may not be null"),
        (batch(["a"], n=["text"]), "column n cannot go"),
        (batch(["a"]).drop_columns(["must"]), "column must is absent"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: pa.RecordBatch, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        write_base(io.BytesIO(), [rows], spec())


@pytest.mark.parametrize(
    ("first", "count"), [(0, 0), (0, 1), (7, 5), (0, 1200), ((1 << 32) - 3, 6), (10**10 - 1, 2)]
)
def test_sequence_numbers_count_on_through_all_lengths(first: int, count: int) -> None:
    made = sequence_numbers(INSTANT, 3, first, count)
    made.validate(full=True)
    assert made.to_pylist() == [f"{INSTANT}_3_{n}" for n in range(first, first + count)]


def test_bounds_are_in_the_order_of_java() -> None:
    assert key_bounds(pa.array(["b", "a"])) == ("a", "b")
    assert key_bounds(pa.array(["x\ufffd", "x😀"])) == ("x😀", "x\ufffd")
    assert key_bounds(pa.array([], pa.string())) is None
    _, reader, _ = written([batch(["x\ufffd"]), batch(["x😀"])], spec())
    assert reader.footer.key_range == ("x😀", "x\ufffd")


@settings(max_examples=40)
@given(st.data())
def test_any_rows_survive_a_base_file(data: st.DataObject) -> None:
    schema = data.draw(structs)
    values = data.draw(st.lists(rows(schema), max_size=4))
    table = pa.Table.from_pylist(values, to_arrow_schema(schema))
    keyed = table.append_column(
        "_hoodie_record_key", pa.array([f"k{i}" for i in range(len(table))])
    )
    _, reader, _ = written(keyed.to_batches(max_chunksize=2), spec(schema, keys=()))
    made = reader.read(list(schema.names))
    assert made.to_pylist() == table.to_pylist()


def test_a_known_filter_and_numbers_are_taken_as_they_are() -> None:
    _, first, _ = written([batch(["a", "b"])], spec())
    bloom = first.footer.bloom
    assert bloom is not None
    how = spec(bloom=bloom, first=70, repeating=frozenset({"n"}))
    _, reader, _ = written([batch(["a"]), batch(["b"])], how)
    assert reader.footer.bloom == bloom
    numbers = reader.read(["_hoodie_commit_seqno"]).to_pydict()["_hoodie_commit_seqno"]
    assert numbers == [f"{INSTANT}_3_70", f"{INSTANT}_3_71"]
    group = reader.footer.metadata.row_group(0)
    encodings = {
        group.column(i).path_in_schema: group.column(i).encodings for i in range(group.num_columns)
    }
    assert "RLE_DICTIONARY" in encodings["n"]
    assert "RLE_DICTIONARY" not in encodings["id"]
