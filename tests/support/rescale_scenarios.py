"""Rescales and undos on small tables: what crashes and lost answers are tried on.

Run as a script, ``FOLDER VERB STEP`` does what ``write_deaths`` does: copies of
``FOLDER/template`` in each of which the process was killed just before another storage call.
"""

import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from lakewright.api.table import Table
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support.rescaling import made_table, rescaled, rows, rules, table_of, undone
from support.write_deaths import Mortal

#: The first rescale of a plain table, one more, and the undo in both ways.
VERBS = ("first", "again", "roll_back", "move_back")


def prepare(verb: str, storage: Storage, **shape: Any) -> Table:
    """Create a table that has a past, and what the verb starts from."""
    table = made_table(storage, buckets=2, **shape)
    table.upsert(table_of(rows(range(12), 1, "xy")))
    table.upsert(table_of(rows(range(0, 12, 2), 2, "xy")))
    if verb != "first":
        rescaled(storage, rules(("p=x", 4), default=2))
    if verb in ("again", "move_back"):
        table.upsert(table_of(rows(range(4, 16), 3, "xy")))
    return table


def act(storage: Storage, verb: str) -> None:
    """Do it."""
    if verb in ("first", "again"):
        rescaled(storage, rules(("p=x", 3), default=4))
    else:
        undone(storage)


def run(folder: Path, verb: str, step: int) -> int:
    """Run this script; return in how many copies of the template the process died."""
    here = Path(__file__)
    done = subprocess.run(
        [sys.executable, str(here), str(folder), verb, str(step)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[1]), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def main() -> None:
    folder, verb, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    for deaths, number in enumerate(range(0, 10_000, step)):
        copy = folder / str(number)
        shutil.copytree(folder / "template", copy)
        child = os.fork()
        if child == 0:
            code = 1
            try:
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


if __name__ == "__main__":
    main()
