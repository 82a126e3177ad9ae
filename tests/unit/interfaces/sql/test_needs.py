"""What a query needs of its tables: no less than it names, and as little more as can be."""

from typing import Any

import pytest

from lakewright.interfaces.sql.needs import needs
from lakewright.interfaces.sql.query import parse_query, scan_query
from lakewright.model.ddl import parse_ddl
from lakewright.model.expression.render import to_sql

COLUMNS = parse_ddl("id string, n int, P string, s struct<a: int>")
ALL: None = None


def _needs(text: str) -> list[tuple[Any, str | None]]:
    parsed = parse_query(text)
    found = needs(parsed, [(use, COLUMNS) for use in parsed.uses])
    return [(n.columns, None if n.where is None else to_sql(n.where)) for n in found]


@pytest.mark.parametrize(
    ("text", "columns", "where"),
    [
        ("SELECT id FROM db.t", ("id",), None),
        ("SELECT * FROM t", ("id", "n", "P", "s"), None),
        ("SELECT count(*) FROM t", (), None),
        ("SELECT id FROM t WHERE p = 'x' AND n > 1", ("id", "n", "P"), "p = 'x' AND n > 1"),
        ("SELECT db.t.id FROM db.t WHERE db.t.n > 1", ("id", "n"), "n > 1"),
        ("SELECT id FROM t WHERE n > 1 OR p = 'x'", ("id", "n", "P"), "n > 1 OR p = 'x'"),
        ("SELECT id FROM t WHERE n > 1 AND rand() > 0.5", ("id", "n"), "n > 1"),
        ("SELECT sum(n) FROM t GROUP BY p HAVING sum(n) > 3", ("n", "P"), None),
        ("SELECT id FROM t WHERE n = (SELECT 1)", ("id", "n"), None),
        (
            "WITH q AS (SELECT id, n FROM t WHERE n > 1) SELECT id FROM q WHERE id = 'a'",
            ("id", "n"),
            "n > 1",
        ),
    ],
)
def test_one_table(text: str, columns: Any, where: str | None) -> None:
    assert _needs(text) == [(columns, where)]


def test_conditions_stay_away_from_rows_that_joins_make_up() -> None:
    joined = "SELECT a.id FROM t a {} JOIN t b ON a.id = b.id WHERE a.n > 1 AND b.n > 2"
    wheres = {
        kind: [where for _, where in _needs(joined.format(kind))]
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    }
    assert wheres == {
        "INNER": ["n > 1", "n > 2"],
        "LEFT": ["n > 1", None],
        "RIGHT": [None, None],
        "FULL": [None, None],
    }


def test_two_uses_of_one_table_are_apart() -> None:
    found = _needs("SELECT a.id FROM t a WHERE a.n > 1 UNION ALL SELECT b.p FROM t b")
    assert found == [(("id", "n"), "n > 1"), (("P",), None)]


def test_what_is_not_understood_is_wanted_whole() -> None:
    parsed = scan_query("SELECT odd syntax here FROM db.t WHERE x JOIN u")
    assert [use.parts for use in parsed.uses] == [("db", "t"), ("u",)]
    assert [n.columns for n in needs(parsed, [(use, COLUMNS) for use in parsed.uses])] == [ALL, ALL]
    assert _needs("SELECT nobody_knows FROM t, other") == [(ALL, None), (ALL, None)]


def test_names_that_the_query_defines_are_no_tables() -> None:
    text = "WITH t AS (SELECT * FROM t) SELECT * FROM t JOIN db.t ON true"
    assert [use.parts for use in parse_query(text).uses] == [("t",), ("db", "t")]
