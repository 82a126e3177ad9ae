"""Advice: how many buckets each partition should have, judged by the sizes of its files."""

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from lakewright.actions.buckets.rule_writing import compact_rules
from lakewright.actions.buckets.sizes import PartitionSize, measure, shown_bytes
from lakewright.index.bucket_counts import BucketCounts
from lakewright.model.bucket_rules.rules import MOST_BUCKETS, BucketRules
from lakewright.model.bucket_rules.text import rules_json
from lakewright.model.errors import Invalid
from lakewright.model.options import declare, parse_positive
from lakewright.model.shown import SHOWN, Shown, first_of
from lakewright.table.state import TableState

TARGET_BYTES = declare(
    "lakewright.buckets.target-bytes",
    parse_positive,
    128 << 20,
    doc="About how many bytes a bucket should hold; advice on numbers of buckets goes by it.",
    since="0.1",
    allowed="a whole number of bytes",
)
MOST = declare(
    "lakewright.buckets.most",
    parse_positive,
    1024,
    doc="How many buckets advice gives a partition at most.",
    since="0.1",
    allowed="a whole number from 1",
)
#: A bucket that is so many times as large as the mean is told of: more buckets do not help it.
_SKEWED = 4.0


@dataclass(frozen=True, slots=True)
class PartitionAdvice:
    """How many buckets a partition has and should have, and why."""

    size: PartitionSize
    advised: int
    why: str

    @property
    def partition(self) -> str:
        """The path of the partition."""
        return self.size.partition

    @property
    def buckets(self) -> int:
        """The number that it has."""
        return self.size.buckets

    @property
    def changes(self) -> bool:
        """Whether another number is advised."""
        return self.advised != self.size.buckets


@dataclass(frozen=True, slots=True, repr=False)
class BucketAdvice(Shown):
    """Numbers of buckets for the partitions of a table, and the rules that give them.

    ``rules`` give every partition its advised number and go to ``buckets.set``; nothing is
    rewritten by that until a rescale. ``changes`` are the partitions that would change.
    """

    table: str
    target_bytes: int
    most: int
    partitions: Sequence[PartitionAdvice]
    rules: BucketRules

    @property
    def changes(self) -> tuple[PartitionAdvice, ...]:
        """The partitions for which another number is advised."""
        return tuple(one for one in self.partitions if one.changes)

    @property
    def rules_json(self) -> str:
        """The rules as JSON on one line, in the form that tables are created and altered with."""
        return json.dumps(json.loads(rules_json(self.rules)), ensure_ascii=False)

    def lines(self, limit: int | None = SHOWN) -> Iterator[str]:
        """Stream the advice as lines; partitions that would change come first."""
        changing = self.changes
        yield (
            f"buckets of {self.table}: {len(changing)} of {len(self.partitions)} partitions should "
            f"change, for buckets of about {shown_bytes(self.target_bytes)}"
        )
        ordered = (*changing, *(one for one in self.partitions if not one.changes))
        yield from first_of((f"  {_line(one)}" for one in ordered), len(ordered), limit)
        yield f"  rules: {self.rules_json}"

    def to_json(self) -> str:
        """Return the advice for programs; ``rules`` is what ``buckets.set`` takes."""
        value = {
            "table": self.table,
            "target_bytes": self.target_bytes,
            "most": self.most,
            "partitions": [
                {
                    "partition": one.partition,
                    "buckets": one.buckets,
                    "advised": one.advised,
                    "bytes": one.size.bytes,
                    "largest": one.size.largest,
                    "skew": round(one.size.skew, 2),
                    "why": one.why,
                }
                for one in self.partitions
            ],
            "rules": json.loads(self.rules_json),
        }
        return json.dumps(value, ensure_ascii=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        names = ("partition", "buckets", "advised", "bytes", "skew", "sizes", "why")
        head = "".join(f"<th>{name}</th>" for name in names)
        changing = self.changes
        ordered = (*changing, *(one for one in self.partitions if not one.changes))
        rows = "".join(
            f"<tr><td>{html.escape(one.partition) or '(table)'}</td><td>{one.buckets}</td>"
            f"<td>{one.advised}</td><td>{shown_bytes(one.size.bytes)}</td>"
            f"<td>{one.size.skew:.1f}</td><td><code>{one.size.strip}</code></td>"
            f"<td>{html.escape(one.why)}</td></tr>"
            for one in islice(ordered, SHOWN)
        )
        title = html.escape(next(self.lines(0)))
        return (
            f"<b>{title}</b><table><tr>{head}</tr>{rows}</table>"
            f"<pre>{html.escape(self.rules_json)}</pre>"
        )


def _line(one: PartitionAdvice) -> str:
    return (
        f"{one.partition or '(table)'}: {one.buckets} -> {one.advised} buckets, "
        f"{shown_bytes(one.size.bytes)}, |{one.size.strip}| {one.why}"
    )


def advise(
    table: str,
    state: TableState,
    counts: BucketCounts,
    options: Mapping[str, str],
    partitions: Sequence[str] | None = None,
) -> BucketAdvice:
    """Say how many buckets partitions should have, judging by the bytes of their latest slices.

    Numbers are powers of two, so that growing and shrinking divides and joins whole buckets. A
    number stays where its buckets are not over the target and more than half of it: another
    power of two would be no better. Partitions that are not looked at keep their numbers in the
    rules only as far as the rules that are proposed give them.
    """
    target, most = TARGET_BYTES.read(options), MOST.read(options)
    if most > MOST_BUCKETS:
        raise Invalid(
            f"{most} buckets are more than a table can have.",
            next_step=f"Give {MOST.key} up to {MOST_BUCKETS}.",
        )
    sizes = sorted(measure(state, counts, partitions), key=lambda size: size.partition)
    found = tuple(_advice(size, target, most) for size in sizes)
    rules = compact_rules({one.partition: one.advised for one in found}) if found else counts.rules
    return BucketAdvice(table, target, most, found, rules)


def _advice(size: PartitionSize, target: int, most: int) -> PartitionAdvice:
    wanted = power_of_two(-(-size.bytes // target))
    mean = size.bytes / size.buckets
    if size.skew >= _SKEWED and size.largest > target and size.buckets > 1:
        told = f"; the largest bucket has {size.skew:.1f} times the mean, which no number mends"
    else:
        told = ""
    if wanted > most:
        # Who has more than the most already keeps them, where even more are wanted.
        capped = size.buckets if most <= size.buckets <= wanted else most
        return PartitionAdvice(size, capped, f"{wanted} wanted, {most} is the most{told}")
    fits = mean <= target and (mean * 2 > target or size.buckets == 1)
    if fits or wanted == size.buckets:
        return PartitionAdvice(size, size.buckets, f"buckets of {shown_bytes(mean)} are fine{told}")
    much = "small" if wanted < size.buckets else "large"
    return PartitionAdvice(size, wanted, f"buckets of {shown_bytes(mean)} are too {much}{told}")


def power_of_two(least: int) -> int:
    """Return the least power of two that is not below a number."""
    return 1 << max(0, least - 1).bit_length()
