"""Options of ``spark.read.format("lakewright")``: read as the table's own verbs read them."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark 4 is not installed")

import lakewright as lw
from lakewright.interfaces.spark_source.source import LakewrightSource, plan_from_options
from lakewright.model.errors import Invalid, UnknownColumn


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    made = lw.create_table(tmp_path / "t", schema="id string, Qty int", key="id")
    made.insert([{"id": "a", "Qty": 1}], instant="20260301120000000")
    made.insert([{"id": "b", "Qty": 2}], instant="20260302120000000")
    return made


@pytest.mark.parametrize(
    "when",
    [
        "2026-03-01",
        "2026-03-01 12:00:00",
        "2026-03-01T14:00:00+02:00",
        "20260301120000",
        "20260301120000000",
        "2026-03-02",
    ],
)
def test_times_are_those_of_the_verbs(table: lw.Table, when: str) -> None:
    wanted = table.scan(as_of=when).plan().request
    assert plan_from_options({"path": table.path, "as_of": when}).request == wanted
    window = {"path": table.path, "mode": "incremental", "start": when, "end": "2026-03-02"}
    assert plan_from_options(window).request == table.incremental(when, "2026-03-02").plan().request


@pytest.mark.parametrize("when", ["x", "", "2026-13-01", "yesterday", "99999999999999999"])
def test_what_is_no_time_is_refused(table: lw.Table, when: str) -> None:
    for options in ({"as_of": when}, {"mode": "incremental", "start": when}):
        with pytest.raises(Invalid):
            plan_from_options({"path": table.path, **options})
    with pytest.raises(Invalid):
        LakewrightSource({"path": table.path, "as_of": when}).schema()


def test_columns_are_named_in_any_case(table: lw.Table) -> None:
    options = {"path": table.path, "columns": "ID, qty"}
    assert LakewrightSource(options).schema().names == ["id", "Qty"]
    assert plan_from_options(options).schema.names == ("id", "Qty")
    assert table.scan(columns=["ID", "qty"]).to_arrow().column_names == ["id", "Qty"]
    with pytest.raises(UnknownColumn):
        plan_from_options({"path": table.path, "columns": "ids"})
