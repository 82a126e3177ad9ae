"""Columns that share memory: gone through once, and sharing still afterwards."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakewright.format.arrow.shared_columns import filtered, joined_batches, shared_column, taken

TEXTS = pa.array(["aa", "b", None, "", "ccc"])


def shared(keys: pa.Array = TEXTS) -> pa.RecordBatch:
    numbers = pa.array(range(len(keys)))
    return pa.RecordBatch.from_pydict({"key": keys, "n": numbers, "id": keys, "m": numbers})


def place(column: pa.Array) -> int:
    return int(column.buffers()[2].address)


def test_what_is_taken_shares_as_before() -> None:
    made = taken(shared(), pa.array([4, 0, 2]))
    assert made.column("key").to_pylist() == made.column("id").to_pylist() == ["ccc", "aa", None]
    assert made.column("n").to_pylist() == made.column("m").to_pylist() == [4, 0, 2]
    assert place(made.column("key")) == place(made.column("id"))


def test_what_is_filtered_shares_as_before() -> None:
    made = filtered(shared(), pa.array([True, False, True, False, True]))
    assert made.column("key").to_pylist() == made.column("id").to_pylist() == ["aa", None, "ccc"]
    assert place(made.column("key")) == place(made.column("id"))


def test_what_is_joined_shares_as_before() -> None:
    rows = pa.Table.from_batches([shared().slice(1), shared().slice(0, 2)])
    (made,) = joined_batches(rows)
    assert pa.Table.from_batches([made]).equals(rows.combine_chunks())
    assert place(made.column("key")) == place(made.column("id"))


def test_slices_of_one_array_are_not_taken_for_each_other() -> None:
    texts = pa.array(["a", "b", "c", "d"])
    rows = pa.RecordBatch.from_arrays([texts.slice(0, 3), texts.slice(1, 3)], ["one", "other"])
    for made in (taken(rows, pa.array([0, 1])), filtered(rows, pa.array([True, True, False]))):
        assert made.to_pydict() == {"one": ["a", "b"], "other": ["b", "c"]}
    (joined,) = joined_batches(pa.Table.from_batches([rows, rows]))
    assert joined.to_pydict() == {"one": [*"abcabc"], "other": [*"bcdbcd"]}


COLUMNS = st.lists(
    st.tuples(
        st.sampled_from(["text", "number", "list", "same"]),
        st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=6, max_size=6),
    ),
    min_size=1,
    max_size=5,
)


@given(COLUMNS, st.lists(st.integers(0, 5), max_size=8))
def test_the_rows_are_those_that_arrow_takes(
    columns: list[tuple[str, list[str | None]]], places: list[int]
) -> None:
    arrays: list[pa.Array] = []
    for kind, values in columns:
        if kind == "same" and arrays:
            arrays.append(arrays[-1])
        elif kind == "number":
            arrays.append(pa.array([None if v is None else len(v) for v in values], pa.int64()))
        elif kind == "list":
            arrays.append(pa.array([None if v is None else [v] for v in values]))
        else:
            arrays.append(pa.array(values, pa.string()))
    rows = pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])
    chosen = pa.array(places, pa.int64())
    assert taken(rows, chosen).equals(rows.take(chosen))
    flags = pa.array([i in places for i in range(6)])
    assert filtered(rows, flags).equals(rows.filter(flags))
    table = pa.Table.from_batches([rows, rows.slice(2), rows.slice(0, 0)])
    assert pa.Table.from_batches(joined_batches(table)).equals(table.combine_chunks())


SAME_SIZE = st.integers(1, 4).flatmap(
    lambda size: st.lists(st.text("abé", min_size=size, max_size=size), min_size=2, max_size=9)
)


@given(SAME_SIZE, st.data())
def test_texts_of_one_size_are_taken_from_wherever_they_lie(
    values: list[str], data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, len(values) - 1))
    column = pa.array(["before", *values, "after"]).slice(1 + begin, len(values) - begin)
    places = pa.array(data.draw(st.lists(st.integers(0, len(column) - 1), max_size=12)), pa.int64())
    made = taken(pa.RecordBatch.from_arrays([column], ["text"]), places).column("text")
    made.validate(full=True)
    assert made.equals(column.take(places))


def test_columns_of_no_rows_keep_their_types() -> None:
    schema = pa.schema([("text", pa.string()), ("number", pa.int64()), ("other", pa.string())])
    (made,) = joined_batches(schema.empty_table())
    assert made.schema == schema
    assert joined_batches(pa.table([pa.chunked_array([], f.type) for f in schema], schema=schema))


def test_a_column_that_shares_its_memory_is_named() -> None:
    sharing = shared(pa.array(["a", "b"]))
    apart = pa.RecordBatch.from_pydict({**sharing.to_pydict()})
    assert shared_column([sharing, sharing.slice(1)], "key") == "id"
    assert shared_column([sharing, apart], "key") is None
    assert shared_column([apart], "key") is None
    assert shared_column([], "key") is None
