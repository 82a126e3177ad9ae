"""How much the long tests did: counts that they tell, summed up in the last lines of a run."""

from collections import Counter
from typing import Any

import pytest

#: Begins the names of a report's properties that are such counts.
MARK = "told: "


class Told:
    """Sums the counts over all tests; reports bring them from other processes, too."""

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        total: Counter[str] = Counter()
        for reports in terminalreporter.stats.values():
            for report in reports:
                if getattr(report, "when", None) == "teardown":
                    for name, value in getattr(report, "user_properties", ()):
                        if str(name).startswith(MARK):
                            total[str(name).removeprefix(MARK)] += int(value)
        if total:
            done = ", ".join(f"{count} {what}" for what, count in sorted(total.items()))
            terminalreporter.write_line(f"told by the tests: {done}")


def tell(request: pytest.FixtureRequest, counts: Counter[str], about: str) -> None:
    """Say what a test did."""
    for what, count in counts.items():
        request.node.user_properties.append((f"{MARK}{about}: {what}", count))
