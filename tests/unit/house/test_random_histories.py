"""Random histories that differ between two runs go on; failures are never passed over."""

from collections import Counter
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from support.random_histories import run_histories


class Capricious(RuleBasedStateMachine):
    """Which rules there are depends on how often it ran before, as on a clock."""

    done: ClassVar[Counter[str]] = Counter()
    fails_at = 0

    def __init__(self) -> None:
        super().__init__()
        self.done["runs"] += 1

    @rule(n=st.booleans())
    def always(self, n: bool) -> None:
        self.done["steps"] += 1
        if self.fails_at and self.done["steps"] >= self.fails_at:
            raise AssertionError("a row is lost")

    @precondition(lambda self: self.done["runs"] % 2)
    @rule(n=st.integers())
    def at_odd_runs(self, n: int) -> None:
        self.done["steps"] += 1


def test_all_histories_are_run() -> None:
    machine = type("Machine", (Capricious,), {"done": Counter()})
    run_histories(machine, examples=40, steps=5)
    assert machine.done["runs"] >= 40


def test_a_failure_is_raised_however_the_run_went_on() -> None:
    machine = type("Machine", (Capricious,), {"done": Counter(), "fails_at": 9})
    with pytest.raises((AssertionError, ExceptionGroup), match=r"a row is lost|unreliable"):
        run_histories(machine, examples=40, steps=5)
