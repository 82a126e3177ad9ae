"""Timing steps that change something: each is prepared, run by turns, and checked."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from process_tree import counted, watched


@dataclass(frozen=True, slots=True)
class Step:
    """One variant of a step; ``check`` returns what all variants must agree on."""

    prepare: Callable[[], None]
    run: Callable[[], object]
    check: Callable[[], object]


@dataclass(slots=True)
class Cost:
    """Seconds by the clock and of processors, one of each per round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return medians, the least and greatest wall time, and how many rounds there were."""
        return {
            "rounds": len(self.wall),
            "wall": statistics.median(self.wall),
            "cpu": statistics.median(self.cpu),
            "least": min(self.wall),
            "most": max(self.wall),
        }


def by_turns(
    steps: Mapping[str, Step],
    rounds: int | Mapping[str, int],
    ready: Callable[[], None] = lambda: None,
) -> dict[str, dict[str, Any]]:
    """Run variants by turns, so many rounds each; check in the first round that they agree.

    ``ready`` runs right before every turn, and does not count.
    """
    costs = {name: Cost() for name in steps}
    times = dict.fromkeys(steps, rounds) if isinstance(rounds, int) else rounds
    expected: object = None
    for number in range(max(times[name] for name in steps)):
        names = [name for name in steps if number < times[name]]
        start = number % len(names)
        for name in names[start:] + names[:start]:
            cost = one(steps[name], ready)
            costs[name].wall.append(cost[0])
            costs[name].cpu.append(cost[1])
            if number == 0:
                result = steps[name].check()
                expected = result if expected is None else expected
                if result != expected:
                    raise SystemExit(f"{name} left {result}, others {expected}")
            print(
                f"{time.strftime('%H:%M:%S')} {name}: {cost[0]:.2f} / {cost[1]:.2f}",
                file=sys.stderr,
                flush=True,
            )
    return {name: cost.figures() for name, cost in costs.items()}


def one(step: Step, ready: Callable[[], None] = lambda: None) -> tuple[float, float]:
    """Prepare and run a step; return its wall and processor seconds."""
    step.prepare()
    ready()
    with counted() as used:
        began = time.perf_counter()
        step.run()
        took = time.perf_counter() - began
    return took, used.seconds


def peak_of(step: Step, look: Callable[[], int], every: float) -> int:
    """Prepare and run a step; return the most memory that was seen meanwhile."""
    step.prepare()
    with watched(look, every) as peak:
        step.run()
    return peak.bytes
