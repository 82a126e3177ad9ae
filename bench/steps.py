"""Timing steps that change something: each is prepared, run by turns, and checked."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from process_tree import processor_ticks, seconds_between, watched


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
        """Return medians, and the least and greatest wall time."""
        return {
            "wall": statistics.median(self.wall),
            "cpu": statistics.median(self.cpu),
            "least": min(self.wall),
            "most": max(self.wall),
        }


def by_turns(steps: Mapping[str, Step], rounds: int) -> dict[str, dict[str, Any]]:
    """Run all variants once per round, and check in the first that they agree."""
    costs = {name: Cost() for name in steps}
    names = list(steps)
    expected: object = None
    for number in range(rounds):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            cost = one(steps[name])
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


def one(step: Step) -> tuple[float, float]:
    """Prepare and run a step; return its wall and processor seconds."""
    step.prepare()
    used, began = processor_ticks(), time.perf_counter()
    step.run()
    took = time.perf_counter() - began
    return took, seconds_between(used, processor_ticks())


def peak_of(step: Step) -> int:
    """Prepare and run a step; return the greatest resident memory of this process's tree."""
    step.prepare()
    with watched() as peak:
        step.run()
    return peak.bytes
