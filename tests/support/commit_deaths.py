"""Kill a process at its storage calls, then look at the table and write to it; run as a script.

``FOLDER VERSION HISTORY STEP`` runs a history in a forked process that ends, by SIGKILL, at every
STEP-th storage call until it survives: before the call and after it in turn, both at every call
where STEP is 1. Prints the number of deaths.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from lakewright.storage.open import open_storage
from support.commit_histories import HISTORIES, check, prepared
from support.faulty_storage import Fault, FaultyStorage


def killed() -> BaseException:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def apart(work: Callable[[], object]) -> int:
    """Do the work in a forked process: heartbeats are threads, and the parent must have none."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main() -> None:
    folder, version, history = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    step, deaths = int(sys.argv[4]), 0
    start = folder / "start"
    apart(partial(prepared, open_storage(start), version, history))
    for turn, number in enumerate(range(0, 1_000, step)):
        survived = True
        for after in (False, True) if step == 1 else (bool(turn % 2),):
            place = folder / f"{number}{after}"
            shutil.copytree(start, place)
            fault = Fault(at=number, after=after, error=killed)
            storage = open_storage(place)
            ended = apart(partial(HISTORIES[history], FaultyStorage(storage, [fault])))
            if os.WIFSIGNALED(ended):
                survived = False
                deaths += 1
            elif ended:
                sys.exit(f"the process failed by itself at call {number}")
            if apart(partial(check, storage, history, answered=None)):
                sys.exit(f"the table is not sound after call {number}, after={after}")
        if survived:
            sys.stdout.write(f"{deaths}\n")
            return


if __name__ == "__main__":
    main()
