"""The command line on a real table: what it prints, in every form, and how it fails."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lakewright as lw
from lakewright.interfaces.cli import main
from lakewright.model.errors import Invalid
from lakewright.model.version import VERSION


@pytest.fixture(scope="module")
def orders(own_table: Callable[[str], Path]) -> str:
    return str(own_table("orders_mor"))


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main.app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def rows(*arguments: str) -> list[dict[str, object]]:
    return json.loads(run(*arguments, "--output", "json"))  # type: ignore[no-any-return]


def test_the_version() -> None:
    assert run("--version") == f"lakewright {VERSION}\n"


def test_the_package_runs_as_the_command() -> None:
    words = [sys.executable, "-m", "lakewright", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"lakewright {VERSION}\n"


def test_run_as_a_package_it_prints_commands_that_can_be_run(orders: str) -> None:
    newest = str(rows("timeline", orders)[0]["requested"])
    words = [sys.executable, "-m", "lakewright", "rollback", orders, newest]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"lakewright rollback {orders} {newest} --apply"


def test_show_says_what_a_table_is(orders: str) -> None:
    facts = json.loads(run("table", "show", orders, "-o", "json"))
    assert facts["type"] == "MERGE_ON_READ"
    assert facts["record key"] == ["id"] and facts["partitioned by"] == ["city"]
    assert list(facts["schema"]) == ["id", "city", "item", "n", "total", "at"]
    assert "EVENT_TIME_ORDERING" in run("table", "show", orders)


def test_the_timeline_is_newest_first(orders: str) -> None:
    found = rows("timeline", orders)
    assert [r["action"] for r in found] == ["deltacommit"] * 4
    assert found == sorted(found, key=lambda r: str(r["requested"]), reverse=True)
    assert rows("table", "timeline", orders, "--limit", "1") == found[:1]


def test_partitions_and_files(orders: str) -> None:
    assert rows("partitions", orders) == [
        {"partition": "city=lima", "city": "lima"},
        {"partition": "city=oslo", "city": "oslo"},
    ]
    now = rows("files", orders)
    first = rows("files", orders, "--as-of", str(rows("timeline", orders)[-1]["requested"]))
    assert any(r["logs"] for r in now) and not any(r["logs"] for r in first)


def test_partitions_and_files_that_may_hold_rows(orders: str) -> None:
    only = ["--where", "city = 'oslo'"]
    assert rows("partitions", orders, *only) == [{"partition": "city=oslo", "city": "oslo"}]
    pruned = rows("files", orders, *only)
    assert pruned == [r for r in rows("files", orders) if r["partition"] == "city=oslo"]
    first = str(rows("timeline", orders)[-1]["requested"])
    past = rows("table", "files", orders, *only, "--as-of", first)
    assert past and not any(r["logs"] for r in past)
    assert len(rows("partitions", orders, "--as-of", first)) == 2
    assert rows("partitions", orders, "--as-of", "2001-01-01") == []


def test_the_tables_of_a_lake(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path)
    for name in ("shop.orders", "shop.items", "lab.runs"):
        lake.create_table(name, schema="id string", key="id")
    found = rows("tables", "--lake", str(tmp_path))
    assert [(r["database"], r["table"]) for r in found] == [
        ("lab", "runs"),
        ("shop", "items"),
        ("shop", "orders"),
    ]
    assert run("tables", "-l", str(tmp_path), "-o", "csv").splitlines()[0] == "database,table"


def test_scan_filters_projects_and_limits(orders: str) -> None:
    found = rows("scan", orders, "--where", "city = 'oslo' AND n > 2", "--columns", "id,n")
    assert sorted(found, key=str) == [
        {"id": "o00", "n": 6},
        {"id": "o02", "n": 3},
        {"id": "o04", "n": 3},
    ]
    assert len(rows("scan", orders, "--limit", "2")) == 2
    assert "more follow" in run("scan", orders, "--limit", "2")


def test_scan_as_csv(orders: str) -> None:
    text = run("scan", orders, "--columns", "id,item", "--output", "csv")
    found = {row["id"]: row["item"] for row in csv.DictReader(io.StringIO(text))}
    assert found["o00"] == "p,l=a/te" and found["o07"] == ""


def test_scan_in_time_and_by_change(orders: str) -> None:
    times = sorted(str(r["completed"]) for r in rows("timeline", orders))
    assert len(rows("scan", orders, "--as-of", str(rows("timeline", orders)[-1]["requested"]))) == 6
    assert {r["id"] for r in rows("scan", orders, "--since", times[2])} == {"o00", "o07"}
    changes = rows("scan", orders, "--since", times[1], "--changes")
    assert sorted(str(c["op"]) for c in changes) == ["d", "i", "u"]


def test_explain_reads_nothing(orders: str) -> None:
    text = run("scan", orders, "--where", "city = 'oslo'", "--explain")
    assert "partitions 1 of 2" in text


def test_fsck_counts_what_it_checked(orders: str) -> None:
    report = json.loads(run("fsck", orders, "--deep", "-o", "json"))
    assert report["ok"] and report["problems"] == []
    assert report["checked"]["rows"] > 0


def test_fsck_of_a_broken_table_fails(own_table: Callable[[str], Path], tmp_path: Path) -> None:
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(own_table("orders_mor"), broken)
    next(broken.glob("city=oslo/*.parquet")).unlink()
    report = json.loads(run("fsck", str(broken), "-o", "json", code=2))
    assert not report["ok"] and any("parquet" in p["path"] for p in report["problems"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scan", "{orders}", "--columns", "idd"], "idd"),
        (["scan", "{orders}", "--columns", ""], "leaves out a name"),
        (["scan", "{orders}", "--columns", "id,,n"], "leaves out a name"),
        (["scan", "{orders}", "--where", ""], "No expression"),
        (["scan", "{orders}", "--changes", "--where", ""], "--where or --columns"),
        (["scan", "{orders}", "--where", "id < '\udcff'"], "half a character"),
        (["scan", "{orders}", "--since", ""], "neither an instant nor a time"),
        (["scan", "{orders}", "--until", ""], "neither an instant nor a time"),
        (["scan", "{orders}", "--as-of", ""], "neither an instant nor a time"),
        (["scan", "{orders}", "--as-of", "20201301000000000"], "no date and time"),
        (["files", "{orders}", "--as-of", "20260230000000"], "no date and time"),
        (["scan", "{orders}", "--mode", ""], "mode '' is not known"),
        (["scan", "{orders}", "--since", "000", "--mode", "read_optimized"], "--mode does not go"),
        (["scan", "{orders}", "--changes", "--mode", "nope"], "--mode does not go"),
        (["scan", "{orders}", "--as-of", "", "--changes"], "--as-of does not go"),
        (["scan", "{orders}", "--explain", "-o", "csv"], "--explain does not go"),
        (["scan", "{orders}", "--where", "city ="], "city ="),
        (["scan", "{orders}", "--mode", "fast"], "read_optimized"),
        (["scan", "{orders}", "--as-of", "yesterday"], "yesterday"),
        (["scan", "{orders}", "--as-of", "2026-11-14", "--changes"], "--as-of"),
        (["table", "show", "{orders}/city=oslo"], "city=oslo"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(
    orders: str,
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["lakewright", *(a.format(orders=orders) for a in arguments)]
    monkeypatch.setattr("sys.argv", argv)
    with pytest.raises(SystemExit) as stop:
        main.run()
    assert stop.value.code == 1
    message = capsys.readouterr().err
    assert message.startswith("lakewright: ") and words in message and "Traceback" not in message


def test_a_mistake_is_json_for_programs(
    orders: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["lakewright", "scan", orders, "--columns", "x", "-o", "json"])
    with pytest.raises(SystemExit):
        main.run()
    error = json.loads(capsys.readouterr().err)
    assert error["error"] == "unknown_column" and error["facts"]["column"] == "x"


def test_the_log_can_be_json(orders: str, capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    from lakewright.interfaces.cli.logs import LogFormat, configure

    configure(1, LogFormat.json)
    logging.getLogger("lakewright.test").info("hello %s", "you", extra={"facts": {"n": 1}})
    line = json.loads(capsys.readouterr().err)
    assert (line["message"], line["n"], line["level"]) == ("hello you", 1, "INFO")


def test_a_script_that_is_no_text(tmp_path: Path) -> None:
    script = tmp_path / "nightly.sql"
    script.write_bytes(b"SELECT '\xff\xfe'")
    for given, told in ((script, "is not UTF-8 text: byte 0xff at 8"), (tmp_path, "cannot read")):
        arguments = ["sql", "--lake", str(tmp_path), "--file", str(given)]
        result = CliRunner().invoke(main.app, arguments)
        assert isinstance(result.exception, Invalid) and told in str(result.exception)
