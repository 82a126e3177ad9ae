"""Rows as lists: every value comes back, texts by their codes, in rows of bounded size."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")

from lakewright.engine.spark import lists
from lakewright.engine.spark.lists import as_lists, can_travel, list_form
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.schema import INT, LONG, STRING, Field, List, Map, Struct

SHAPE = Struct((Field("s", STRING), Field("n", LONG), Field("S", STRING)))
NUMBER = Field("_lakewright_partition", INT)


def rows_of(made: pa.RecordBatch) -> list[tuple[object, ...]]:
    """Take the rows out of lists as the columns of Spark do it."""
    rows = []
    for row in made.to_pylist():
        for at in range(row["_lakewright_count"]):
            texts = []
            for place in (0, 2):
                codes = row[f"_lakewright_{place}_codes"]
                texts.append(row[f"_lakewright_{place}"][at if codes is None else codes[at]])
            rows.append((texts[0], row["_lakewright_1"][at], texts[1]))
    return rows


texts = st.lists(st.none() | st.sampled_from(["", "a", "b", "\u6c34"]), min_size=6, max_size=40)


@given(texts, st.booleans(), st.integers(0, 5), st.sampled_from([1, 40, 200, 1 << 20]))
def test_every_value_comes_back(
    values: list[str | None], coded: bool, skipped: int, size: int
) -> None:
    column = pa.array(values, pa.string())
    columns = [
        column.dictionary_encode() if coded else column,
        pa.array([None if v == "" else n for n, v in enumerate(values)], pa.int32()),
        column,
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=["s", "n", "S"]).slice(skipped)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "_LIST_BYTES", size)
        made = as_lists(batch, SHAPE, (NUMBER, 7))
    assert made.schema.equals(to_arrow_schema(list_form(SHAPE, NUMBER)))
    assert set(made.column(NUMBER.name).to_pylist()) == {7}
    wanted = [(v, None if v == "" else n, v) for n, v in enumerate(values)][skipped:]
    assert rows_of(made) == wanted


def test_codes_travel_where_texts_are_few() -> None:
    few = pa.array(["x", None, "y"] * 10).dictionary_encode()
    many = pa.array([f"k{n}" for n in range(30)]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([few, pa.array(range(30)), many], names=["s", "n", "S"])
    (made,) = as_lists(batch, SHAPE).to_pylist()
    assert made["_lakewright_0"] == ["x", "y", None], "a null has a code too"
    assert made["_lakewright_0_codes"] == [0, 2, 1] * 10
    assert made["_lakewright_2_codes"] is None and len(made["_lakewright_2"]) == 30


def test_lists_are_short() -> None:
    """Where Spark generates no code it copies them for each of their rows."""
    values = [f"{n}" * 20 for n in range(20_000)]
    columns = [pa.array(values), pa.array(range(20_000)), pa.array(values)]
    batch = pa.RecordBatch.from_arrays(columns, names=["s", "n", "S"])
    made = as_lists(batch, SHAPE)
    assert max(made.slice(at, 1).nbytes for at in range(made.num_rows)) < 64 << 10
    assert rows_of(made) == [(v, n, v) for n, v in enumerate(values)]
    huge = pa.RecordBatch.from_arrays(
        [pa.array(["x" * 99_000] * 2), pa.array([1, 2]), pa.array(["y"] * 2)], names=["s", "n", "S"]
    )
    assert as_lists(huge, SHAPE).column(0).to_pylist() == [1, 1]


def test_rows_without_columns_are_counted() -> None:
    bare = pa.Array.from_buffers(pa.struct([]), 200_000, [None])
    made = as_lists(pa.RecordBatch.from_struct_array(bare), Struct(()), (NUMBER, 3))
    assert made.schema.names == ["_lakewright_count", NUMBER.name]
    counts = made.column(0).to_pylist()
    assert sum(counts) == 200_000 and max(counts) < 10_000


@pytest.mark.parametrize(
    "kind", [List(INT), Map(STRING), Struct((Field("a", INT),))], ids=["list", "map", "struct"]
)
def test_columns_that_hold_others_do_not_travel_so(kind: object) -> None:
    assert can_travel(SHAPE)
    assert not can_travel(Struct((*SHAPE.fields, Field("x", kind))))  # type: ignore[arg-type]
