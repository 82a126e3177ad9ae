"""The commands of table services: what they print, in every form, and what they leave alone."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lakewright as lw
from lakewright.interfaces.cli import main
from lakewright.model.errors import InstantNotFound, Invalid, NotFound
from lakewright.model.services import Outcome
from lakewright.timeline.locks.services_lock import services_lock
from support.served import contents, rows, served_table, small_files


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main.app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def told(*arguments: str) -> dict[str, object]:
    return json.loads(run(*arguments, "-o", "json"))  # type: ignore[no-any-return]


@pytest.fixture
def table(tmp_path: Path) -> lw.Table:
    return served_table(str(tmp_path / "t"))


def test_compact_shows_plans_and_does(table: lw.Table) -> None:
    before = contents(table)
    text = run("compact", table.path, "--dry-run")
    assert "not scheduled" in text and "2 logs of" in text and "2 rows" in text
    plan = told("compact", table.path, "--dry-run", "--partition", "p=x")
    assert [item["partition"] for item in plan["items"]] == ["p=x"]  # type: ignore[attr-defined]
    assert not list(table.compactions())
    waiting = told("compact", table.path, "--schedule", "--strategy", "unbounded")
    named = ("compact", table.path, "--plan", str(waiting["instant"]))
    assert [row["partition"] for row in told(*named, "--dry-run")] == ["p=x", "p=y"]  # type: ignore[index]
    assert "2 groups, 2 partitions" in run(*named, "--dry-run")
    with pytest.raises(Invalid, match="--schedule makes one"):
        run(*named, "--schedule")
    done = told(*named)
    assert (done["instant"], done["rows"]) == (waiting["instant"], 6)
    assert "nothing to do" in run("compact", table.path)
    assert "nothing to compact" in run("compact", table.path, "--dry-run")
    assert told("compact", table.path, "--dry-run") is None
    assert contents(table) == before


def test_a_plan_as_csv(table: lw.Table) -> None:
    found = list(csv.DictReader(io.StringIO(run("compact", table.path, "--dry-run", "-o", "csv"))))
    assert sorted(row["partition"] for row in found) == ["p=x", "p=y"]
    done = list(csv.DictReader(io.StringIO(run("compact", table.path, "-o", "csv"))))
    assert [(row["partition"], row["rows"]) for row in done] == [("p=x", "3"), ("p=y", "3")]


def test_log_compact(table: lw.Table) -> None:
    few = ("--option", "hoodie.log.compaction.blocks.threshold=2")
    assert "no slice has logs enough" in run("table", "log-compact", table.path, "--dry-run")
    assert told("table", "log-compact", table.path, "--dry-run", *few)["files"] == 4
    assert told("table", "log-compact", table.path, *few)["groups"] == 2


def test_cluster(tmp_path: Path) -> None:
    table = small_files(str(tmp_path / "t"))
    before = contents(table)
    assert told("cluster", table.path, "--dry-run", "--partition", "p=x")["files"] == 3
    plan = told("cluster", table.path, "--schedule", "--sort-by", "n,id", "--layout", "zorder")
    assert "nothing to cluster" in run("cluster", table.path, "--dry-run")
    done = told("cluster", table.path, "--plan", str(plan["instant"]))
    assert (done["files_read"], done["files_written"]) == (6, 2)
    assert contents(table) == before


def test_clean_plans_unless_told_to_apply(table: lw.Table) -> None:
    table.compact()
    how = ("clean", table.path, "--policy", "versions", "--retain", "1")
    lines = run(*how).strip().splitlines()
    assert lines[0] == "this is a plan: nothing is changed"
    assert lines[-1] == " ".join(("lakewright", *how, "--apply"))
    assert run(*how, "--dry-run").strip().splitlines()[-1] == lines[-1]
    assert not list(table.cleanings())
    plan = told(*how)
    done = told(*lines[-1].split()[1:])
    assert done["files_deleted"] == plan["files"] != 0
    assert "nothing to clean" in run(*how)
    with pytest.raises(Invalid, match="contradict"):
        run(*how, "--dry-run", "--yes")


def test_a_cleaning_is_planned_for_others(table: lw.Table) -> None:
    table.compact()
    how = ("clean", table.path, "--option", "hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS")
    plan = told(*how, "--option", "hoodie.clean.fileversions.retained=1", "--schedule")
    waiting = ("clean", table.path, "--plan", str(plan["instant"]))
    lines = run(*waiting).strip().splitlines()
    assert lines[0] == "this is a plan: nothing is changed" and ".parquet" in "".join(lines)
    assert lines[-1] == " ".join(("lakewright", *waiting, "--apply"))
    assert len(json.loads(run(*waiting, "-o", "json"))) == plan["files"]
    done = told(*waiting, "--apply")
    assert done["instant"] == plan["instant"]
    with pytest.raises(InstantNotFound, match="waits"):
        run(*waiting)


def test_archive(tmp_path: Path) -> None:
    table = served_table(str(tmp_path / "t"), type="COPY_ON_WRITE", commits=4)
    how = ("archive", table.path, "--min-commits", "2", "--max-commits", "3")
    assert "2 of 4 instants" in run(*how, "--dry-run")
    plan = told(*how, "--dry-run")
    assert len(plan["instants"]) == 2 and len(table.timeline) == 4  # type: ignore[arg-type]
    assert len(told(*how)) == 2 and len(table.timeline) == 2
    assert "nothing to do" in run(*how)


def test_rollback_plans_first(table: lw.Table) -> None:
    last = table.timeline.data()[-1].requested
    lines = run("rollback", table.path, last).strip().splitlines()
    assert lines[0] == "this is a plan: nothing is changed"
    assert lines[-1] == f"lakewright rollback {table.path} {last} --apply"
    assert told("rollback", table.path, last)["files"] == 2
    assert len(table.timeline.data()) == 3
    assert told("rollback", table.path, last, "--yes")["instant"] == last
    assert len(table.timeline.data()) == 2
    with pytest.raises(InstantNotFound):
        run("rollback", table.path, last)


def test_savepoints(table: lw.Table) -> None:
    first = table.timeline.data()[0].requested
    assert told("savepoint", "make", table.path, first, "--dry-run")["files"] == 2
    shown = run("savepoint", "make", table.path, "--note", "why", "--dry-run")
    assert "6 files of 2 partitions are kept" in shown and "(why)" in shown
    assert not list(table.savepoints()) and not table.timeline.pending()
    assert told("savepoint", "make", table.path, first, "--note", "why", "--by", "me")["made"]
    assert "made" in run("savepoint", "make", table.path)
    kept = json.loads(run("savepoint", "list", table.path, "-o", "json"))
    assert [(s["instant"] == first, s["note"]) for s in kept] == [(False, ""), (True, "why")]
    lines = run("savepoint", "delete", table.path, first).strip().splitlines()
    assert lines[0] == "this is a plan: nothing is changed"
    assert "2 files of 2 partitions may be cleaned again" in lines[1]
    assert lines[-1] == f"lakewright savepoint delete {table.path} {first} --apply"
    assert told("savepoint", "delete", table.path, first, "--dry-run")["deletes"] is True
    assert len(list(table.savepoints())) == 2
    run("savepoint", "delete", table.path, first, "--apply")
    assert len(list(table.savepoints())) == 1
    with pytest.raises(InstantNotFound, match="no savepoint"):
        run("savepoint", "delete", table.path, first)


def test_restore_plans_first(table: lw.Table) -> None:
    first, *later = (i.requested for i in table.timeline.data())
    lines = run("restore", table.path, first).strip().splitlines()
    assert lines[0] == "this is a plan: nothing is changed"
    assert lines[-1] == f"lakewright restore {table.path} {first} --apply"
    undone = told("restore", table.path, first)["undone"]
    assert [u["instant"] for u in undone] == later[::-1]  # type: ignore[attr-defined]
    assert len(table.timeline.data()) == 3
    assert "restored to" in run("restore", table.path, first, "--apply")
    assert [row[2] for row in contents(table)] == [row["n"] for row in rows(0)]
    assert "newest write already" in run("restore", table.path, first, "--apply")


def test_words_with_blanks_are_quoted(tmp_path: Path) -> None:
    table = served_table(str(tmp_path / "a table"), commits=2)
    last = table.timeline.data()[-1].requested
    shown = run("rollback", table.path, last).strip().splitlines()[-1]
    assert f"'{table.path}'" in shown


# ------------------------------------------------------------------------- services run

DUE = "--option=hoodie.compact.inline.max.delta.commits=2"


def test_services_run_once(table: lw.Table) -> None:
    text = run("services", "run", table.path, "--once", DUE)
    assert f"{table.path}: compaction done: " in text and "archiving not due" in text
    lines = run("services", "run", table.path, "--once", "-o", "json").splitlines()
    assert [json.loads(line)["service"] for line in lines] == [
        "compaction",
        "cleaning",
        "archiving",
    ]
    found = csv.DictReader(io.StringIO(run("services", "run", table.path, "--once", "-o", "csv")))
    assert [row["service"] for row in found] == ["compaction", "cleaning", "archiving"]
    assert run("services", "run", table.path, "--once", "--quiet") == ""


def test_services_run_tells_what_is_due(table: lw.Table) -> None:
    before = table.timeline.instants
    shown = run("services", "run", table.path, "--dry-run", DUE)
    assert f"{table.path}: compaction due: compaction of " in shown
    assert "delta commits since" in shown and "archiving not due" in shown
    assert table.timeline.instants == before
    plan = table.schedule_compaction()
    assert plan is not None and plan.instant is not None
    lines = run("services", "run", table.path, "--dry-run", "-o", "json", DUE).splitlines()
    first = json.loads(lines[0])
    assert (first["outcome"], first["instant"]) == ("due", plan.instant.requested)
    (told,) = table.look_after(dry_run=True, options={"lakewright.services": "archiving"})
    assert told.outcome is Outcome.NOT_DUE
    assert run("services", "run", table.path + "-gone", "--dry-run", code=2)


def test_services_of_a_lake_with_settings_in_a_file(tmp_path: Path) -> None:
    lake = lw.connect(tmp_path / "lake")
    for name in ("shop.a", "shop.b"):
        lake.create_table(name, schema="id string", key="id")
    file = tmp_path / "services.toml"
    file.write_text('["shop.a"]\n"lakewright.services" = "none"\n')
    shown = run(
        *("services", "run", "--lake", str(tmp_path / "lake"), "--once", "-o", "json"),
        *("--settings", str(file), "--option", "lakewright.services=archiving"),
    )
    assert [json.loads(line)["table"] for line in shown.splitlines()] == ["shop.b"]


def test_what_failed_is_told_and_the_exit_code_too(table: lw.Table, tmp_path: Path) -> None:
    text = run("services", "run", str(tmp_path / "nowhere"), table.path, "--once", DUE, code=2)
    assert "services failed: TableNotFound" in text and "compaction done" in text


def test_a_busy_table_is_no_failure(table: lw.Table) -> None:
    with services_lock(table._storage, {}).acquire():
        assert "left to others" in run("services", "run", table.path, "--once", DUE)


def test_what_cannot_be_run_is_refused(table: lw.Table, tmp_path: Path) -> None:
    for arguments in ((), ("--lake", str(tmp_path), table.path)):
        with pytest.raises(Invalid, match="tables or a lake"):
            run("services", "run", "--once", *arguments)
    with pytest.raises(NotFound):
        run("services", "run", table.path, "--once", "--settings", str(tmp_path / "no.toml"))
    for text in ("lakewright.services =", "a = 1"):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(Invalid):
            run("services", "run", table.path, "--once", "--settings", str(tmp_path / "bad.toml"))
    with pytest.raises(Invalid, match="no duration"):
        run("services", "run", table.path, "--every", "often")


def test_what_was_done_is_listed(table: lw.Table) -> None:
    last = table.timeline.data()[-1].requested
    done = table.compact()
    table.savepoint(note="kept")
    waiting = table.schedule_cleaning(policy="versions", retain=1)
    assert waiting is not None
    listed = json.loads(run("services", "list", table.path, "-o", "json"))
    shown = [(row["service"], row["state"]) for row in listed]
    assert shown[0] == ("cleaning", "requested")
    assert sorted(shown[1:]) == [("compaction", "completed"), ("savepoint", "completed")]
    by_name = {row["service"]: row for row in listed}
    assert by_name["cleaning"]["files"] == waiting.files > 0
    assert by_name["cleaning"]["note"] == "KEEP_LATEST_FILE_VERSIONS"
    assert (by_name["compaction"]["groups"], by_name["savepoint"]["note"]) == (2, "kept")
    only = json.loads(run("services", "list", table.path, "--service", "compaction", "-o", "json"))
    assert [row["instant"] for row in only] == [done.instant and done.instant.requested]
    table.clean(waiting)
    table.upsert(rows(9))
    newest = table.timeline.data()[-1].requested
    table.rollback(newest)
    text = run("services", "list", table.path)
    assert f"of {newest}" in text and last not in text
    with pytest.raises(Invalid, match="log-compaction"):
        run("services", "list", table.path, "--service", "moon")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
def test_a_signal_ends_it_cleanly(table: lw.Table, number: signal.Signals) -> None:
    code = "from lakewright.interfaces.cli.main import run; run()"
    command = (sys.executable, "-c", code, "services", "run", table.path, "--every", "1h", DUE)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        shown = [process.stdout.readline() for _ in range(3)]
        assert any("compaction done" in line for line in shown), shown
        time.sleep(0.1)
        process.send_signal(number)
        assert process.wait(60) == 0
    assert services_lock(table._storage, {}).describe() is None
    assert table.fsck().ok
