"""Every storage call of a commit fails once: before it is done, after it, and for good."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lakewright.model.errors import CommitStateUnknown, LakewrightError, Unavailable
from lakewright.storage.memory import MemoryStorage
from lakewright.storage.open import open_storage
from lakewright.storage.port import Storage
from support import commit_deaths
from support.commit_histories import HISTORIES, LOGGED, check, prepared
from support.commits import Write, completed, leftovers
from support.faulty_storage import Crash, Fault, FaultyStorage
from support.tiny_tables import TinyTable
from told import tell

CASES = [(version, name) for version in (9, 6) for name in HISTORIES]


def run(storage: Storage, history: str, fault: Fault) -> bool:
    """Run a history on a storage with a fault, and return whether it reported success."""
    try:
        HISTORIES[history](FaultyStorage(storage, [fault]))
    except (LakewrightError, Crash):
        return False
    return True


def failing() -> Unavailable:
    return Unavailable("The storage was told to fail.")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("version", "history"), CASES)
def test_a_commit_survives_every_fault(
    request: pytest.FixtureRequest, version: int, history: str, every: bool
) -> None:
    """Both kinds of error at each call in the slow suite, in turn in the normal one."""
    counting = FaultyStorage(prepared(MemoryStorage("memory://faults/count"), version, history))
    HISTORIES[history](counting)
    calls = len(counting.calls)
    assert calls > 15
    for number in range(calls):
        for after in (False, True):
            for error in (failing, Crash) if every else ((failing, Crash)[number % 2],):
                place = MemoryStorage(f"memory://faults-{version}-{history}-{number}-{after}/t")
                place.delete([f.path for f in place.list(recursive=True)])
                storage = prepared(place, version, history)
                told = run(storage, history, Fault(at=number, after=after, error=error))
                check(storage, history, answered=told)
    tell(request, Counter(calls=calls), "commits at faults")


@pytest.mark.parametrize("version", [9, 6])
def test_one_lost_answer_does_not_fail_a_publication(version: int) -> None:
    """The completed file is created, and the answer lost: reading back settles it."""
    for after in (False, True):
        storage = TinyTable(version).storage
        faulty = FaultyStorage(storage, [Fault("create", at=2, after=after)])
        Write.begin(faulty).base("a").publish()
        assert len(completed(storage)) == 1
        assert not leftovers(storage)


@pytest.mark.parametrize("version", [9, 6])
def test_an_outcome_that_cannot_be_read_back_is_unknown_and_nothing_is_deleted(
    version: int,
) -> None:
    storage = TinyTable(version).storage
    folder = "timeline/2" if version == 9 else ".hoodie/2"
    lost = [Fault("create", at=2, after=True)]
    deaf = [Fault("read", at=n, path=folder) for n in range(10)]
    write = Write.begin(FaultyStorage(storage, [*lost, *deaf])).base("a")
    with pytest.raises(CommitStateUnknown):
        write.publish()
    Write.begin(storage).base("c").publish()
    assert write.ticket.instant in completed(storage), "what took effect stays, and its heart rests"
    write.abandon()
    assert write.ticket.instant in completed(storage), "abandon leaves what took effect"
    assert len(completed(storage)) == 2
    assert not leftovers(storage)


@pytest.mark.parametrize(
    ("version", "history"),
    [(9, "insert"), (9, "mends"), (6, "mends logs"), (9, "abandon"), (6, "abandon logs")],
)
def test_a_commit_survives_death(version: int, history: str, tmp_path: Path) -> None:
    """A forked process is killed before and after some of its storage calls, on disk."""
    script = commit_deaths.__file__
    command = [sys.executable, script, str(tmp_path), str(version), history, "7"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("version", "history"), CASES)
def test_a_commit_survives_every_death(
    request: pytest.FixtureRequest, version: int, history: str, tmp_path: Path
) -> None:
    command = [sys.executable, commit_deaths.__file__, str(tmp_path), str(version), history, "1"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 30
    tell(request, Counter(calls=int(answer.stdout)), "commits at deaths")


@pytest.mark.parametrize("history", list(HISTORIES))
def test_a_second_death_while_mending_is_mended_too(history: str) -> None:
    """The one who mends dies as well, at every call in turn; the third finishes."""
    version = 6 if history in LOGGED else 9
    before = "mends logs" if history in LOGGED else "mends"
    name = f"memory://twice-{history}/t"
    number, died = 0, True
    while died:
        place = MemoryStorage(name)
        place.delete([f.path for f in place.list(recursive=True)])
        storage = prepared(place, version, before)
        died = not run(storage, history, Fault(at=number, after=True, error=Crash))
        check(storage, before, answered=None)
        number += 1
    assert number > 15


def test_local_faults(tmp_path: Path) -> None:
    """The same on disk, where the lock is a file: some of the calls."""
    storage = open_storage(tmp_path / "count")
    counting = FaultyStorage(prepared(storage, 9, "mends"))
    HISTORIES["mends"](counting)
    for number in range(0, len(counting.calls), 5):
        for after in (False, True):
            storage = prepared(open_storage(tmp_path / f"{number}{after}"), 9, "mends")
            error = Crash if number % 2 else failing
            told = run(storage, "mends", Fault(at=number, after=after, error=error))
            check(storage, "mends", answered=told)
