"""Scripts that are forked behave as those that are started."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.warm import command

SCRIPT = """
import json, os, signal, sys, threading, time
verb = sys.argv[1]
if verb == "talk":
    threading.Thread(target=lambda: (time.sleep(0.05), print("and a thread"))).start()
    told = [sys.argv[2:], os.environ["COLOUR"], os.getcwd(), __name__, sys.stdin.readline()]
    print(json.dumps(told))
    sys.exit(3)
elif verb == "fail":
    raise ValueError("so it goes")
elif verb == "die":
    os.kill(os.getpid(), signal.SIGKILL)
elif verb == "stay":
    print(os.getpid(), flush=True)
    time.sleep(600)
sys.exit("that was no verb")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def start(words: list[str], script: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        words,
        env={**os.environ, "COLOUR": "blue"},
        cwd=script.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("way", ["started", "forked"])
def test_arguments_ends_and_codes(script: Path, way: str) -> None:
    words = command(script) if way == "forked" else [sys.executable, str(script)]
    talk = start([*words, "talk", "a b", "ü"], script)
    out, errors = talk.communicate("hello\n", timeout=60)
    told, thread = out.splitlines()
    assert json.loads(told) == [["a b", "ü"], "blue", str(script.parent), "__main__", "hello\n"]
    assert (thread, errors, talk.returncode) == ("and a thread", "", 3)
    failed = start([*words, "fail"], script)
    assert "ValueError: so it goes" in failed.communicate(timeout=60)[1]
    assert failed.returncode == 1
    said = start([*words, "nothing"], script)
    assert said.communicate(timeout=60)[1] == "that was no verb\n"
    assert said.returncode == 1
    dead = start([*words, "die"], script)
    assert dead.communicate(timeout=60) == ("", "")
    assert dead.returncode == -signal.SIGKILL


def test_who_is_killed_takes_the_script_along(script: Path) -> None:
    staying = start([*command(script), "stay"], script)
    assert staying.stdout is not None
    number = int(staying.stdout.readline())
    os.kill(number, 0)
    staying.kill()
    assert staying.communicate(timeout=60) == ("", "")
    for _ in range(600):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("the script outlived its process")
