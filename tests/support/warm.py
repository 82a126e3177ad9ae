"""Scripts run in processes that are forked from one that has loaded the package already.

To load it takes a second, which is more than most scripts of tests work. ``command`` gives what
to start instead of ``python SCRIPT``: a small process that hands its arguments, environment and
ends to the host, which forks; it ends as the script ends, and the script is killed with it. The
host has only imported: scripts share nothing with each other, nor with the tests.
"""

import atexit
import contextlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve()
CLIENT = HERE.with_name("warm_client.py")
#: What the host imports, and with it all that scripts need.
LOADED = ("support.bucket_contest", "support.service_contest", "support.write_contest", "hudi")


def command(script: str | Path) -> list[str]:
    """Return the words that run a script, before its arguments."""
    if not hasattr(os, "pidfd_open"):
        return [sys.executable, str(script)]
    return [sys.executable, "-I", "-S", str(CLIENT), _host(os.getpid()), str(script)]


@cache
def _host(process: int) -> str:
    """Start the host of this process; return where it listens."""
    folder = tempfile.mkdtemp(prefix="warm")
    running = subprocess.Popen(
        [sys.executable, str(HERE), folder],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    atexit.register(_end, running, folder)
    assert running.stdout.readline() == b"ready\n", "the host of scripts did not start"
    return f"{folder}/socket"


def _end(running: "subprocess.Popen[bytes]", folder: str) -> None:
    running.kill()
    running.communicate()
    shutil.rmtree(folder, ignore_errors=True)


# ------------------------------------------------------------------------------------- the host


def serve(folder: str) -> None:
    """Fork for everyone who asks, until the process that started this one ends."""
    for name in LOADED:
        with contextlib.suppress(ImportError):  # a script that needs it will say so
            __import__(name)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{folder}/socket")
    listening.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are forked
    os.write(1, b"ready\n")
    while True:
        ready, _, _ = select.select([listening, 0], [], [])
        if 0 in ready:
            return
        asked, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _mind(asked)
            os._exit(0)
        asked.close()


def _mind(asked: socket.socket) -> None:
    """Run what is asked for in a child, and tell how it ended; kill it if nobody listens."""
    head, ends, _, _ = socket.recv_fds(asked, 4, 3)
    (size,) = struct.unpack("!I", head)
    wanted = json.loads(asked.makefile("rb").read(size))
    child = os.fork()
    if child == 0:
        asked.close()
        for number, end in enumerate(ends):
            os.dup2(end, number)
            os.close(end)
        os._exit(_run(wanted))
    for end in ends:
        os.close(end)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, asked], [], [])
    if ended not in ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(OSError):
        asked.sendall(struct.pack("!I", status))


def _run(wanted: dict[str, object]) -> int:
    """Do what ``python SCRIPT`` does; return its exit code."""
    os.environ.clear()
    os.environ.update(wanted["environment"])  # type: ignore[call-overload]
    os.chdir(str(wanted["folder"]))
    words = list(map(str, wanted["words"]))  # type: ignore[call-overload]
    sys.argv = words
    paths = [str(Path(words[0]).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    sys.path[:] = [*dict.fromkeys(path for path in [*paths, *sys.path] if path)]
    code = 0
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001  (told as Python does)
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve(sys.argv[1])
