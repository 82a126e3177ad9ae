"""Die before every storage call that changes anything; run as a script.

``FOLDER VERB STEP`` copies ``FOLDER/template`` to ``FOLDER/0``, ... and does the verb there, each
time in a forked process that kills itself just before its first, second, ... such call (every
``STEP``-th), until one survives. Prints the number of deaths.
"""

import os
import shutil
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from support.faulty_storage import WRITING, Fault, FaultyStorage
from support.service_scenarios import act

CHANGING = WRITING | {"ensure_folder"}


def run(folder: Path, verb: str, step: int) -> int:
    """Run this script; return in how many copies of the template a writer died."""
    here = Path(__file__)
    paths = filter(None, (str(here.parents[1]), os.environ.get("PYTHONPATH")))
    done = subprocess.run(
        [sys.executable, str(here), str(folder), verb, str(step)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def die() -> BaseException:
    os.kill(os.getpid(), signal.SIGKILL)
    return SystemExit()


@dataclass(slots=True)
class Mortal(FaultyStorage):
    """Counts the calls that change something; the process dies before one of them."""

    number: int = -1
    made: int = 0

    def _begin(self, verb: str, path: str) -> Fault | None:
        if verb not in CHANGING:
            return None
        with self._lock:
            self.made += 1
            return Fault(error=die) if self.made - 1 == self.number else None


def main() -> None:
    folder, verb, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for deaths, number in enumerate(range(0, 10_000, step)):
        copy = folder / str(number)
        shutil.copytree(folder / "template", copy)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                act(Table(Mortal(open_storage(copy), number=number)), verb)
                code = 0
            except BaseException:  # noqa: BLE001  (told by the parent's output)
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        if status == 0:
            shutil.rmtree(copy)
            sys.stdout.write(f"{deaths}\n")
            return
        if not os.WIFSIGNALED(status):
            sys.exit(f"the write at call {number} ended with {status}")


if __name__ == "__main__":
    main()
