"""Policies bound to the levels of a table: which one governs a partition.

The more values a spec names, the more specific it is, and the most specific policy governs; of
two that name the same partitions, the one with more levels does. Two policies of which neither
is the more specific one must not meet in a partition, unless a third names just what they share.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from lakewright.format.hudi.partition_paths import DEFAULT_PARTITION
from lakewright.lifecycle.ttl.event_time import EventTime
from lakewright.lifecycle.ttl.levels import UNREADABLE, Key, Levels
from lakewright.model.errors import Invalid
from lakewright.model.ttl import PartitionSpec, PolicyKind, TtlPolicy

#: Which levels of a spec have values.
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """A policy with its spec read and typed.

    ``keys`` are the values of its levels, None for any. ``parent`` is how many levels make the
    parent below which partitions are counted: those of the spec, but a star at the table's last
    level stands for the partitions that are counted.
    """

    policy: TtlPolicy
    spec: PartitionSpec
    keys: tuple[Key | None, ...]
    parent: int
    event_time: EventTime | None = None

    @property
    def shape(self) -> Shape:
        """The levels that have values."""
        return tuple(i for i, key in enumerate(self.keys) if key is not None)

    def values(self, shape: Shape) -> tuple[Key | None, ...]:
        """Return the values at some levels, None where there is none."""
        return tuple(self.keys[i] if i < len(self.keys) else None for i in shape)

    def matches(self, keys: Sequence[Key]) -> bool:
        """Say whether the spec names a partition with these values."""
        return all(mine is None or mine == key for mine, key in zip(self.keys, keys, strict=False))


def bind(policy: TtlPolicy, levels: Levels) -> BoundPolicy:
    """Read and check a policy for a table; ``Invalid`` names what does not fit it.

    The policy that comes back has the canonical text of its spec and all of its settings.
    """
    spec = levels.parse(policy.spec)
    texts = [None if one.text is None else levels.decode(one.text) for one in spec.levels]
    keys = tuple(
        None if text is None else level.key(text)
        for level, text in zip(levels.levels, texts, strict=False)
    )
    _check_types(policy, levels, spec, keys)
    complete = len(keys) == len(levels.levels)
    if complete and keys[-1] is not None and policy.kind.ranks:
        raise Invalid(
            f"{policy.spec} {policy.kind}: it names one partition, below which there are none.",
            next_step="Name fewer levels, or * at the last one.",
            spec=policy.spec,
        )
    parent = len(keys) - 1 if complete else len(keys)
    event_time = None
    canonical = replace(policy, spec=str(spec))
    if policy.kind is PolicyKind.KEEP_BY_EVENT_TIME:
        event_time = EventTime.of(policy, levels, parent)
        canonical = replace(canonical, settings=event_time.settings())
    return BoundPolicy(canonical, spec, keys, parent, event_time)


def _check_types(
    policy: TtlPolicy, levels: Levels, spec: PartitionSpec, keys: tuple[Key | None, ...]
) -> None:
    for level, one, key in zip(levels.levels, spec.levels, keys, strict=False):
        if key is not None and key[0] == UNREADABLE:
            kind = f"time like {level.pattern}" if level.pattern else level.kind
            raise Invalid(
                f"{policy.spec}: {one.text!r} is no {kind}, which {level.name} is.",
                next_step=f"Give a value of that type, or {DEFAULT_PARTITION} for null.",
                spec=policy.spec,
                column=level.name,
            )


class Governance:
    """All policies of a table: which one governs which partition."""

    def __init__(self, bounds: Iterable[BoundPolicy]) -> None:
        shapes: dict[Shape, dict[tuple[Key | None, ...], BoundPolicy]] = defaultdict(dict)
        for bound in bounds:
            same = shapes[bound.shape]
            values = bound.values(bound.shape)
            other = same.get(values)
            if other is None or len(other.keys) < len(bound.keys):
                same[values] = bound
        self._shapes = sorted(shapes.items(), key=lambda item: -len(item[0]))
        #: How many levels must be typed to find the policy of a partition.
        self.depth = max((shape[-1] + 1 for shape in shapes if shape), default=0)

    def of(self, keys: tuple[Key, ...]) -> BoundPolicy | None:
        """Return the policy that governs the partition with these first values."""
        for shape, found in self._shapes:
            # As many levels as there are values are all of them.
            same = len(shape) == len(keys)
            bound = found.get(keys if same else tuple(keys[i] for i in shape))
            if bound is not None:
                return bound
        return None

    def ambiguities(self) -> Iterator[tuple[BoundPolicy, BoundPolicy]]:
        """Stream pairs of policies that meet without one being the more specific."""
        known = dict(self._shapes)
        for (one, mine), (two, others) in combinations(self._shapes, 2):
            if set(one) <= set(two) or set(two) <= set(one):
                continue
            shared = tuple(i for i in one if i in two)
            union = tuple(sorted({*one, *two}))
            by_shared: dict[tuple[Key | None, ...], list[BoundPolicy]] = defaultdict(list)
            for bound in others.values():
                by_shared[bound.values(shared)].append(bound)
            for bound in mine.values():
                for other in by_shared.get(bound.values(shared), ()):
                    meet = tuple(bound.keys[i] if i in one else other.keys[i] for i in union)
                    if meet not in known.get(union, {}):
                        yield bound, other


def check_unambiguous(bounds: Sequence[BoundPolicy]) -> None:
    """Refuse policies of which two meet in a partition and neither is the more specific."""
    for one, two in Governance(bounds).ambiguities():
        raise Invalid(
            f"{one.policy.spec} and {two.policy.spec} meet, and neither is the more specific.",
            next_step=f"Add a policy for {meeting(one, two)} first, or drop one of them.",
            specs=[one.policy.spec, two.policy.spec],
        )


def meeting(one: BoundPolicy, two: BoundPolicy) -> PartitionSpec:
    """Return the spec that names just what two others share."""
    longer, shorter = sorted((one.spec.levels, two.spec.levels), key=len, reverse=True)
    levels = list(longer)
    for i, level in enumerate(shorter):
        if levels[i].text is None:
            levels[i] = level
    return PartitionSpec(tuple(levels))
