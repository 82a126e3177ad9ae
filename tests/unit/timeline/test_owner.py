"""Who holds something, and whether that process still runs."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from lakewright.timeline.owner import Owner


def test_the_text_form_is_read_back() -> None:
    owner = Owner.here()
    assert Owner.parse(str(owner)) == owner
    assert Owner.here().token != owner.token


@pytest.mark.parametrize(
    "text", ["", "5b2c8f1e-0000-4000-8000-1234567890ab", "lakewright/a/b/c/d/e"]
)
def test_owners_of_other_software_are_none(text: str) -> None:
    assert Owner.parse(text) is None


def test_this_process_lives() -> None:
    assert not Owner.here().is_dead


def test_a_process_that_ended_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    code = "from lakewright.timeline.owner import Owner; print(Owner.here(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        owner = Owner.parse(other.stdout.readline().strip())
        assert owner is not None and owner.pid == other.pid
        assert not owner.is_dead
        other.communicate("\n")
    assert owner.is_dead
    child.communicate(b"\n")


def test_a_zombie_is_dead() -> None:
    child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", ""])
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert replace(Owner.here(), pid=child).is_dead
    os.waitpid(child, 0)


def test_a_number_that_another_process_has_now_is_dead() -> None:
    assert replace(Owner.here(), started=1).is_dead


def test_nothing_is_said_of_other_machines_and_of_no_process() -> None:
    assert not replace(Owner.here(), machine="other", pid=4_000_000).is_dead
    assert not replace(Owner.here(), machine="", pid=4_000_000).is_dead
    assert not Owner.nowhere().is_dead
