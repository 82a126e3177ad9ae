"""Leaving out files by what their footers say."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.format.hudi.config import TableConfig
from lakewright.model.errors import InvalidOption
from lakewright.model.expression.bind import bind
from lakewright.model.expression.build import col
from lakewright.model.expression.nodes import Expression
from lakewright.model.expression.parse import parse_expression
from lakewright.model.schema import DOUBLE, LONG, META_FIELDS, STRING, Field, Struct
from lakewright.table.file_index import FileIndex
from lakewright.table.footers import FOOTERS, ask, key_candidates
from lakewright.table.pruning import Tally
from lakewright.table.state import table_schema
from support.tiny_tables import TinyTable, base_name, parquet_bytes

SCHEMA = Struct((*META_FIELDS, Field("id", STRING), Field("n", LONG), Field("x", DOUBLE)))


def config(keys: str = "id", generator: str = "SIMPLE", partition_by: str = "dt") -> TableConfig:
    return TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.table.recordkey.fields": keys,
            "hoodie.table.partition.fields": partition_by,
            "hoodie.table.keygenerator.type": generator,
        }
    )


@pytest.mark.parametrize(
    ("keys", "generator", "text", "expected"),
    [
        ("id", "SIMPLE", "id = 'a'", {"a"}),
        ("id", "SIMPLE", "id in ('a', 'b') and n > 3", {"a", "b"}),
        ("id", "NON_PARTITION", "id = 'a'", {"a", "id:a"}),
        ("id", "COMPLEX", "id = 'a'", {"a", "id:a"}),
        ("id,n", "COMPLEX", "id = 'a' and n in (1, 2)", {"id:a,n:1", "id:a,n:2"}),
        ("id", "GLOBAL_DELETE", "id = 'a'", {"id:a"}),
        ("n", "SIMPLE", "n = 42", {"42"}),
        ("id", "SIMPLE", "_hoodie_record_key = 'k'", {"k"}),
        ("id", "SIMPLE", "id > 'a'", None),
        ("id", "SIMPLE", "id = 'a' or n = 1", None),
        ("id,n", "COMPLEX", "id = 'a'", None),
        ("x", "SIMPLE", "x = 1.5", None),
    ],
)
def test_keys_are_known_where_the_filter_pins_them_down(
    keys: str, generator: str, text: str, expected: set[str] | None
) -> None:
    found = key_candidates(config(keys, generator), SCHEMA, [bind(parse_expression(text), SCHEMA)])
    assert (None if found is None else set(found)) == expected


def test_a_key_that_is_also_the_partition_is_not_taken_from_the_filter() -> None:
    filters = [bind(parse_expression("id = 'a'"), SCHEMA)]
    assert key_candidates(config(partition_by="id"), SCHEMA, filters) is None


def test_long_lists_over_a_composite_key_are_not_multiplied_out() -> None:
    filters = [bind(col("id").is_in([f"k{i}" for i in range(100)]), SCHEMA)]
    filters.append(bind(col("n").is_in(list(range(100))), SCHEMA))
    assert key_candidates(config("id,n", "COMPLEX"), SCHEMA, filters) is None


def test_footers_are_not_asked_for_partition_columns_or_under_renamed_columns() -> None:
    storage = TinyTable().storage
    partition = Struct((*SCHEMA, Field("dt", STRING)))
    on_partition = [bind(parse_expression("dt = 'a'"), partition)]
    assert ask(storage, config(), partition, on_partition) is None
    numbered = Struct((Field("n", LONG, id=1),))
    assert ask(storage, config(), numbered, [bind(parse_expression("n = 1"), numbered)]) is None
    question = ask(storage, config(), SCHEMA, [bind(parse_expression("n = 1"), SCHEMA)])
    assert question is not None
    assert question.paths == {("n",)}


@pytest.mark.parametrize("text", ["-1", "many", ""])
def test_the_number_of_footers_is_checked(text: str) -> None:
    with pytest.raises(InvalidOption, match="not allowed"):
        FOOTERS.read({FOOTERS.key: text})


numbers = st.integers(-9, 9) | st.none()
Row = int | None
#: Each condition with what SQL says of one row, worked out by hand.
CONDITIONS: list[tuple[Callable[[int], Expression], Callable[[Row, int], bool]]] = [
    (lambda v: col("n") == v, lambda n, v: n == v),
    (lambda v: col("n") > v, lambda n, v: n is not None and n > v),
    (lambda v: col("n") <= v, lambda n, v: n is not None and n <= v),
    (lambda v: ~(col("n") == v), lambda n, v: n is not None and n != v),
    (
        lambda v: (col("n") < v) | (col("id") == f"k{v}"),
        lambda n, v: n == v or (n is not None and n < v),
    ),
    (lambda v: col("id") == f"k{v}", lambda n, v: n == v),
]


@settings(max_examples=40)  # each writes and reads parquet files
@given(
    st.lists(st.lists(numbers, min_size=1, max_size=4), min_size=1, max_size=4),
    st.sampled_from(CONDITIONS),
    st.integers(-9, 9),
)
def test_a_file_with_a_matching_row_is_never_left_out(
    files: list[list[Row]],
    condition: tuple[Callable[[int], Expression], Callable[[Row, int], bool]],
    value: int,
) -> None:
    express, matches = condition
    contents = {
        base_name(f"g{i}", 1): parquet_bytes([f"k{n}" for n in rows], rows)
        for i, rows in enumerate(files)
    }
    state = TinyTable().commit(1, {"dt=a": contents}).state()
    tally = Tally()
    filters = [bind(express(value), table_schema(state))]
    parts = FileIndex(state).list_files_at(None, filters, tally=tally)
    kept = {piece.group.file_id for part in parts for piece in part.file_slices}
    for i, rows in enumerate(files):
        assert f"g{i}" in kept or not any(matches(n, value) for n in rows)
    assert sum(tally.report().left_out.values()) == len(files) - len(kept)
