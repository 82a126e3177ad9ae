"""What the command line prints of values that a table may hold, and where nobody takes it in."""

import io
import logging
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.interfaces.cli import main
from lakewright.interfaces.cli.logs import LogFormat, configure
from lakewright.interfaces.cli.output import Output, emit, emit_facts, printable, say

ODD = [
    "[red]x[/red]",
    "[/nowhere] [bold",
    "\x1b[31mred",
    "\x9b2J",
    "a\x07b",
    "\u202egpj.exe",
]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "tell",
    [
        lambda value: emit([value], [{value: value}], Output.table, title=value),
        lambda value: emit_facts({value: value}, Output.table, title=value),
        lambda value: say(value, good=True),
    ],
    ids=["table", "facts", "verdict"],
)
def test_values_are_shown_as_they_are_and_never_steer_the_terminal(
    value: str, tell: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    tell(value)
    shown = capsys.readouterr().out
    assert printable(value) in shown
    assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(shown)


@given(st.text())
def test_what_is_printable_stays_and_lines_stay_lines(text: str) -> None:
    shown = printable(text)
    assert shown.count("\n") == text.count("\n")
    assert printable(shown) == shown
    if all(letter.isprintable() for letter in text):
        assert shown == text


def test_facts_stand_behind_the_messages_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    configure(0, LogFormat.text)
    told = {"facts": {"path": "a/\x1b[2J.log", "offset": 7}}
    logging.getLogger("lakewright.test").warning("a block is passed over", extra=told)
    assert "a block is passed over path=a/\\x1b[2J.log offset=7\n" in capsys.readouterr().err


class Full(io.StringIO):
    def flush(self) -> None:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["lakewright", "--version"])
    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(SystemExit) as stop:
        main.run()
    sys.stdout.close()
    assert stop.value.code == 1
    assert capsys.readouterr().err == (
        "lakewright: the output could not be written: No space left on device.\n"
    )


def test_without_an_output_the_work_is_done_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["lakewright", "--version"])
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(SystemExit) as stop:
        main.run()
    sys.stdout.close()
    assert not stop.value.code
