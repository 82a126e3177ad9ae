"""What a merge or an update may say, and how it is told what is wrong."""

from typing import Any

import pyarrow as pa
import pytest

from lakewright.actions.rowlevel.clauses import read_clauses, read_values
from lakewright.actions.rowlevel.plan import Rules, plan_merge, plan_update
from lakewright.actions.rowlevel.update import update_rows
from lakewright.format.arrow.schema import to_arrow_schema
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import Invalid, InvalidExpression, UnknownColumn, Unsupported
from lakewright.model.expression.build import col, lit
from lakewright.model.expression.parse import parse_expression

COLUMNS = parse_ddl("id int, p string, n int not null, at timestamp, tags array<string>")
RULES = Rules(COLUMNS, ("id",), ("p",), ("n",))
SOURCE = parse_ddl("id bigint, p string, extra string")


def _merge(on: str = "t.id = s.id", **clauses: Any) -> Any:
    read = {name: read_clauses(name, form) for name, form in clauses.items()}
    return plan_merge(RULES, SOURCE, parse_expression(on), read)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("insert", "when_matched"),
        ("update", "when_not_matched"),
        ("update", "when_not_matched_by_source"),
        ("upsert", "when_matched"),
        ({"set": {"p": "s.p"}, "delete": True}, "when_matched"),
        ({"where": "true"}, "when_matched"),
        ({"set": {}}, "when_matched"),
        ({"delete": False}, "when_matched"),
        (7, "when_matched"),
    ],
)
def test_forms_that_are_none(form: Any, name: str) -> None:
    with pytest.raises(Invalid):
        read_clauses(name, form)


def test_a_merge_that_changes_nothing_is_refused() -> None:
    with pytest.raises(Invalid, match="changes nothing"):
        _merge(when_matched="ignore")


def test_names_in_both_sides_must_be_told_apart() -> None:
    with pytest.raises(UnknownColumn, match=r"t\.id or s\.id"):
        _merge("id = s.id", when_matched="delete")
    with pytest.raises(UnknownColumn, match=r"Nearest: s\.extra"):
        _merge(when_matched={"delete": True, "where": "s.extr = 'x'"})


def test_the_matched_key_may_be_set_and_no_other() -> None:
    plan = _merge(when_matched="update")  # id is among the columns that * sets
    assert plan.matched[0].moves  # so is the partition column
    with pytest.raises(Invalid, match="record key"):
        _merge("t.p = s.p", when_matched="update")
    with pytest.raises(Invalid, match="record key"):
        plan_update(RULES, {"id": lit(3)})


def test_inserted_rows_need_their_key_and_what_may_not_be_null() -> None:
    with pytest.raises(Invalid, match="needs n"):
        _merge(when_not_matched="insert")
    with pytest.raises(Invalid, match="needs id"):
        _merge(when_not_matched={"insert": {"n": "1"}})


def test_clauses_see_only_the_side_that_is_there() -> None:
    with pytest.raises(UnknownColumn):
        _merge(when_not_matched={"insert": {"id": "t.id", "n": "1"}})
    with pytest.raises(UnknownColumn):
        _merge(when_not_matched_by_source={"set": {"p": "s.p"}})


def test_values_must_fit_their_column() -> None:
    with pytest.raises(InvalidExpression, match="column at"):
        plan_update(RULES, {"at": lit(True)})
    with pytest.raises(UnknownColumn, match="Nearest: tags"):
        plan_update(RULES, {"tag": lit(1)})
    with pytest.raises(Invalid, match="may not be null"):
        plan_update(RULES, {"n": parse_expression("null")})
    with pytest.raises(Invalid, match="set twice"):
        plan_update(RULES, {"n": lit(1), "t.N": lit(2)})


def test_rows_with_keys_of_their_writer_stay_in_their_partition() -> None:
    rules = Rules(COLUMNS, (), ("p",), (), ("_hoodie_record_key", "_hoodie_partition_path"))
    with pytest.raises(Unsupported, match="moved"):
        plan_update(rules, {"p": lit("x")})


def test_values_that_would_be_lost_are_refused_with_a_sample() -> None:
    rows = pa.table(
        {"id": [1, 2], "p": ["5", "five"], "n": [1, 1], "at": [None, None], "tags": [[], []]},
        schema=to_arrow_schema(COLUMNS),
    )
    step = plan_update(RULES, read_values({"n": col("p")}) or {})
    with pytest.raises(Invalid, match="'five'"):
        list(update_rows(step, rows.to_batches(), RULES))


def test_sinking_ordering_values_are_counted_over_all_rows() -> None:
    rows = pa.table(
        {"id": [*range(9)], "p": ["x"] * 9, "n": [5] * 9, "at": [None] * 9, "tags": [[]] * 9},
        schema=to_arrow_schema(COLUMNS),
    )
    step = plan_update(RULES, {"n": col("id")})
    with pytest.raises(Invalid, match="5 rows would get a lower n"):
        list(update_rows(step, rows.to_batches(max_chunksize=2), RULES))
