"""Kill a process at its storage calls, then look at the table and write to it; run as a script.

``FOLDER VERSION HISTORY STEP`` runs a history in a forked process that ends, by SIGKILL, at every
STEP-th storage call, before or after it is done, until it survives. Prints the number of deaths.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from lakewright.storage.open import open_storage
from support.commit_histories import HISTORIES, check, prepared
from support.faulty_storage import Fault, FaultyStorage


def killed() -> BaseException:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def main() -> None:
    folder, version, history = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    step, deaths = int(sys.argv[4]), 0
    for number in range(0, 1_000, step):
        survived = True
        for after in (False, True):
            place = str(folder / f"{number}{after}")
            child = os.fork()
            if child == 0:
                storage = prepared(open_storage(place), version, history)
                fault = Fault(at=number, after=after, error=killed)
                HISTORIES[history](FaultyStorage(storage, [fault]))
                os._exit(0)
            ended = os.waitpid(child, 0)[1]
            if os.WIFSIGNALED(ended):
                survived = False
                deaths += 1
            elif ended:
                sys.exit(f"the process failed by itself at call {number}")
            # The looking is done in a process of its own too: heartbeats are threads, and the
            # parent must have none when it forks.
            child = os.fork()
            if child == 0:
                check(open_storage(place), history, answered=None)
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                sys.exit(f"the table is not sound after call {number}, after={after}")
        if survived:
            sys.stdout.write(f"{deaths}\n")
            return


if __name__ == "__main__":
    main()
