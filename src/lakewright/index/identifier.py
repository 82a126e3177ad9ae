"""Which bucket a single record belongs to, in the words of the partition-level bucket index.

Tasks work on columns of keys (``bucket_of``, ``BucketCounts``); this is the same for one key, with
the steps of its cache: the number that hashing metadata has fixed, the rule where there is none,
and a comparison of the two where there is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from lakewright.format.hudi.bucket_hash import bucket_of
from lakewright.format.hudi.simple_hash_meta import PartitionHashInfo
from lakewright.index.bucket_counts import BucketCounts
from lakewright.index.hashing_store import HashingStore
from lakewright.model.bucket_rules.compiled import check_rules
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import parse_rules
from lakewright.model.errors import Conflict
from lakewright.model.options import parse_names
from lakewright.timeline.view import TimelineView


@dataclass(frozen=True, slots=True)
class BucketCalculator:
    """Works numbers of buckets out from rules, and pins where there are any."""

    counts: BucketCounts

    @staticmethod
    def load_config(config: str | int | Mapping[str, object]) -> BucketRules:
        """Return the rules of a config: JSON, as text or mapping, or ``pattern,count;…``.

        ``Invalid`` where they cannot be read, or a pattern or a number is wrong.
        """
        rules = parse_rules(config)
        check_rules(rules)
        return rules

    @staticmethod
    def of(config: str | int | Mapping[str, object]) -> "BucketCalculator":
        """Return the calculator of a config."""
        return BucketCalculator(BucketCounts(BucketCalculator.load_config(config)))

    def calculate_bucket_number(self, partition_path: str) -> int:
        """Return how many buckets the rules give a partition; the first that matches decides."""
        return self.counts.number_of(partition_path)


@dataclass(frozen=True, slots=True)
class SimpleBucketIdentifier:
    """Finds the bucket of a record by its key and the number of buckets of its partition.

    ``fixed`` is what hashing metadata says. It pickles: every task of a job has the same.
    """

    calculator: BucketCalculator
    fixed: Mapping[str, PartitionHashInfo] = field(default_factory=dict)

    @staticmethod
    def load(store: HashingStore, view: TimelineView, default: int) -> "SimpleBucketIdentifier":
        """Return the identifier of a table as it is now; ``default`` is for one without rules."""
        counts = store.load(view, verified=False)
        if counts is None:
            return SimpleBucketIdentifier(BucketCalculator(BucketCounts.plain(default)))
        return SimpleBucketIdentifier(BucketCalculator(counts), store.fixed(view))

    def get_bucket_number(self, partition_path: str) -> int:
        """Return how many buckets a partition has.

        ``Conflict`` where a write has fixed another number than the rules give, unless the rules
        are newer than it: those describe the partitions that were there when they were set.
        """
        number = self.calculator.calculate_bucket_number(partition_path)
        info = self.fixed.get(partition_path)
        version = self.calculator.counts.version or ""
        if info is not None and info.bucket_number != number and info.instant >= version:
            raise Conflict(
                f"Partition {partition_path!r} has {info.bucket_number} buckets since the write "
                f"{info.instant}, but {number} by the rules {version or 'that were given'}.",
                next_step="See table.buckets.check(); rules for partitions that exist are changed "
                "by table.buckets.set and plan_rescale.",
                partition=partition_path,
                fixed=info.bucket_number,
                by_rules=number,
            )
        return number

    def get_bucket_id(self, record_key: str, index_key_fields: str, partition_path: str) -> int:
        """Return the bucket of a record; ``index_key_fields`` are names with commas between."""
        return _bucket(record_key, index_key_fields, self.get_bucket_number(partition_path))


def _bucket(key: str, fields: str, count: int) -> int:
    return int(bucket_of(pa.array([key], pa.string()), _names(fields), count)[0])


@lru_cache(maxsize=256)
def _names(fields: str) -> tuple[str, ...]:
    return parse_names(fields)
