"""Bucket rules as values: which partitions have how many buckets."""

from dataclasses import dataclass
from typing import Protocol

#: The seed's number of buckets where nothing is said.
DEFAULT_BUCKETS = 256
#: A bucket's number is eight digits of a file id.
MOST_BUCKETS = 10**8 - 1


class Rule(Protocol):
    """Decides by the path of a partition; made from the expression of a rule."""

    def matches(self, partition: str) -> bool:
        """Say whether the partition with this path is one of the rule's."""
        ...

    def pattern(self) -> str:
        """Return a Java pattern that ``find`` finds in just the paths that match.

        It holds no comma and no semicolon, which divide the rules in a hashing config.
        """
        ...


@dataclass(frozen=True, slots=True)
class BucketRule:
    """The partitions that ``expression`` describes have so many ``buckets``.

    ``kind`` names how the expression is read: ``regex``, ``range``, or one that was registered.
    """

    expression: str
    buckets: int
    kind: str = "regex"


@dataclass(frozen=True, slots=True)
class BucketRules:
    """Rules in order, of which the first that matches decides, and the number for the rest."""

    rules: tuple[BucketRule, ...] = ()
    default: int = DEFAULT_BUCKETS
