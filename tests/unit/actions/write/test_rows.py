"""Rows that can be gone through more than once, whatever they came from."""

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakewright.actions.write.rows import ArrowRows
from lakewright.model.errors import Invalid, Unsupported

TABLE = pa.table({"a": pa.array(range(10), pa.int64())})


def once(table: pa.Table = TABLE) -> ArrowRows:
    reader = table.to_reader(max_chunksize=3)
    return ArrowRows(reader.schema, lambda: reader, once=True)


def values(rows: ArrowRows, **how: bool) -> list[int]:
    return [value for batch in rows.batches(**how) for value in batch.column(0).to_pylist()]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_table_is_gone_through_again_and_again(temporary: Path) -> None:
    rows = ArrowRows.of(TABLE)
    assert rows.nbytes == 80
    assert values(rows) == values(rows) == list(range(10))
    assert not list(temporary.iterdir())


def test_a_reader_is_kept_on_disk_for_a_second_pass(temporary: Path) -> None:
    rows = once()
    assert rows.nbytes is None
    assert values(rows) == values(rows) == values(rows, last=True) == list(range(10))
    assert len(list(temporary.iterdir())) == 1
    del rows
    gc.collect()
    assert not list(temporary.iterdir())


def test_a_last_pass_needs_no_disk(temporary: Path) -> None:
    rows = once()
    assert values(rows, last=True) == list(range(10))
    assert not list(temporary.iterdir())
    with pytest.raises(Invalid, match="only once"):
        rows.batches()


def test_a_reader_that_breaks_leaves_no_file(temporary: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise OSError("gone")

    rows = ArrowRows(TABLE.schema, broken, once=True)
    with pytest.raises(OSError, match="gone"):
        rows.batches()
    assert not list(temporary.iterdir())


def test_few_rows_are_returned_and_many_are_put_back(temporary: Path) -> None:
    rows = once()
    assert rows.few(40) is None
    assert rows.few(50) is None
    assert values(rows) == list(range(10))
    assert rows.few(80) == TABLE
    kept = once()
    assert kept.few(80) == TABLE
    assert values(kept) == list(range(10))
    assert len(list(temporary.iterdir())) == 1  # of the first, which was more than few
    assert ArrowRows.of(TABLE).few(30) is None
    assert ArrowRows.of(TABLE).few(80) == TABLE


def test_a_look_at_many_rows_is_the_beginning_of_the_next_pass() -> None:
    opened = []

    def open() -> Iterator[pa.RecordBatch]:
        opened.append(len(opened))
        return iter(TABLE.to_batches(max_chunksize=3))

    rows = ArrowRows(TABLE.schema, open)
    assert rows.few(30) is None
    assert rows.few(30) is None
    assert values(rows) == list(range(10))
    assert opened == [0]
    assert values(rows) == list(range(10))
    assert opened == [0, 1]


def test_large_batches_are_cut() -> None:
    table = pa.table({"a": pa.array(range(600_000), pa.int64())})
    sizes = [batch.num_rows for batch in ArrowRows.of(table).batches()]
    assert sum(sizes) == 600_000
    assert max(sizes) <= 256 << 10


def test_types_become_those_of_files() -> None:
    table = pa.table(
        {
            "text": pa.array(["x"], pa.large_string()),
            "view": pa.array(["x"], pa.string_view()),
            "code": pa.array(["x"]).dictionary_encode(),
            "viewed": pa.DictionaryArray.from_arrays([0], pa.array(["x"], pa.string_view())),
            "byte": pa.array([1], pa.uint8()),
            "long": pa.array([1], pa.uint32()),
            "nano": pa.array([1000], pa.timestamp("ns", "Europe/Paris")),
            "second": pa.array([1], pa.timestamp("s")),
            "list": pa.array([["x"]], pa.large_list(pa.large_string())),
            "views": pa.array([["x"]], pa.list_view(pa.string())),
            "runs": pa.RunEndEncodedArray.from_arrays([1], ["x"]),
            "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16], pa.binary(16))),
            "day": pa.array([0], pa.date64()),
            "small": pa.array([1], pa.decimal256(5, 1)),
            "none": pa.nulls(1),
        }
    )
    rows = ArrowRows.of(table)
    text = pa.string()
    assert dict(zip(rows.schema.names, rows.schema.types, strict=True)) == {
        "text": text,
        "view": text,
        "code": text,
        "viewed": text,
        "byte": pa.int32(),
        "long": pa.int64(),
        "nano": pa.timestamp("us", "UTC"),
        "second": pa.timestamp("ms"),
        "list": pa.list_(pa.field("element", text)),
        "views": pa.list_(pa.field("element", text)),
        "runs": text,
        "uuid": pa.binary(16),
        "day": pa.date32(),
        "small": pa.decimal128(5, 1),
    }
    (batch,) = rows.batches()
    batch.validate(full=True)
    assert batch.schema == rows.schema
    assert batch.column("list").to_pylist() == [["x"]]


@pytest.mark.parametrize("kind", [pa.uint64(), pa.duration("s"), pa.month_day_nano_interval()])
def test_types_without_a_home_are_named(kind: pa.DataType) -> None:
    with pytest.raises(Unsupported, match="column a"):
        ArrowRows(pa.schema([("a", kind)]), list)


def test_nanoseconds_are_not_cut_off() -> None:
    rows = ArrowRows.of(pa.table({"at": pa.array([1001], pa.timestamp("ns"))}))
    with pytest.raises(Invalid, match=r"column at .*ns.*us"):
        list(rows.batches())


def test_lists_of_nothing_have_no_type() -> None:
    with pytest.raises(Invalid, match="column a"):
        ArrowRows.of(pa.table({"a": pa.array([[]])}))
