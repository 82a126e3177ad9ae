"""The shell commands of the guide to buckets run on the table that its examples make."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakewright.interfaces.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "buckets.md"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [(block["language"], block["text"]) for block in BLOCK.finditer(PAGE.read_text())]
    names: dict[str, object] = {"__name__": "example"}
    with contextlib.redirect_stdout(io.StringIO()):
        for language, text in found:
            if language == "python":
                exec(compile(text, str(PAGE), "exec"), names)
    lines = [
        line for language, text in found if language == "console" for line in text.splitlines()
    ]
    assert len(lines) >= 7
    for line in lines:
        prompt, program, *arguments = shlex.split(line)
        assert (prompt, program) == ("$", "lakewright")
        result = CliRunner().invoke(main.app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{line}\n{result.output}"
