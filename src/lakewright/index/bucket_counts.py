"""How many buckets each partition of a table has, as one job sees it from its first to its last."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakewright.model.bucket_rules.compiled import compile_rules
from lakewright.model.bucket_rules.rules import BucketRules


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """The numbers of buckets of a table's partitions; it pickles, and goes to every task.

    ``pins`` are the partitions that keep another number than ``rules`` give, because they were
    written before the rules were set. ``version`` is the instant of the hashing config that both
    come from, and ``meta`` that of the hashing metadata that they agree with; ``version`` is None
    in a table with one number for all partitions.
    """

    rules: BucketRules
    pins: Mapping[str, int] = field(default_factory=dict)
    version: str | None = None
    meta: str | None = None

    @staticmethod
    def plain(buckets: int) -> "BucketCounts":
        """Return the counts of a table with one number for all partitions."""
        return BucketCounts(BucketRules(default=buckets))

    @property
    def uniform(self) -> int | None:
        """The number of every partition; None where partitions may differ."""
        return None if self.rules.rules or self.pins else self.rules.default

    def number_of(self, partition: str) -> int:
        """Return how many buckets a partition has, or will have when it is first written."""
        pinned = self.pins.get(partition)
        return compile_rules(self.rules)(partition) if pinned is None else pinned

    def numbers_of(self, partitions: Iterable[str]) -> list[int]:
        """Return the numbers of many partitions, in their order."""
        by_rule = compile_rules(self.rules)
        pins = self.pins
        return [pins[path] if path in pins else by_rule(path) for path in partitions]
