"""Every skip states a reason, and a strict run fails on a reason that nobody has approved.

``allowed_skips.txt`` holds one pattern per line (shell style), matched against the reason and
against the test's id. Strict is a run with ``CI=true`` or ``LAKEWRIGHT_STRICT_SKIPS=1``.
"""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest


def is_strict(environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether an unlisted skip fails the run."""
    return (
        environment.get("CI", "").lower() in {"true", "1"}
        or environment.get("LAKEWRIGHT_STRICT_SKIPS") == "1"
    )


def read_patterns(path: Path) -> tuple[str, ...]:
    """Return the patterns of the list; empty lines and comments are none."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def is_allowed(nodeid: str, reason: str, patterns: Sequence[str]) -> bool:
    """Say whether a skip is on the list; one without a reason never is."""
    return bool(reason) and any(
        fnmatchcase(text, pattern) for text in (nodeid, reason) for pattern in patterns
    )


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """Return why a report was skipped, or None if it was not; an expected failure is no skip."""
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return None
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ").strip()
    return str(report.longrepr or "")


class SkipPolicy:
    """A pytest plugin that notes the skips of a run and judges them at its end."""

    def __init__(self, patterns: Sequence[str], *, strict: bool) -> None:
        self.patterns = patterns
        self.strict = strict
        self.refused: dict[str, str] = {}

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Remember a skip that is not on the list."""
        reason = skip_reason(report)
        if reason is not None and not is_allowed(report.nodeid, reason, self.patterns):
            self.refused[report.nodeid] = reason or "(no reason given)"

    pytest_runtest_logreport = note
    pytest_collectreport = note

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a passing strict run with unlisted skips into a failed one."""
        passing = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if self.strict and self.refused and session.exitstatus in passing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List the skips that a strict run does not accept."""
        if not self.refused:
            return
        verdict = "fail this run" if self.strict else "would fail CI"
        terminalreporter.section(f"skips that {verdict} (tests/allowed_skips.txt)")
        for nodeid, reason in sorted(self.refused.items()):
            terminalreporter.line(f"{nodeid}: {reason}")
