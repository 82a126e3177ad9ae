"""The commands of TTL and of plans: what they print, and that plans change nothing."""

import json
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lakewright as lw
from lakewright.interfaces.cli import main
from lakewright.model.errors import Invalid
from support.retention import day, held, partition, users_table

NOW = day(10).isoformat()


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main.app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def told(*arguments: str, code: int = 0) -> Any:
    return json.loads(run(*arguments, "-o", "json", code=code))


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    return users_table(tmp_path / "t", {1: range(8), 2: [3]})


def test_the_whole_way_from_a_policy_to_the_undo(table: lw.Table) -> None:
    path = table.path
    told_only = run("ttl", "add", path, "/", "KEEP_BY_TIME", "5", "--dry-run")
    assert told_only.startswith("nothing is stored: added / KEEP_BY_TIME 5: matches 9 partitions")
    assert told("ttl", "show", path) == []
    assert "added / KEEP_BY_TIME 5: matches 9 partitions" in run(
        "ttl", "add", path, "/", "KEEP_BY_TIME", "5"
    )
    assert told("ttl", "show", path) == [
        {"partition_spec": "/", "policy": "KEEP_BY_TIME", "value": 5, "settings": {}}
    ]
    assert len(told("ttl", "expired", path, "--now", NOW)) == 6
    shown = run("ttl", "explain", path, partition(1, 7), "--now", NOW)
    assert "kept" in shown and "goes after 2026-01-13 12:00:00 UTC" in " ".join(shown.split())
    printed = run("ttl", "plan", path, "--now", NOW)
    assert printed.splitlines()[0] == "this is a plan: nothing is changed"
    command = shlex.split(printed.strip().splitlines()[-1])
    assert command[:3] == ["lakewright", "plans", "apply"] and len(held(table)) == 9
    applied = run(*command[1:])
    assert "6 done, 0 skipped" in " ".join(applied.split()) and len(held(table)) == 3
    id = command[-1]
    (listed,) = told("plans", "list", path)
    assert (listed["plan"], listed["state"], listed["items"]) == (id, "applied", 6)
    assert "last changed" in run("plans", "explain", path, id, partition(1, 0))
    assert "can be undone" in run("plans", "undo", path, id, "--dry-run")
    back = shlex.split(applied.strip().splitlines()[-1])
    assert back == ["lakewright", "plans", "undo", path, id]
    assert "undone by a rollback" in " ".join(run(*back[1:]).split())
    assert len(held(table)) == 9
    assert [one["verb"] for one in told("plans", "runs", path, id)] == ["applying", "undoing"]
    assert "undone already" in run("plans", "undo", path, id, "--dry-run", code=2)


def test_a_run_plans_unless_it_is_told_to_apply(table: lw.Table) -> None:
    path = table.path
    table.ttl.add("user_id=1/", "KEEP_BY_COUNT", 7)
    printed = run("ttl", "run", path)
    assert "nothing is changed" in printed and len(held(table)) == 9
    command = shlex.split(printed.strip().splitlines()[-1])
    assert command == ["lakewright", "ttl", "run", path, "--apply"]
    assert list(table.plans()) == [], "looking is not keeping"
    assert told("ttl", "run", path)["items"][0]["target"] == partition(1, 0)
    done = told("ttl", "run", path, "--apply")
    assert done["done"] == [partition(1, 0)] and len(held(table)) == 8
    assert "0 items" in " ".join(run("ttl", "run", path, "--apply").split())


def test_plans_of_a_lake(table: lw.Table, tmp_path: Path) -> None:
    lake = lw.connect(tmp_path / "lake")
    lake.register_table("shop.users", table.path)
    lake.table("shop.users").plan_delete_partitions([partition(2, 3)])
    (listed,) = told("plans", "list", "--lake", str(tmp_path / "lake"))
    assert (listed["table"], listed["state"]) == ("shop.users", "planned")
    assert told("plans", table.path) == told("plans", "list", table.path)
    assert "apply" in run("plans", "--help")
    with pytest.raises(Invalid, match="a table or a lake"):
        run("plans", "list")
    shown = run("plans", "show", table.path, listed["plan"])
    assert "it was named" in shown


def test_statistics(table: lw.Table) -> None:
    found = told("ttl", "stats", table.path)
    assert len(found) == 9 and {"partition", "last_modified", "bytes"} == set(found[0])
    assert told("ttl", "stats", table.path, "--verify") == []
    assert "9 partitions as of" in run("ttl", "stats", table.path, "--rebuild")


def test_settings_of_event_time(table: lw.Table) -> None:
    done = told(
        "ttl", "add", table.path, "user_id=1/", "KEEP_BY_EVENT_TIME", "3", "--set", "zone=UTC",
        "--set", "reference=end",
    )  # fmt: skip
    assert done["policy"]["reference"] == "end" and done["matches"] == 8
    assert "dropped user_id=1/ KEEP_BY_EVENT_TIME 3" in run("ttl", "drop", table.path, "user_id=1/")


def test_settings_are_members_of_json_and_text_for_people(table: lw.Table) -> None:
    table.ttl.add("user_id=*/", "KEEP_BY_EVENT_TIME", 30)
    (found,) = told("ttl", "show", table.path)
    assert found["settings"]["format"] == "yyyy-MM-dd" and found["settings"]["segment"] == "1"
    assert "format=yyyy-MM-dd zone=UTC" in run("ttl", "show", table.path)


def test_a_negative_number_is_refused_with_a_reason(table: lw.Table) -> None:
    with pytest.raises(Invalid, match="-3 days cannot be kept"):
        run("ttl", "add", table.path, "/", "KEEP_BY_TIME", "-3")
    assert "--bogus" in run("ttl", "add", table.path, "/", "KEEP_BY_TIME", "3", "--bogus", code=2)


def test_a_warning_is_a_line_without_a_place_in_the_program(
    table: lw.Table, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lakewright", "ttl", "add", table.path, "user_id=9/", "KEEP_BY_TIME", "3"]
    monkeypatch.setattr("sys.argv", words)
    with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
        warnings.simplefilter("always")
        main.run()
    assert not ended.value.code
    told = " ".join(capsys.readouterr().err.split())
    assert told == "lakewright: warning: user_id=9/ matches none of the partitions that there are"
