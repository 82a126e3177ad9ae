"""``lakewright plans orphans``, ``plans quarantine`` and ``plans purge``."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lakewright as lw
from lakewright.interfaces.cli import main
from lakewright.model.errors import Invalid, InvalidOption, NotFound
from lakewright.storage.open import open_storage
from support.orphaned import age, old_table, strewn


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main.app, arguments, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def told(*arguments: str, code: int = 0) -> Any:
    return json.loads(run(*arguments, "-o", "json", code=code))


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def path(tmp_path: Path) -> str:
    storage = open_storage(tmp_path / "t")
    old_table(storage)
    for name in strewn(storage):
        age(storage, name)
    return str(tmp_path / "t")


def count(path: str) -> int:
    return sum(one.code == "orphan-file" for one in lw.open_table(path).fsck().notes)


def test_it_plans_unless_it_is_told_to_apply(path: str) -> None:
    printed = run("plans", "orphans", path, "--older-than", "2d")
    assert printed.startswith("this is a plan: nothing is changed") and count(path) == 4
    command = shlex.split(printed.strip().splitlines()[-1])
    assert command == ["lakewright", "plans", "orphans", path, "--older-than", "2d", "--apply"]
    assert list(lw.open_table(path).plans()) == [], "looking is not keeping"
    shown = told("plans", "orphans", path)
    assert len(shown["items"]) == 4 and shown["purge"] is False
    applied = run(*command[1:])
    assert "4 done, 0 skipped, files lie in quarantine" in flat(applied) and count(path) == 0
    undo = shlex.split(applied.strip().splitlines()[-1])
    assert undo[:3] == ["lakewright", "plans", "undo"]
    (aside,) = told("plans", "quarantine", path)
    assert (aside["plan"], aside["files"]) == (undo[-1], 4)
    assert aside["why"] == "no instant claims them" and aside["until"] > "2026"
    assert "undone out of quarantine: 4 restored" in flat(run(*undo[1:])) and count(path) == 4
    assert told("plans", "quarantine", path) == []


def test_a_plan_that_is_kept(path: str) -> None:
    printed = run("plans", "orphans", path, "--keep")
    command = shlex.split(printed.strip().splitlines()[-1])
    assert command[:3] == ["lakewright", "plans", "apply"] and count(path) == 4
    assert len(told(*command[1:])["done"]) == 4 and count(path) == 0
    kept = told("plans", "orphans", path, "--keep")
    assert kept["items"] == [], "there is none any more"
    with pytest.raises(Invalid, match="--keep only keeps"):
        run("plans", "orphans", path, "--keep", "--apply")


def test_purging(path: str) -> None:
    id = told("plans", "orphans", path, "--apply")["plan"]
    preview = run("plans", "purge", path, id, "--dry-run")
    assert f"plan {id}: 4 files of" in flat(preview)
    assert len(told("plans", "purge", path, id, "--dry-run")["files"]) == 4
    assert len(told("plans", "quarantine", path)) == 1
    assert "purged 4 files of" in run("plans", "purge", path, id)
    assert told("plans", "quarantine", path) == []
    for extra in ((), ("--dry-run",)):
        with pytest.raises(NotFound, match="no files in quarantine"):
            run("plans", "purge", path, id, *extra)
    assert "purged from quarantine" in flat(run("plans", "undo", path, id, "--dry-run", code=2))


def test_deleting_at_once(path: str) -> None:
    assert "deletes them at once: no undo" in flat(run("plans", "orphans", path, "--purge"))
    done = run("plans", "orphans", path, "--purge", "--apply")
    assert "files are deleted" in flat(done) and "plans undo" not in done
    assert count(path) == 0 and told("plans", "quarantine", path) == []
    assert "0 items" in flat(run("plans", "orphans", path, "--apply"))


def test_ages_that_are_none(path: str) -> None:
    with pytest.raises(InvalidOption, match=r"'10m' is not allowed.*at least 1h"):
        run("plans", "orphans", path, "--older-than", "10m")
    capped = told("plans", "orphans", path, "--option", "lakewright.orphans.max-files=1")
    assert len(capped["items"]) == 1 and "3 more files" in capped["skipped"][-1]["reason"]
