"""Merging over Arrow rows, judged by a merge that is written out row by row."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.actions.rowlevel import merge as merging
from lakewright.actions.rowlevel.arrow import changes
from lakewright.actions.rowlevel.clauses import read_clauses
from lakewright.actions.rowlevel.merge import merge_rows
from lakewright.actions.rowlevel.narrow import known_values, narrowing
from lakewright.actions.rowlevel.plan import Rules, plan_merge
from lakewright.actions.tasks.write_spec import ROUTE_DELETE
from lakewright.format.arrow.expression import residual_filter
from lakewright.format.arrow.schema import from_arrow_schema, to_arrow_schema
from lakewright.model.ddl import parse_ddl
from lakewright.model.errors import Invalid
from lakewright.model.expression.bind import bind
from lakewright.model.expression.parse import parse_expression

COLUMNS = parse_ddl("id string, p string, n bigint")
RULES = Rules(COLUMNS, ("id",), ("p",))
SOURCE = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("n", pa.int64()), ("op", pa.string())]
)

Row = dict[str, Any]
NUMBERS = st.none() | st.integers(0, 4)
PARTS = st.sampled_from(["x", "y"])
TARGETS = st.lists(
    st.tuples(st.sampled_from("abcdef"), PARTS, NUMBERS), max_size=6, unique_by=lambda r: r[0]
)
SOURCES = st.lists(
    st.tuples(st.none() | st.sampled_from("abcdefgh"), PARTS, NUMBERS, st.sampled_from("ud")),
    max_size=6,
)
#: SQL of a condition, and the same in Python.
ONS = {
    "t.id = s.id": lambda t, s: t["id"] == s["id"] and s["id"] is not None,
    "t.id = s.id AND t.p = s.p": lambda t, s: (t["id"], t["p"]) == (s["id"], s["p"]),
    "s.id = t.id AND s.n > t.n": lambda t, s: (
        t["id"] == s["id"] and None not in (t["n"], s["n"]) and s["n"] > t["n"]
    ),
    "t.n = s.n": lambda t, s: t["n"] == s["n"] and s["n"] is not None,
    "t.n < s.n": lambda t, s: None not in (t["n"], s["n"]) and t["n"] < s["n"],
}
MATCHED = {
    "update": lambda t, s: {**t, "p": s["p"], "n": s["n"]},
    "add": lambda t, s: {**t, "n": None if None in (t["n"], s["n"]) else t["n"] + s["n"]},
    "delete": lambda t, s: None,
    "ignore": lambda t, s: t,
}
FORMS: dict[str, Any] = {
    "update": {"set": {"p": "s.p", "n": "s.n"}},
    "add": {"set": {"n": "t.n + s.n"}},
    "delete": "delete",
    "ignore": "ignore",
}
WHERES = {None: lambda t, s: True, "s.op = 'd'": lambda t, s: s["op"] == "d"}


def _rows(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in rows], schema)


def _reference(
    target: list[Row], source: list[Row], on: Any, clauses: list[tuple[str, Any]], rest: str
) -> tuple[Counter[Any], bool]:
    """Return the changes that a merge makes, and whether it has to be refused."""
    found: list[tuple[bool, Row]] = []
    met: set[int] = set()
    for t in target:
        pairs = [(i, s) for i, s in enumerate(source) if on(t, s)]
        met |= {i for i, _ in pairs}
        acts = []
        for _, s in pairs:
            name = next((name for name, where in clauses if WHERES[where](t, s)), "ignore")
            acts += [(name, s)] if name != "ignore" else []
        if len(acts) > 1 and any(name in ("update", "add") for name, _ in clauses):
            return Counter(), True
        if not pairs and rest == "delete":
            found.append((True, t))
        for name, s in acts:
            new = MATCHED[name](t, s)
            if new is None or new["p"] != t["p"]:
                found.append((True, t))
            if new is not None:
                found.append((False, new))
    for i, s in enumerate(source):
        if i not in met and s["id"] is not None:
            found.append((False, {name: s[name] for name in COLUMNS.names}))
    return _counted(found), False


def _counted(found: list[tuple[bool, Row]]) -> Counter[Any]:
    return Counter((gone, *row.values()) for gone, row in found)


@settings(deadline=None, max_examples=80)
@given(
    TARGETS,
    SOURCES,
    st.sampled_from(sorted(ONS)),
    st.lists(
        st.tuples(st.sampled_from(sorted(FORMS)), st.sampled_from([None, "s.op = 'd'"])),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["ignore", "delete"]),
    st.integers(1, 3),
)
def test_merge_equals_the_merge_written_out(
    target: Any, source: Any, on: str, clauses: Any, rest: str, piece: int
) -> None:
    stored, given_rows = _rows(to_arrow_schema(COLUMNS), target), _rows(SOURCE, source)
    forms = [
        ({"where": where, **_as_dict(FORMS[name])} if where else FORMS[name])
        for name, where in clauses
    ]
    plan = plan_merge(
        RULES,
        from_arrow_schema(SOURCE),
        parse_expression(on),
        {
            "when_matched": read_clauses("when_matched", forms),
            "when_not_matched": read_clauses(
                "when_not_matched", {"insert": "*", "where": "s.id IS NOT NULL"}
            ),
            "when_not_matched_by_source": read_clauses("when_not_matched_by_source", rest),
        },
    )
    expected, refused = _reference(
        stored.to_pylist(), given_rows.to_pylist(), ONS[on], clauses, rest
    )
    read = _narrowed(plan, stored, given_rows)
    before = merging.PIECE_ROWS
    merging.PIECE_ROWS = piece
    try:
        made = list(changes(merge_rows(plan, read.to_batches(max_chunksize=1), given_rows), RULES))
    except Invalid:
        assert refused
        return
    finally:
        merging.PIECE_ROWS = before
    assert not refused
    rows = [row for batch in made for row in batch.to_pylist()]
    assert _counted([(row.pop(ROUTE_DELETE), row) for row in rows]) == expected


def _as_dict(form: Any) -> dict[str, Any]:
    return {form: True} if isinstance(form, str) else form


def _narrowed(plan: Any, stored: pa.Table, source: pa.Table) -> pa.Table:
    """Leave out what a merge says that it need not see."""
    where = narrowing(plan, known_values(plan, source))
    if where is None:
        return stored
    keep = residual_filter(bind(where, COLUMNS))
    batches = [b if keep is None else keep(b) for b in stored.to_batches()]
    return pa.Table.from_batches(batches, stored.schema)


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(5, 2), pa.date32(), pa.binary()])
def test_keys_of_every_type_match(kind: pa.DataType) -> None:
    values = {
        pa.float64(): [0.0, float("nan"), 1.5],
        pa.decimal128(5, 2): [Decimal("1.50"), Decimal("2.00"), Decimal("3.25")],
        pa.date32(): [1, 2, 3],
        pa.binary(): [b"a", b"b", b"\xff"],
    }[kind]
    column = pa.array(values, pa.int32() if pa.types.is_date(kind) else None).cast(kind)
    other = column if not pa.types.is_floating(kind) else pa.array([-0.0, float("nan"), 1.5])
    target = pa.table({"k": column, "n": pa.array([1, 2, 3])})
    source = pa.table({"k": other, "n": pa.array([10, 20, 30])})
    rules = Rules(from_arrow_schema(target.schema), ("k",))
    plan = plan_merge(
        rules,
        from_arrow_schema(source.schema),
        parse_expression("t.k = s.k"),
        {"when_matched": read_clauses("when_matched", {"set": {"n": "s.n"}})},
    )
    made = pa.Table.from_batches(changes(merge_rows(plan, target.to_batches(), source), rules))
    assert sorted(made["n"].to_pylist()) == [10, 20, 30]
