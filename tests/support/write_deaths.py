"""Writes and services that die before every storage call that changes anything; a script."""

import os
import subprocess
from pathlib import Path

from lakewright.api.table import Table
from support.deaths import die_before_calls
from support.service_scenarios import act
from support.warm import command


def run(folder: Path, verb: str, step: int) -> int:
    """Run this script; return in how many copies of the template a writer died."""
    here = Path(__file__)
    paths = filter(None, (str(here.parents[1]), os.environ.get("PYTHONPATH")))
    done = subprocess.run(
        [*command(here), str(folder), verb, str(step)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


if __name__ == "__main__":
    die_before_calls(lambda storage, verb: act(Table(storage), verb))
