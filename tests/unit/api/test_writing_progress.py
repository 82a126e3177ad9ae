"""Progress: shown on a terminal, silent elsewhere, always told to the log."""

import io
import logging
import sys

import pyarrow as pa
import pytest

import lakewright as lw
from lakewright.actions.write.progress import Silence
from lakewright.api.progress import TerminalProgress, task_watcher, watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def write(name: str) -> lw.WriteResult:
    table = lw.create_table(f"memory://progress/{name}", schema="id STRING, n BIGINT", key="id")
    return table.insert(pa.table({"id": ["a", "b"], "n": [1, 2]}))


def test_a_terminal_sees_the_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    progress = watch("orders", {})
    assert isinstance(progress, TerminalProgress)
    progress.stage("writing", 2)
    progress.advance(rows=5, files=1)
    progress.advance(rows=6, files=1)
    progress.close()
    progress.close()
    assert "orders: writing" in screen.getvalue()
    assert "11 rows, 2 files" in screen.getvalue()
    write("shown")
    assert "shown: " in screen.getvalue()


def test_a_terminal_sees_the_tasks_of_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    progress = watch("orders", {})
    told = task_watcher(progress)
    assert told is not None
    told(1, 2)  # before anything is shown
    progress.stage("writing")
    told(30, 1040)
    progress.close()
    told(31, 1040)
    assert "30 of 1,040 tasks" in screen.getvalue()
    assert "31 of" not in screen.getvalue()
    assert task_watcher(Silence()) is None


def test_elsewhere_nothing_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    assert isinstance(watch("orders", {}), Silence)
    write("silent")
    assert capfd.readouterr() == ("", "")


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(watch("orders", {"lakewright.progress": "false"}), Silence)


def test_the_log_tells_every_write(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lakewright.actions.write"):
        result = write("logged")
    (line,) = [record for record in caplog.records if record.message == "written"]
    assert line.facts["inserted"] == 2
    assert result.instant is not None
    assert line.facts["instant"] == result.instant.requested
