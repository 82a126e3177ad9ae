"""Rows of which something is missing or wrong: null columns, None, pandas' fractions, mistakes."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakewright as lw

NUMBERS = count()
SCHEMA = "k string, p string, n bigint, w int, tags array<string>"
ROW = {"k": "a", "p": "1", "n": 2**53 + 1, "w": 1, "tags": ["x"]}


@pytest.fixture
def table() -> lw.Table:
    path = f"memory://odd-rows-{next(NUMBERS)}/t"
    made = lw.create_table(path, schema=SCHEMA, key="k", partition_by="p")
    made.insert([ROW])
    return made


def rows_in(table: lw.Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["k"])


def as_arrow(columns: dict[str, list[Any]]) -> pa.Table:
    return pa.table(columns)


def as_pandas(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def as_polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def as_reader(columns: dict[str, list[Any]]) -> pa.RecordBatchReader:
    return pa.table(columns).to_reader()


FORMS = pytest.mark.parametrize("form", [as_arrow, as_pandas, as_polars, as_reader])
Form = Callable[[dict[str, list[Any]]], Any]


@FORMS
def test_a_null_column_is_no_missing_column(table: lw.Table, form: Form) -> None:
    table.delete(form({"k": ["a"], "p": [None]}))
    assert rows_in(table) == [ROW]  # the partition of null is another one
    table.upsert(form({"k": ["b"], "p": [None], "n": [None], "w": [1], "tags": [[]]}))
    table.upsert(form({"k": ["a"], "p": ["1"], "n": [None], "w": [None], "tags": [None]}))
    assert rows_in(table) == [
        {"k": "a", "p": "1", "n": None, "w": None, "tags": None},
        {"k": "b", "p": None, "n": None, "w": 1, "tags": []},
    ]
    with pytest.raises(lw.Invalid, match="no record key"):
        table.upsert(form({"k": [None], "p": ["1"]}))
    assert table.upsert(form({"k": [], "p": [], "new": []})).instant is None
    assert table.schema.names == ["k", "p", "n", "w", "tags"]


@FORMS
def test_a_merge_takes_nulls_from_a_null_column(table: lw.Table, form: Form) -> None:
    source = {"k": ["a"], "n": [None]}
    on, assign = "t.k = s.k", {"set": {"w": "7"}, "where": "s.n IS NULL"}
    assert table.merge(form(source), on, when_matched=assign).updated == 1
    table.merge(form(source), on, when_matched="update")
    assert rows_in(table) == [{**ROW, "n": None, "w": 7}]


def test_a_merge_takes_nulls_from_dicts(table: lw.Table) -> None:
    table.merge([{"k": "a", "n": None}], "t.k = s.k", when_matched="update")
    assert rows_in(table) == [{**ROW, "n": None}]


def test_missing_values_of_pandas_leave_whole_numbers_whole(table: lw.Table) -> None:
    frame = as_pandas({"k": ["b", "c"], "p": ["1", "1"], "n": [1, None], "w": [None, 2**31 - 1]})
    table.upsert(frame)
    assert [(row["n"], row["w"]) for row in rows_in(table)] == [
        (2**53 + 1, 1),
        (1, None),
        (None, 2**31 - 1),
    ]
    assert table.schema.field("n").type == pa.int64()
    table.merge(frame, "t.k = s.k", when_matched={"set": {"n": "s.n + 1"}})
    assert [row["n"] for row in rows_in(table)] == [2**53 + 1, 2, None]


@pytest.mark.parametrize("value", [1.5, 2.0**53, float("inf"), -(2.0**63)])
def test_fractions_do_not_round_stored_numbers(table: lw.Table, value: float) -> None:
    with pytest.raises(lw.Invalid, match=r"column n is long in the table and double.*widen_column"):
        table.upsert(as_pandas({"k": ["b"], "p": ["1"], "n": [value]}))
    with pytest.raises(lw.Invalid, match="column n is long"):
        table.upsert(pa.table({"k": ["b"], "p": ["1"], "n": [1.0]}))
    with pytest.raises(lw.Invalid, match="column w is int in the table and float"):
        table.upsert(pa.table({"k": ["b"], "p": ["1"], "w": pa.array([1.0], pa.float32())}))


def test_numbers_become_such_as_are_rounded_where_the_user_says_so(table: lw.Table) -> None:
    table.widen_column("n", "double")
    table.upsert(as_pandas({"k": ["b"], "p": ["1"], "n": [1.5], "w": [2**40 + 0.5]}))
    assert [(row["n"], row["w"]) for row in rows_in(table)] == [
        (2.0**53, 1.0),
        (1.5, 2**40 + 0.5),  # every int is a double
    ]


VERBS = ("insert", "bulk_insert", "upsert", "insert_overwrite", "insert_overwrite_table")


@pytest.mark.parametrize("verb", VERBS)
def test_none_is_no_rows(table: lw.Table, verb: str) -> None:
    with pytest.raises(lw.Invalid, match=r"^None holds no rows"):
        getattr(table, verb)(None)
    with pytest.raises(lw.Invalid, match=r"^None holds no rows"):
        table.merge(None, "t.k = s.k", when_matched="update")
    assert rows_in(table) == [ROW]


def mistakes() -> dict[str, tuple[Callable[[lw.Table], object], str]]:
    rows = [{**ROW, "k": "b"}]
    twice = [["b", "1", 1, 2]]
    return {
        "two columns of a name": (
            lambda t: t.upsert(_pandas().DataFrame(twice, columns=["k", "p", "n", "n"])),
            "Duplicate column names",
        ),
        "two columns of a name in Arrow": (
            lambda t: t.upsert(pa.table([["b"], ["1"], [1], [2]], names=["k", "p", "n", "n"])),
            "n",
        ),
        "a series": (lambda t: t.upsert(_pandas().Series([1])), "Series holds no rows"),
        "an array": (lambda t: t.upsert(pa.array([1])), "Int64Array holds no rows"),
        "a list of options": (lambda t: t.upsert(rows, options=["a"]), "options is a list"),  # type: ignore[typeddict-item]
        "a number as option": (lambda t: t.upsert(rows, options={"a": 5}), "not text"),  # type: ignore[dict-item]
        "a text as metadata": (lambda t: t.upsert(rows, metadata="x"), "metadata is a str"),  # type: ignore[typeddict-item]
        "a text as count": (lambda t: t.upsert(rows, retry="x"), "retry is 'x'"),  # type: ignore[typeddict-item]
        "a number as mode": (lambda t: t.bulk_insert(rows, sort_mode=5), "not text"),  # type: ignore[arg-type]
        "a list and a mode": (
            lambda t: t.bulk_insert(rows, sort_mode="NONE", options=["a"]),  # type: ignore[typeddict-item]
            "options is a list",
        ),
        "no partitions": (lambda t: t.delete_partitions(None), "partitions=None"),  # type: ignore[arg-type]
    }


def _pandas() -> Any:
    return pytest.importorskip("pandas")


@pytest.mark.parametrize("mistake", mistakes())
def test_mistakes_are_told_in_our_words(table: lw.Table, mistake: str) -> None:
    act, told = mistakes()[mistake]
    with pytest.raises(lw.Invalid, match=told):
        act(table)
    assert rows_in(table) == [ROW]


@pytest.mark.parametrize(
    "name", ["_lakewright_delete", "_lakewright_partition", "_Lakewright_Group"]
)
def test_names_that_travel_beside_rows_are_refused(tmp_path: Path, name: str) -> None:
    table = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id")
    table.insert([{"id": "a", "n": 1}])
    for write in (table.insert, table.upsert, table.insert_overwrite_table, table.delete):
        with pytest.raises(lw.LakewrightError, match=f"column names {name}"):
            write([{"id": "a", "n": 2, name: True}])
    assert table.scan().to_arrow().to_pylist() == [{"id": "a", "n": 1}]


BAD_TEXT = pa.array([b"\xff"]).view(pa.string())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("once", [False, True], ids=["table", "reader"])
@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("k", BAD_TEXT, r"column k holds text that is not UTF-8, such as '\\xff'"),
        ("s", BAD_TEXT, r"column s holds text that is not UTF-8, such as '\\xff'"),
        (
            "m",
            pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32())),
            "column m holds a map in which the key 'a' stands twice",
        ),
    ],
)
@pytest.mark.parametrize("options", [{}, {"lakewright.write.driver-bytes": "0"}])
def test_values_that_no_file_may_hold_are_refused(
    kind: str, once: bool, column: str, value: pa.Array, words: str, options: dict[str, str]
) -> None:
    path = f"memory://odd-rows-{next(NUMBERS)}/t"
    schema = "k string, s string, m map<string,int>"
    table = lw.create_table(path, schema=schema, key="k", type=kind)
    table.insert([{"k": "a", "s": "b"}])
    rows = pa.table({"k": ["b"], column: value} if column != "k" else {"k": value})
    with pytest.raises(lw.Invalid, match=words):
        table.upsert(rows.to_reader() if once else rows, options=options)
    assert [row["k"] for row in rows_in(lw.open_table(path))] == ["a"]
    table.upsert([{"k": "b", "m": {"a": 1}}])
    assert [row["k"] for row in rows_in(table)] == ["a", "b"]


def test_a_map_of_a_list_of_dicts_may_not_hold_a_key_twice() -> None:
    path = f"memory://odd-rows-{next(NUMBERS)}/t"
    table = lw.create_table(path, schema="k string, m map<string,int>", key="k")
    with pytest.raises(lw.Invalid, match="the key 'a' stands twice"):
        table.upsert([{"k": "a", "m": [("a", 1), ("a", 2)]}])
