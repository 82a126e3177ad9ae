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


def rows_of(made: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    """Take the rows out of lists as the columns of Spark do it."""
    rows = []
    for row in (row for batch in made for row in batch.to_pylist()):
        for at in range(row["_lakewright_count"]):
            texts = []
            for place in (0, 2):
                codes = row[f"_lakewright_{place}_codes"]
                texts.append(row[f"_lakewright_{place}"][at if codes is None else codes[at]])
            rows.append((texts[0], row["_lakewright_1"][at], texts[1]))
    return rows


texts = st.lists(st.none() | st.sampled_from(["", "a", "b", "\u6c34"]), min_size=1, max_size=40)


@given(texts, st.booleans(), st.integers(0, 5))
def test_every_value_comes_back(values: list[str | None], coded: bool, skipped: int) -> None:
    column = pa.array(values, pa.string())
    columns = [
        column.dictionary_encode() if coded else column,
        pa.array([None if v == "" else n for n, v in enumerate(values)], pa.int32()),
        column,
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=["s", "n", "S"]).slice(skipped)
    made = list(as_lists(batch, SHAPE, (NUMBER, 7)))
    target = to_arrow_schema(list_form(SHAPE, NUMBER))
    assert all(batch.schema.equals(target) and batch.num_rows == 1 for batch in made)
    assert all(batch.column(NUMBER.name).to_pylist() == [7] for batch in made)
    wanted = [(v, None if v == "" else n, v) for n, v in enumerate(values)][skipped:]
    assert rows_of(made) == wanted


def test_codes_travel_where_texts_are_few() -> None:
    many = pa.array(["x", None, "y"] * 10).dictionary_encode()
    few = pa.array([f"k{n}" for n in range(30)]).dictionary_encode()
    batch = pa.RecordBatch.from_arrays([many, pa.array(range(30)), few], names=["s", "n", "S"])
    (made,) = (b.to_pylist()[0] for b in as_lists(batch, SHAPE))
    assert made["_lakewright_0"] == ["x", "y", None], "a null has a code too"
    assert made["_lakewright_0_codes"] == [0, 2, 1] * 10
    assert made["_lakewright_2_codes"] is None and len(made["_lakewright_2"]) == 30


def test_wide_rows_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_LARGEST", 1_000)
    values = [f"{n}" * 50 for n in range(100)]
    columns = [pa.array(values), pa.array(range(100)), pa.array(values)]
    batch = pa.RecordBatch.from_arrays(columns, names=["s", "n", "S"])
    made = list(as_lists(batch, SHAPE))
    assert rows_of(made) == [(v, n, v) for n, v in enumerate(values)]
    assert max(piece.nbytes for piece in made) < 2_000
    huge = pa.RecordBatch.from_arrays(
        [pa.array(["x" * 5_000] * 2), pa.array([1, 2]), pa.array(["y"] * 2)], names=["s", "n", "S"]
    )
    assert [piece.column(0).to_pylist() for piece in as_lists(huge, SHAPE)] == [[1], [1]]


@pytest.mark.parametrize(
    "kind", [List(INT), Map(STRING), Struct((Field("a", INT),))], ids=["list", "map", "struct"]
)
def test_columns_that_hold_others_do_not_travel_so(kind: object) -> None:
    assert can_travel(SHAPE)
    assert not can_travel(Struct((*SHAPE.fields, Field("x", kind))))  # type: ignore[arg-type]
