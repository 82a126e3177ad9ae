"""The bucket index of a table as a value: rules, their versions, and the partitions' numbers."""

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lakewright.actions.buckets.sizes import PartitionSize, measure, shown_bytes
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.bucket_rules.compiled import compile_rules
from lakewright.model.bucket_rules.rules import BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.table.state import TableState

#: What decides the number of a partition that no rule and no pin names.
DEFAULT = "default"
PINNED = "pinned"
_VERSIONS = 5


@dataclass(frozen=True, slots=True)
class RulesVersion:
    """Rules as they were set at an instant; ``pins`` is how many partitions kept their number."""

    instant: str
    rules: BucketRules
    pins: int = 0
    archived: bool = False


@dataclass(frozen=True, slots=True)
class PartitionBuckets:
    """The number of buckets of a partition, what decides it, and what lies in them.

    ``by`` is ``pinned`` where the partition keeps the number that it was written with though the
    rules give ``wanted``; else the expression of its rule, or ``default``.
    """

    size: PartitionSize
    by: str
    wanted: int

    @property
    def partition(self) -> str:
        """The path of the partition."""
        return self.size.partition

    @property
    def buckets(self) -> int:
        """The number that it has."""
        return self.size.buckets

    @property
    def pinned(self) -> bool:
        """Whether a rescale would give it another number."""
        return self.by == PINNED


@dataclass(frozen=True, slots=True, repr=False)
class BucketsShown(Shown):
    """The bucket index of a table.

    ``version`` is the instant of the rules that count, None where the table has one number for
    all its partitions; ``meta`` that of the newest hashing metadata. ``versions`` are all rules
    that are kept, the newest first.
    """

    table: str
    rules: BucketRules
    version: str | None
    meta: str | None
    hash_fields: tuple[str, ...]
    versions: Sequence[RulesVersion]
    partitions: Sequence[PartitionBuckets]

    @property
    def pinned(self) -> tuple[PartitionBuckets, ...]:
        """The partitions that a rescale would change."""
        return tuple(one for one in self.partitions if one.pinned)

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the index as lines: rules, then partitions (``limit`` of them), then versions."""
        groups = sum(one.size.groups for one in self.partitions)
        held = shown_bytes(sum(one.size.bytes for one in self.partitions))
        kind = "one number for all" if self.version is None else f"rules of {self.version}"
        yield (
            f"buckets of {self.table} by {', '.join(self.hash_fields)}: {kind}, "
            f"{len(self.partitions)} partitions, {len(self.pinned)} pinned, "
            f"{groups} file groups, {held}"
        )
        for number, rule in enumerate(self.rules.rules, 1):
            yield f"  rule {number}: {rule.kind} {rule.expression} -> {rule.buckets}"
        yield f"  default -> {self.rules.default}"
        items = (f"  {_line(one)}" for one in self.partitions)
        yield from first_of(items, len(self.partitions), limit)
        if len(self.versions) > 1:
            older = (
                f"  before: {one.instant}, {len(one.rules.rules)} rules, default "
                f"{one.rules.default}{', archived' if one.archived else ''}"
                for one in self.versions[1:]
            )
            count = len(self.versions) - 1
            yield from first_of(older, count, _VERSIONS if limit is not None else None)

    def to_json(self) -> str:
        """Return the index for programs."""
        value = {
            "table": self.table,
            "rules": json.loads(rules_json(self.rules)),
            "version": self.version,
            "meta": self.meta,
            "hash_fields": list(self.hash_fields),
            "partitions": [
                {
                    "partition": one.partition,
                    "buckets": one.buckets,
                    "by": one.by,
                    "wanted": one.wanted,
                    "used": one.size.used,
                    "groups": one.size.groups,
                    "bytes": one.size.bytes,
                    "largest": one.size.largest,
                }
                for one in self.partitions
            ],
            "versions": [
                {
                    "instant": one.instant,
                    "rules": json.loads(rules_json(one.rules)),
                    "pins": one.pins,
                    "archived": one.archived,
                }
                for one in self.versions
            ],
        }
        return json.dumps(value, ensure_ascii=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        names = ("partition", "buckets", "by", "files", "bytes", "sizes")
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            f"<tr><td>{html.escape(one.partition) or '(table)'}</td><td>{one.buckets}</td>"
            f"<td>{html.escape(_by(one))}</td><td>{one.size.groups}</td>"
            f"<td>{shown_bytes(one.size.bytes)}</td><td><code>{one.size.strip}</code></td></tr>"
            for one in islice(self.partitions, SHOWN)
        )
        title = html.escape(next(self.lines(0)))
        return (
            f"<b>{title}</b><pre>{html.escape(rules_json(self.rules))}</pre>"
            f"<table><tr>{head}</tr>{rows}</table>"
        )


def _line(one: PartitionBuckets) -> str:
    size = one.size
    return (
        f"{one.partition or '(table)'}: {one.buckets} buckets ({_by(one)}), {size.groups} file "
        f"groups, {shown_bytes(size.bytes)} |{size.strip}|"
    )


def _by(one: PartitionBuckets) -> str:
    return f"pinned, rules give {one.wanted}" if one.pinned else one.by


def show_buckets(
    table: str,
    state: TableState,
    counts: BucketCounts,
    hash_fields: tuple[str, ...],
    versions: Sequence[RulesVersion],
    partitions: Sequence[str] | None = None,
    *,
    meta: str | None = None,
) -> BucketsShown:
    """Return the bucket index of a table; partitions are listed, and no file is opened."""
    rules = counts.rules.rules
    # Which rule decides is found in one pass by rules that give their own places.
    places = tuple(replace(rule, buckets=place) for place, rule in enumerate(rules, 1))
    place_of = compile_rules(BucketRules(places, len(rules) + 1))

    def of(size: PartitionSize) -> PartitionBuckets:
        place = place_of(size.partition)
        found = place <= len(rules)
        wanted = rules[place - 1].buckets if found else counts.rules.default
        by = rules[place - 1].expression if found else DEFAULT
        if size.partition in counts.pins and size.buckets != wanted:
            by = PINNED
        return PartitionBuckets(size, by, wanted)

    found = [of(size) for size in measure(state, counts, partitions)]
    return BucketsShown(
        table=table,
        rules=counts.rules,
        version=counts.version,
        meta=counts.meta or meta,
        hash_fields=hash_fields,
        versions=tuple(versions),
        partitions=tuple(sorted(found, key=lambda one: one.partition)),
    )
