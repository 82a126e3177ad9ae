"""Timing by turns: every variant once per round, so that a busy moment hits all of them alike."""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Check = Callable[[str, object], None]


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of each variant, one per round; the reference ran twice in each."""

    seconds: Mapping[str, list[float]]
    reference: str

    @property
    def again(self) -> str:
        return again(self.reference)

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, name: str) -> float:
        """Return how many times the reference's median this variant takes."""
        return self.median(name) / self.median(self.reference)

    def spread(self) -> tuple[float, float]:
        """Return the middle half of the reference's second runs over its first ones."""
        pairs = zip(self.seconds[self.again], self.seconds[self.reference], strict=True)
        ratios = [second / first for second, first in pairs]
        if len(ratios) < 2:
            return ratios[0], ratios[0]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, high


class Sum(float):
    """A sum of doubles: equal to another that added them in a different order."""

    __hash__ = None  # type: ignore[assignment]  # closeness is no equivalence

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isclose(self, other, rel_tol=1e-9)

    def __ne__(self, other: object) -> bool:
        return not self == other


def again(name: str) -> str:
    return f"{name} (again)"


def measure(
    variants: Mapping[str, Callable[[], object]], reference: str, rounds: int, *, warm: int = 2
) -> Timings:
    """Run all variants by turns; the warming rounds do not count, and check that results agree."""
    runs = {**variants, again(reference): variants[reference]}
    names = list(runs)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    expected: object = None
    for number in range(-warm, rounds):
        # Each round begins with another variant: none always runs after the same neighbour.
        start = number % len(names)
        for name in names[start:] + names[:start]:
            began = time.perf_counter()
            result = runs[name]()
            took = time.perf_counter() - began
            if number >= 0:
                seconds[name].append(took)
            if expected is None:
                expected = result
            if result != expected:
                raise SystemExit(f"{name} returned {result}, others {expected}")
    return Timings(seconds, reference)
