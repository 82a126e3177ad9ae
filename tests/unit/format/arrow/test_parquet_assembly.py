"""Files put together from column chunks: every reader finds the rows, each byte named once."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.arrow import parquet_assembly
from lakewright.format.arrow.parquet_assembly import one_text
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.format.hudi import parquet_writing
from lakewright.format.hudi.parquet_writing import ParquetFile, repeating_columns
from lakewright.model.schema import Struct
from support.schemas import rows as rows_of
from support.schemas import structs

KEYS = ("key", "id")


@pytest.fixture(scope="module", autouse=True, params=[1 << 60, 0], ids=["in-memory", "streamed"])
def every_file_is_put_together(request: pytest.FixtureRequest) -> Iterator[None]:
    """Few rows are left to Arrow: here they shall not be, nor be taken for few or for many."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet_writing, "_FEW", 0)
        patched.setattr(parquet_assembly, "_LARGE", request.param)
        yield


SCHEMA = pa.schema(
    [
        ("when", pa.dictionary(pa.int32(), pa.string())),
        ("key", pa.string()),
        ("id", pa.string()),
        ("n", pa.int64()),
        ("where", pa.string()),
    ]
)


def table(keys: list[str], ids: list[str | None], where: list[str | None]) -> pa.Table:
    when = pa.array(["now"] * len(keys)).dictionary_encode()
    return pa.table(
        {"when": when, "key": keys, "id": ids, "n": list(range(len(keys))), "where": where},
        schema=SCHEMA,
    )


def stored(*groups: pa.Table, schema: pa.Schema = SCHEMA) -> bytes:
    sink = io.BytesIO()
    file = ParquetFile(sink, schema, KEYS, repeating_columns(groups[0], KEYS))
    for group in groups:
        file.write(group)
    file.close({"k": "v"})
    return sink.getvalue()


def extents(data: bytes) -> list[tuple[int, int]]:
    """Return from where to where each column chunk lies, all row groups in turn."""
    found = []
    metadata = pq.read_metadata(io.BytesIO(data))
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            start = column.data_page_offset
            if column.has_dictionary_page:
                start = min(start, column.dictionary_page_offset)
            found.append((start, start + column.total_compressed_size))
    return found


