"""Running a state machine many times, where two runs of the same choices may differ.

Faults hit the n-th call of a storage that threads share, and clocks go on: what a history leaves is
then not the same twice. Hypothesis takes a run that leaves the path of an earlier one with the same
beginning for a fault of the test and stops. The more runs it remembers, the likelier that is, so it
is given few at a time, each time with another seed; where it stops even so, the next seed follows.
What the table did wrong is never passed over: a machine notes every failure before hypothesis
looks at it.
"""

import itertools
import random
import sys
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import FlakyStrategyDefinition, HypothesisException, StopTest
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

#: Runs that share a memory; the first is always the plainest history there is.
_TOGETHER = 9
_NO_FAILURES = (HypothesisException, StopTest, GeneratorExit, KeyboardInterrupt)


def run_histories(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Run at least so many histories of so many steps; the first failure is raised."""
    first = 0 if settings().derandomize else random.randrange(1 << 32)
    noted = _Noted()
    # The name is what tells of the shape, and by which failures are kept for the next run.
    noting = type(machine.__name__, (_Noting, machine), {"noted": noted})
    for number in itertools.count(first):
        count = min(examples - noted.runs, _TOGETHER)
        try:
            run_state_machine_as_test(seed(number)(noting), settings=_few(count, steps))
        except FlakyStrategyDefinition:
            if noted.failures:
                raise noted.failures[0] from None
        if noted.runs >= examples:
            return


def _few(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        # Finding a smaller case takes minutes; what failed is told as it was.
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


@dataclass(slots=True)
class _Noted:
    runs: int = 0
    failures: list[BaseException] = field(default_factory=list)


class _Noting:
    """Beside a machine: notes its runs, and what ends them other than hypothesis itself."""

    noted: _Noted

    def teardown(self) -> None:
        self.noted.runs += 1
        self._note(sys.exception())
        try:
            super().teardown()  # type: ignore[misc]
        except BaseException as failure:
            self._note(failure)
            raise

    def _note(self, failure: BaseException | None) -> None:
        if failure is not None and not isinstance(failure, _NO_FAILURES):
            self.noted.failures.append(failure)
