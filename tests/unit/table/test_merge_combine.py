"""Rows of one batch that share a key."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakewright.model.schema import RECORD_KEY
from lakewright.model.table import MergeMode
from lakewright.table.merge.combine import combined
from lakewright.table.merge.policy import NOTHING_TO_MERGE, Gap, MergePolicy

EVENT = MergePolicy(MergeMode.EVENT_TIME_ORDERING, ("ts",), Gap.NONE, None, None, None, None, None)


def table(rows: list[tuple[str, int | None, str]]) -> pa.Table:
    keys, ts, v = zip(*rows, strict=True)
    return pa.table({RECORD_KEY: pa.array(keys), "ts": pa.array(ts, pa.int64()), "v": pa.array(v)})


def test_rows_with_different_keys_are_not_copied() -> None:
    rows = table([("a", 1, "x"), ("b", 1, "y")])
    assert combined(rows, EVENT, ("ts",)) is rows


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.none() | st.integers(-2, 2), st.text(max_size=2)),
        min_size=1,
        max_size=12,
    )
)
def test_the_greatest_ordering_value_wins_then_the_later_row(
    rows: list[tuple[str, int | None, str]],
) -> None:
    best: dict[str, tuple[int, int]] = {}
    for place, (key, ts, _) in enumerate(rows):
        best[key] = max(best.get(key, (-99, -1)), (ts or 0, place))
    expected = [rows[place] for _, place in sorted(best.values(), key=lambda b: b[1])]
    found = combined(table(rows), EVENT, ("ts",))
    assert [tuple(r.values()) for r in found.to_pylist()] == expected


def test_several_ordering_fields_count_in_turn() -> None:
    rows = pa.table({RECORD_KEY: ["a"] * 3, "x": [1, 2, 2], "y": [9, 3, 4]})
    assert combined(rows, EVENT, ("x", "y")).to_pylist() == [{RECORD_KEY: "a", "x": 2, "y": 4}]
    assert combined(rows, NOTHING_TO_MERGE, ()).to_pylist()[0]["y"] == 4


def test_rows_that_leave_columns_out_are_merged_by_column() -> None:
    policy = MergePolicy(
        MergeMode.EVENT_TIME_ORDERING, ("ts",), Gap.NULLS, None, None, None, None, None
    )
    rows = pa.table(
        {RECORD_KEY: ["a", "b", "a"], "ts": [1, 1, 2], "v": ["old", "b", None], "w": [None, 1, 2]}
    )
    found = sorted(combined(rows, policy, ("ts",)).to_pylist(), key=repr)
    assert found == [
        {RECORD_KEY: "a", "ts": 2, "v": "old", "w": 2},
        {RECORD_KEY: "b", "ts": 1, "v": "b", "w": 1},
    ]