def decoded(data: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    return found


SAME = table([f"k{i}" for i in range(50)], [f"k{i}" for i in range(50)], ["here"] * 50)
OTHER = table(["a", "b"], ["b", None], ["here", "there"])


def test_the_column_of_keys_is_a_copy_of_its_twin() -> None:
    data = stored(SAME)
    places = extents(data)
    assert data[slice(*places[1])] == data[slice(*places[2])]
    assert decoded(data) == SAME.to_pylist()


def test_chunks_lie_one_after_the_other_and_share_no_byte() -> None:
    data = stored(SAME, OTHER, SAME)
    places = extents(data)
    assert places[0][0] == 4
    assert [start for start, _ in places[1:]] == [end for _, end in places[:-1]]


def test_a_row_group_whose_texts_differ_is_encoded_in_full() -> None:
    data = stored(SAME, OTHER, SAME)
    assert decoded(data) == [*SAME.to_pylist(), *OTHER.to_pylist(), *SAME.to_pylist()]
    statistics = pq.read_metadata(io.BytesIO(data)).row_group(1).column(2).statistics
    assert (statistics.null_count, statistics.min) == (1, "b")


def test_a_copy_has_its_own_name_and_the_bounds_of_its_twin() -> None:
    group = pq.read_metadata(io.BytesIO(stored(SAME))).row_group(0)
    assert [group.column(i).path_in_schema for i in range(5)] == SCHEMA.names
    for number in (1, 2):
        statistics = group.column(number).statistics
        assert (statistics.min, statistics.max) == ("k0", "k9")
    assert group.total_byte_size == sum(group.column(i).total_uncompressed_size for i in range(5))


def test_a_column_that_may_be_null_is_no_twin_of_one_that_may_not() -> None:
    strict = SCHEMA.set(2, pa.field("id", pa.string(), nullable=False))
    data = stored(SAME.cast(strict), schema=strict)
    assert decoded(data) == SAME.to_pylist()
    places = extents(data)
    assert data[slice(*places[1])] != data[slice(*places[2])]


@pytest.mark.parametrize("count", [3, 4])
def test_several_columns_may_hold_the_same(count: int) -> None:
    names = [f"k{number}" for number in range(count)]
    rows = pa.table({name: ["a", "b", "a"] for name in names})
    sink = io.BytesIO()
    file = ParquetFile(sink, rows.schema, names, ())
    file.write(rows)
    assert file.same() == {(name, names[-1]) for name in names[:-1]}
    file.close({})
    assert pq.read_table(sink).equals(rows)


def test_other_readers_find_the_rows(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "made.parquet"
    path.write_bytes(stored(SAME, OTHER))
    found = duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table().to_pylist()
    assert found == [*SAME.to_pylist(), *OTHER.to_pylist()]
    pruned = duckdb.sql(f"SELECT n FROM '{path}' WHERE key = 'k7' AND \"where\" = 'here'")
    assert pruned.fetchall() == [(7,)]


def test_pairs_are_told_that_hold_in_all_rows() -> None:
    file = ParquetFile(io.BytesIO(), SCHEMA, KEYS, ())
    assert not file.same()
    file.write(SAME)
    assert file.same() == {("key", "id")}
    file.write(OTHER)
    file.write(SAME)
    assert not file.same()


@pytest.mark.parametrize("limit", [0, 50, 100])
def test_few_rows_are_the_same_by_either_way(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(parquet_writing, "_FEW", limit)
    for groups in ([SAME], [OTHER], [OTHER, SAME], [SAME, OTHER]):
        data = stored(*groups)
        assert decoded(data) == [row for group in groups for row in group.to_pylist()]
        metadata = pq.read_metadata(io.BytesIO(data))
        assert metadata.num_row_groups == len(groups)
        assert metadata.metadata == {b"k": b"v", b"lakewright.bounds": b"none-with-nan"}


def test_a_file_without_rows_has_its_columns() -> None:
    sink = io.BytesIO()
    ParquetFile(sink, SCHEMA, KEYS, ()).close({"k": "v"})
    found = pq.ParquetFile(sink)
    assert found.metadata.num_row_groups == 0
    assert found.schema_arrow.names == SCHEMA.names
    assert found.metadata.metadata[b"k"] == b"v"


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array(["a", "a"]), "a"),
        (pa.array(["", ""]), ""),
        (pa.array(["a", "b", "a"]), None),
        (pa.array(["a", "a", "b", "a", "a"]), None),
        (pa.array(["a", "b", "a", "a", "a"]), None),
        (pa.array(["a", None]), None),
        (pa.array([], pa.string()), None),
        (pa.array([1, 1]), None),
        (pa.array([b"a", b"a"]), None),
        (pa.array(["a", "a"]).dictionary_encode(), "a"),
        (pa.array(["a", None]).dictionary_encode(), None),
        (pa.array(["a", "b"]).dictionary_encode(), None),
        (pa.array([7, 7]).dictionary_encode(), None),
    ],
)
def test_columns_of_one_text(column: pa.Array, text: str | None) -> None:
    assert one_text(pa.chunked_array([column])) == text


def test_chunks_of_different_dictionaries_are_not_of_one_text() -> None:
    chunks = [pa.array([text]).dictionary_encode() for text in ("a", "b")]
    assert one_text(pa.chunked_array(chunks)) is None
    assert one_text(pa.chunked_array([chunks[0], chunks[0]])) == "a"


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_rows_survive(data: st.DataObject) -> None:
    schema: Struct = data.draw(structs)
    target = to_arrow_schema(schema)
    groups = []
    for _ in range(data.draw(st.integers(1, 3))):
        # Twins and columns of one text come up where one row stands many times.
        some = data.draw(st.lists(rows_of(schema), max_size=3)) * data.draw(st.integers(1, 2))
        groups.append(pa.Table.from_pylist(some, target))
    sink = io.BytesIO()
    texts = [field.name for field in target if pa.types.is_string(field.type)]
    keys = data.draw(st.lists(st.sampled_from(texts), unique=True)) if texts else []
    file = ParquetFile(sink, target, keys, ())
    for group in groups:
        file.write(group)
    file.close({})
    found = pq.read_table(sink)
    assert found.num_rows == sum(group.num_rows for group in groups)
    # NaN is not equal to itself, but is written alike.
    assert repr(found.to_pylist()) == repr([row for g in groups for row in g.to_pylist()])
