"""What is checked when rules are set: what is refused, and what is worth a warning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakewright.model.bucket_rules.automaton import Graph
from lakewright.model.bucket_rules.comparing import Effort, common_text, deciding
from lakewright.model.bucket_rules.java_pattern import pattern_of
from lakewright.model.bucket_rules.pattern_text import abridged
from lakewright.model.bucket_rules.pattern_tree import Place
from lakewright.model.bucket_rules.rules import BucketRule
from lakewright.model.bucket_rules.runaway import runs_away
from lakewright.model.errors import InvalidExpression

#: Rules of which each pair is compared; and the effort of all of these.
COMPARED = 50
#: Pairs that are told one by one.
MOST_TOLD = 10
_ALL_AT_ONCE = 20_000
_PAIR = 3_000
_ALL_PAIRS = 60_000


@dataclass(frozen=True, slots=True)
class Read:
    """A rule with the pattern that shipped Hudi gets, and its place among the rules from 1."""

    number: int
    rule: BucketRule
    pattern: str

    @property
    def graph(self) -> Graph:
        """The automaton of the pattern."""
        return pattern_of(self.pattern).graph

    def __str__(self) -> str:
        return f"Rule {self.number}, {abridged(self.rule.expression)},"


def refuse_runaway(rule: BucketRule, pattern: str) -> None:
    """Raise ``InvalidExpression`` where the pattern of a rule can keep Java busy without end."""
    why = runs_away(pattern)
    if why is not None:
        raise InvalidExpression(
            f"The rule {abridged(rule.expression)} would run away in Hudi, which tries one way "
            f"after the other: {why}.",
            next_step=(
                "Let each text have one way through the pattern: no quantifier on a group that "
                "ends in a quantifier of the same characters, and [^/]* rather than .* between "
                "the levels of a path."
            ),
            expression=rule.expression,
        )


def warnings_of(read: Sequence[Read], sample: Sequence[str]) -> tuple[str, ...]:
    """Return what may surprise: rules that never decide, and rules that meet on the same paths.

    ``sample`` are partitions that the table has.
    """
    matched = {path: _matching(read, path) for path in sample}
    shortest = {rule.number: _shortest(rule) for rule in read}
    never = _never_deciding(read, shortest)
    warnings = [_say_never(rule) for rule in read if rule.number in never]
    warnings += _overlaps(read, never, matched, shortest)
    warnings += _hidden(read, never, matched)
    warnings += _word_edges(read, sample)
    return tuple(warnings)


def _shortest(rule: Read) -> str | None:
    """Return a shortest path that a rule matches; None where there is none, or none is known."""
    return (deciding([rule.graph], Effort(_PAIR)) or {}).get(0)


def _matching(read: Sequence[Read], path: str) -> list[Read]:
    return [rule for rule in read if pattern_of(rule.pattern).find(path)]


def _say_never(rule: Read) -> str:
    if deciding([rule.graph], Effort(_PAIR)) == {}:
        return f"{rule} matches no path."
    return f"{rule} never decides: the rules in front of it match every path that it matches."


def _never_deciding(read: Sequence[Read], shortest: Mapping[int, str | None]) -> set[int]:
    """Return the numbers of the rules that provably never decide."""
    found = deciding([rule.graph for rule in read], Effort(_ALL_AT_ONCE))
    if found is not None:
        return {rule.number for index, rule in enumerate(read) if index not in found}
    never: set[int] = set()
    effort = Effort(_ALL_PAIRS)
    for index, rule in enumerate(read):
        own = shortest[rule.number]
        if own is not None and _matching(read, own)[0] is rule:
            continue
        if any(_hides(earlier, rule, effort) for earlier in read[:index]):
            never.add(rule.number)
    return never


def _hides(earlier: Read, rule: Read, effort: Effort) -> bool:
    """Say whether one rule provably matches every path that the other matches."""
    if earlier.pattern == rule.pattern:
        return True
    part = effort.part(_PAIR)
    effort.left -= part.left
    found = deciding([earlier.graph, rule.graph], part)
    effort.left += max(part.left, 0)
    return found is not None and 1 not in found


def _overlaps(
    read: Sequence[Read],
    never: set[int],
    matched: Mapping[str, list[Read]],
    shortest: Mapping[int, str | None],
) -> list[str]:
    """Return a sentence for each two rules of different numbers that match the same path."""
    examples: dict[tuple[int, int], str] = {}
    for path, rules in matched.items():
        for index, one in enumerate(rules):
            for other in rules[index + 1 :]:
                examples.setdefault((one.number, other.number), path)
    effort = Effort(_ALL_PAIRS)
    warnings = []
    for index, one in enumerate(read[:COMPARED]):
        for other in read[index + 1 : COMPARED]:
            if one.rule.buckets == other.rule.buckets or {one.number, other.number} & never:
                continue
            example = examples.get((one.number, other.number))
            if example is None:
                lengths = [len(shortest[rule.number] or "") for rule in (one, other)]
                example = _likely_overlap(one.graph, other.graph, lengths, effort)
            if example is not None:
                warnings.append(
                    f"Rules {one.number} and {other.number}, {abridged(one.rule.expression)} "
                    f"and {abridged(other.rule.expression)}, both match paths such as "
                    f"{example!r}: the first decides, and its number is {one.rule.buckets}."
                )
    more = len(warnings) - MOST_TOLD
    if more > 0:
        warnings[MOST_TOLD:] = [f"{more} more pairs of rules match the same paths."]
    return warnings


def _likely_overlap(one: Graph, other: Graph, lengths: list[int], effort: Effort) -> str | None:
    """Return a path on which two patterns meet, unless they merely stand side by side there.

    Most patterns can be found anywhere, so that some text holds what both look for. What shares
    a quarter of its characters is more than chance, as is what one of them would need alone;
    ``lengths`` are those of the shortest texts of each.
    """
    part = effort.part(_PAIR)
    effort.left -= part.left
    both = common_text(one, other, part)
    effort.left += max(part.left, 0)
    if both is None:
        return None
    meant = len(both) <= max(lengths) or 4 * len(both) <= 3 * sum(lengths)
    return both if meant else None


def _hidden(read: Sequence[Read], never: set[int], matched: Mapping[str, list[Read]]) -> list[str]:
    """Return a sentence for each rule that decides for no partition of those that it matches."""
    first = {rules[0].number for rules in matched.values() if rules}
    counts: dict[int, int] = {}
    for rules in matched.values():
        for rule in rules:
            counts[rule.number] = counts.get(rule.number, 0) + 1
    return [
        f"{rule} matches {counts[rule.number]} of the partitions looked at and decides for none: "
        "rules in front of it match them too."
        for rule in read
        if rule.number in counts and rule.number not in first and rule.number not in never
    ]


def _word_edges(read: Sequence[Read], sample: Sequence[str]) -> list[str]:
    """Return a sentence for each rule whose meaning depends on the release of Java."""
    foreign = next((path for path in sample if not path.isascii()), None)
    if foreign is None:
        return []
    return [
        f"{rule} uses \\b, which sees other words in paths such as {foreign!r} from Java 19 on: "
        "write the characters around the word instead."
        for rule in read
        if Place.WORD_EDGE in rule.graph.places()
    ]
