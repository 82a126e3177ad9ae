"""Processes that are killed just before a storage call that changes something."""

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.faulty_storage import WRITING, Fault, FaultyStorage

CHANGING = WRITING | {"ensure_folder"}

Act = Callable[[Storage, str], object]


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


def die_before_calls(act: Act, before: Act | None = None) -> None:
    """Do what the arguments of the script ask for: ``FOLDER VERB STEP``.

    ``FOLDER/template`` is copied to ``FOLDER/0``, ... and the verb done there, each time in a
    forked process that kills itself just before its first, second, ... call that changes
    something (every ``STEP``-th), until one survives. ``before`` is done by the same process, and
    does not count. Prints the number of deaths.
    """
    folder, verb, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for deaths, number in enumerate(range(0, 10_000, step)):
        copy = folder / str(number)
        shutil.copytree(folder / "template", copy)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if before is not None:
                    before(open_storage(copy), verb)
                act(Mortal(open_storage(copy), number=number), verb)
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
            sys.exit(f"{verb} at call {number} ended with {status}")
