"""Bucket rules at work: the kinds of rules, what is checked when rules are set, and the numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from random import Random

from lakewright.model.bucket_rules.automaton import Finder
from lakewright.model.bucket_rules.checking import Read, refuse_runaway, warnings_of
from lakewright.model.bucket_rules.java_pattern import pattern_of
from lakewright.model.bucket_rules.pattern_parser import LARGEST
from lakewright.model.bucket_rules.pattern_text import abridged
from lakewright.model.bucket_rules.range_rule import RangeRule
from lakewright.model.bucket_rules.regex_rule import ExactRule, regex_rule
from lakewright.model.bucket_rules.rules import MOST_BUCKETS, BucketRule, BucketRules, Rule
from lakewright.model.errors import AlreadyExists, Invalid

#: Partitions that are looked at, taken at random from all.
SAMPLE = 2_000

_BUILT_IN: dict[str, Callable[[str], Rule]] = {"regex": regex_rule, "range": RangeRule}
_KINDS: dict[str, Callable[[str], Rule]] = dict(_BUILT_IN)


def register_rule(kind: str, make: Callable[[str], Rule]) -> None:
    """Add a kind of rule: ``make`` turns the expression of a rule into one that decides.

    ``make`` raises ``Invalid`` for an expression that it does not understand. Every process that
    reads or writes tables with such rules must register it. The same function may be
    registered again; a built-in kind, or one of another function, cannot be replaced.
    """
    name = kind.lower()
    if _KINDS.get(name, make) is not make:
        raise AlreadyExists(
            f"The rule kind {name!r} is registered already.",
            next_step="Choose another name.",
            kind=name,
        )
    _KINDS[name] = make


def rule_of(rule: BucketRule) -> Rule:
    """Return what decides for a rule; raise ``Invalid`` where its kind or expression is wrong."""
    make = _KINDS.get(rule.kind.lower())
    if make is None:
        raise Invalid(
            f"The rule kind {rule.kind!r} of {abridged(rule.expression)} is not known.",
            next_step=f"Known kinds are {', '.join(sorted(_KINDS))}; register_rule adds others.",
            kind=rule.kind,
        )
    return make(rule.expression)


@lru_cache(maxsize=64)
def compile_rules(rules: BucketRules) -> Callable[[str], int]:
    """Return the function from a partition's path to its number of buckets; made once per value.

    The first rule that matches decides. All patterns are searched for in one pass over the path.
    """
    if not rules.rules:
        default = rules.default
        return lambda partition: default
    return _Numbers(rules).number_of


class _Numbers:
    """The numbers of buckets by path."""

    def __init__(self, rules: BucketRules) -> None:
        self._default = rules.default
        self._buckets = [rule.buckets for rule in rules.rules]
        self._others: list[tuple[int, Rule]] = []
        self._indexes: list[int] = []
        self._exact: dict[str, int] = {}
        graphs = []
        for index, rule in enumerate(rules.rules):
            made = rule_of(rule)
            if isinstance(made, ExactRule):
                for path in made.paths:
                    self._exact.setdefault(path, index)
            elif rule.kind.lower() in _BUILT_IN:
                self._indexes.append(index)
                graphs.append(pattern_of(made.pattern()).graph)
            else:
                self._others.append((index, made))
        self._finder = Finder(graphs)

    def number_of(self, partition: str) -> int:
        """Return the number of the first rule that matches."""
        found = self._finder.first_in(partition)
        none = len(self._buckets)
        first = self._indexes[found] if found >= 0 else none
        if self._exact:
            first = min(first, self._exact.get(partition, none))
        for index, rule in self._others:
            if index > first:
                break
            if rule.matches(partition):
                first = index
                break
        return self._buckets[first] if first < none else self._default


def check_rules(rules: BucketRules, *, partitions: Iterable[str] = ()) -> tuple[str, ...]:
    """Check rules that are to be set; raise ``Invalid``, or return warnings.

    Refused are numbers that are none of buckets, unknown kinds, expressions that cannot be read,
    and patterns that run away in Hudi. Warnings are sentences about rules that never decide, and
    about rules of different numbers that match the same paths. ``partitions`` are paths that
    the table has: they show what cannot be proved. Of very many, some are looked at.
    """
    check_number(rules.default, "the default")
    read = []
    for number, rule in enumerate(rules.rules, start=1):
        check_number(rule.buckets, f"the rule {abridged(rule.expression)}")
        made = rule_of(rule)
        pattern = made.pattern()
        if isinstance(made, ExactRule) and len(pattern) > LARGEST:
            continue  # a long list of paths cannot run away, and is no pattern to compare
        refuse_runaway(rule, pattern)
        read.append(Read(number, rule, pattern))
    known = list(partitions)
    sample = known if len(known) <= SAMPLE else Random(0).sample(known, SAMPLE)
    return (*_without_value(rules, sample), *warnings_of(read, sample))


def _without_value(rules: BucketRules, sample: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each range rule that speaks of a value that no partition has."""
    for number, rule in enumerate(rules.rules, start=1):
        made = rule_of(rule)
        if isinstance(made, RangeRule) and sample and not any(map(made.values_in, sample)):
            yield (
                f"Rule {number}, {abridged(rule.expression)}, finds its value in none of the "
                f"partitions looked at, such as {sample[0]!r}: name the column as the paths do, "
                "or write level 1, level 2, … where they have no names."
            )


def check_number(buckets: object, whose: str) -> int:
    """Return the number of buckets; raise ``Invalid`` where it cannot be one."""
    if isinstance(buckets, bool) or not isinstance(buckets, int):
        raise Invalid(
            f"The number of buckets of {whose} is {buckets!r}, which is no whole number.",
            next_step=f"Give a number from 1 to {MOST_BUCKETS}.",
            buckets=buckets,
        )
    if not 1 <= buckets <= MOST_BUCKETS:
        raise Invalid(
            f"The number of buckets of {whose} is {buckets}.",
            next_step=f"Give a number from 1 to {MOST_BUCKETS}.",
            buckets=buckets,
        )
    return buckets
