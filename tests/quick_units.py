"""What keeps the unit tests quick, counted and not timed: commits to tables, and processes.

A commit takes a hundredth of a second, and a process a whole one. Tests of long histories, of a
death at each call and of contests need many; they stand in ``tests/integration``.
"""

import sys
from collections.abc import Iterator
from functools import cache, wraps
from typing import Any

import pytest

from lakewright.timeline.storage_committer import StorageCommitter

#: How many commits one test may begin, with those of its fixtures, and how many processes.
COMMITS = 10
PROCESSES = 2
STARTS = {"subprocess.Popen", "os.fork", "os.posix_spawn"}
ELSEWHERE = "it belongs in tests/integration, under the same path"

#: One word for each thing that is counted, since the beginning of the run.
_commits: list[str] = []
_processes: list[str] = []
_before = pytest.StashKey[tuple[int, int]]()


@cache
def begin_to_count() -> None:
    """Count from now on in this process; asked again, it does nothing."""
    begin = StorageCommitter.begin

    @wraps(begin)
    def counted(*positional: Any, **named: Any) -> Any:
        _commits.append("begin")
        return begin(*positional, **named)

    StorageCommitter.begin = counted  # type: ignore[method-assign]
    sys.addaudithook(lambda event, _: _processes.append(event) if event in STARTS else None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Remember what was counted before the test and its fixtures."""
    item.stash[_before] = len(_commits), len(_processes)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that did more than a unit test may."""
    result = yield
    before = item.stash[_before]
    commits, processes = len(_commits) - before[0], len(_processes) - before[1]
    if commits > COMMITS:
        pytest.fail(f"a unit test with {commits} commits (at most {COMMITS}): {ELSEWHERE}")
    if processes > PROCESSES:
        pytest.fail(f"a unit test with {processes} processes (at most {PROCESSES}): {ELSEWHERE}")
    return result
