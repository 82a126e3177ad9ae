"""Rescales and undos on small tables: what crashes and lost answers are tried on.

Run as a script, ``FOLDER VERB STEP`` does what ``deaths`` says: copies of
``FOLDER/template`` in each of which the process was killed just before another storage call.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lakewright.api.table import Table
from lakewright.storage.port import Storage
from support.deaths import die_before_calls
from support.rescaling import made_table, rescaled, rows, rules, table_of, undone
from support.warm import command

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
        [*command(here), str(folder), verb, str(step)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[1]), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


if __name__ == "__main__":
    die_before_calls(act)
