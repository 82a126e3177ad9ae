"""Values that statements store: whole, or refused."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakewright as lw
from lakewright.model.errors import Invalid, LakewrightError
from support.sql_values import ACCEPTED, CREATE, INSERT, REFUSED, STORED

pytest.importorskip("duckdb", reason="DuckDB is not installed")


@pytest.fixture
def lake(tmp_path: Path) -> lw.Lake:
    found = lw.connect(tmp_path)
    found.sql(CREATE)
    found.sql(INSERT)
    return found


def _rows(lake: lw.Lake) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.table("d.v").scan().to_arrow().sort_by("id").to_pylist()
    return found


def test_what_would_be_lost_is_refused(lake: lw.Lake) -> None:
    before = _rows(lake)
    for text, told in REFUSED:
        with pytest.raises(Invalid, match=told):
            lake.sql(text)
    assert _rows(lake) == before
    assert lake.tables() == ["d.v"]


def test_what_is_meant_is_stored(lake: lw.Lake) -> None:
    for text in ACCEPTED:
        lake.sql(text)
    rows = {row.pop("id"): tuple(row.values()) for row in _rows(lake)}
    assert rows == STORED


def test_update_and_merge_refuse_what_upsert_refuses(lake: lw.Lake) -> None:
    table = lake.table("d.v")
    before = _rows(lake)
    for values in ({"n": 2.7}, {"q": "1.239"}, {"q": Decimal("1.239")}):
        with pytest.raises(Invalid, match="without loss"):
            table.update(values)
    with pytest.raises(Invalid, match="without loss"):
        table.merge([{"id": "a", "n": 3.9}], "t.id = s.id", when_matched="update")
    with pytest.raises(LakewrightError):
        table.upsert([{"id": "a", "n": 3.9}])
    assert _rows(lake) == before
    table.update({"n": 3.0, "q": "1.20"})
    assert {(row["n"], row["q"]) for row in _rows(lake)} == {(3, Decimal("1.20"))}
