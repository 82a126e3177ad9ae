"""Many processes write to one table on disk: strict order, and nobody wins against another."""

import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from lakewright.storage.open import open_storage
from lakewright.table.state import open_state
from support import commit_race
from support.commits import completed, leftovers
from support.tiny_tables import TinyTable
from told import tell


@pytest.mark.parametrize(
    ("version", "rounds"),
    [(9, 3), *(pytest.param(v, n, marks=pytest.mark.slow) for v, n in ((6, 3), (9, 60), (6, 60)))],
)
def test_eight_processes(
    request: pytest.FixtureRequest, version: int, rounds: int, tmp_path: Path
) -> None:
    storage = TinyTable(version, storage=open_storage(tmp_path)).storage
    command = [sys.executable, commit_race.__file__, str(tmp_path)]
    running = [
        subprocess.Popen([*command, str(n), str(rounds)], stdout=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    answers = [json.loads(process.communicate(timeout=600)[0]) for process in running]
    done = [tuple(each) for answer in answers for each in answer["done"]]
    requested = [each[0] for each in done]
    assert len(set(requested)) == len(requested)
    times = [time for each in done for time in {each[0], each[1]}]
    assert len(set(times)) == len(times), "every time is used once"
    assert sorted(requested) == completed(storage)
    own = [each for each in done if each[2] != "shared"]
    assert len(own) == 8 * rounds, "writers of their own groups never lose"
    assert len(done) + sum(a["lost"] for a in answers) == 16 * rounds
    # Each write of the shared group began after the one before it had taken effect.
    shared = sorted(each for each in done if each[2] == "shared")
    view = open_state(storage).timeline
    if version == 9:
        for before, after in pairwise(shared):
            assert before[1] < after[0]
    assert [i.requested for i in view.instants] == sorted(i.requested for i in view.instants)
    assert not leftovers(storage)
    lost = sum(answer["lost"] for answer in answers)
    tell(request, Counter(commits=len(done), conflicts=lost), "race of commits")
