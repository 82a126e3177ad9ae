"""The command that shows a table's lock."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakewright.interfaces.cli import main
from lakewright.model.errors import Invalid
from lakewright.storage.open import open_storage
from lakewright.timeline.locks.choose import open_lock
from support.tiny_tables import TinyTable


@pytest.fixture
def table(tmp_path: Path) -> str:
    return TinyTable(storage=open_storage(tmp_path)).storage.uri


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main.app, ["locks", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_free_lock(table: str) -> None:
    assert "nobody holds the lock" in run(table)
    assert json.loads(run(table, "-o", "json")) == {"held": False}


def test_a_held_lock(table: str) -> None:
    with open_lock(open_storage(table), {}).acquire() as lease:
        facts = json.loads(run(table, "--output", "json"))
        assert (facts["kind"], facts["pid"]) == ("file", os.getpid())
        assert facts["owner"] == lease.owner and facts["holder is alive"] is True
        assert 0 < facts["holds for seconds"] <= 900
        assert lease.owner in run(table)


def test_the_lock_that_is_asked_about(table: str) -> None:
    option = "hoodie.write.lock.provider=storage"
    with open_lock(open_storage(table), dict([option.split("=")])).acquire():
        assert "table_lock.json" in run(table, "--option", option)
        assert "nobody" in run(table)
    with pytest.raises(Invalid, match="key=value"):
        run(table, "--option", "storage")


def test_a_lock_of_other_software(table: str) -> None:
    Path(table, ".hoodie/lock").write_bytes(b"")
    assert json.loads(run(table, "-o", "json"))["pid"] is None
