"""Changing a table's version from the command line and by procedures."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lakewright as lw
from lakewright.interfaces.cli import main
from lakewright.model.errors import Invalid, Unsupported

CREATE = "CREATE TABLE s.t (id STRING, n BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id')"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout + result.stderr


@pytest.fixture
def table(tmp_path: Path) -> str:
    made = lw.create_table(tmp_path / "t", schema="id string, n bigint", key="id", version=6)
    made.upsert([{"id": "a", "n": 1}])
    return made.path


def test_a_plan_is_shown_with_the_command_that_applies_it(table: str) -> None:
    shown = run("table", "upgrade", table, "--to", "8")
    assert "version 6 -> 8" in shown
    assert lw.open_table(table).definition.version == 6
    command = shlex.split(shown.strip().splitlines()[-1])
    assert command[0] == "lakewright"
    run(*command[1:])
    assert lw.open_table(table).definition.version == 8
    plan = json.loads(run("table", "upgrade", table, "-o", "json"))
    assert (plan["from"], plan["to"]) == (8, 9)
    run("table", "upgrade", table, "--apply")
    run("table", "downgrade", table, "--to", "6", "--apply")
    assert lw.open_table(table).definition.version == 6
    done = json.loads(run("table", "upgrade", table, "--to", "6", "--apply", "-o", "json"))
    assert done["to_version"] == 6


def test_what_is_in_the_way_is_shown_and_no_command(table: str) -> None:
    Path(table, ".hoodie/metadata").mkdir()
    Path(table, ".hoodie/metadata/file").write_bytes(b"x")
    shown = run("table", "upgrade", table)
    assert "disable-metadata" in shown
    assert "lakewright table upgrade" not in shown
    with pytest.raises(Unsupported, match="metadata table"):
        run("table", "upgrade", table, "--apply")


def test_downgrading_refuses_to_go_up(table: str) -> None:
    with pytest.raises(Invalid, match=r"Call upgrade\(9\)"):
        lw.open_table(table).downgrade(9)


def test_procedures_have_hudis_names(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    lake = lw.connect(tmp_path)
    lake.sql(CREATE)
    lake.sql("INSERT INTO s.t VALUES ('a', 1)")
    (done,) = lake.sql("CALL downgrade_table(table => 's.t', to_version => 'SIX')").to_pylist()
    assert done["result"] is True
    assert lake.table("s.t").definition.version == 6
    lake.sql("CALL upgrade_table(table => 's.t', to_version => 'NINE')")
    assert lake.table("s.t").definition.version == 9
    with pytest.raises(Invalid, match="SIX, EIGHT, NINE"):
        lake.sql("CALL upgrade_table(table => 's.t', to_version => 'TEN')")


def test_a_metadata_table_is_taken_away_when_it_is_told_to_be(table: str) -> None:
    folder = Path(table, ".hoodie/metadata")
    folder.mkdir()
    (folder / "file").write_bytes(b"xy")
    shown = run("table", "disable-metadata", table, "--dry-run").strip().splitlines()
    assert shown[0] == "this is a plan: nothing is changed" and (folder / "file").exists()
    assert shown[-1] == f"lakewright table disable-metadata {table} --apply"
    with pytest.raises(Invalid, match="contradict"):
        run("table", "disable-metadata", table, "--dry-run", "--apply")
    assert json.loads(run(*shlex.split(shown[-1])[1:], "-o", "json"))["applied"] is True
    assert not (folder / "file").exists()
    assert "there is no metadata table" in run("table", "disable-metadata", table)
