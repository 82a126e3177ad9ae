"""The rule ``regex``: partitions whose path a Java pattern is found in."""

from lakewright.model.bucket_rules.java_pattern import pattern_of
from lakewright.model.bucket_rules.pattern_text import abridged, divides, write
from lakewright.model.bucket_rules.pins import pinned_by
from lakewright.model.bucket_rules.rules import Rule
from lakewright.model.errors import InvalidExpression

#: A pattern that is longer when written without commas is refused.
LONGEST = 100_000


def regex_rule(expression: str) -> Rule:
    """Return the rule of a pattern; one that lists whole paths looks them up, however many."""
    paths = pinned_by(expression)
    return RegexRule(expression) if paths is None else ExactRule(expression, paths)


class ExactRule:
    """The partitions that a pattern names by their whole paths."""

    __slots__ = ("_text", "paths")

    def __init__(self, expression: str, paths: list[str]) -> None:
        self._text = expression
        self.paths = frozenset(paths)

    def matches(self, partition: str) -> bool:
        """Say whether the path is named."""
        return partition in self.paths

    def pattern(self) -> str:
        """Return the expression itself."""
        return self._text


class RegexRule:
    """The partitions in whose path, taken whole, Java's ``find`` finds the pattern."""

    __slots__ = ("_pattern",)

    def __init__(self, expression: str) -> None:
        self._pattern = pattern_of(expression)

    def matches(self, partition: str) -> bool:
        """Say whether the pattern occurs in the path."""
        return self._pattern.find(partition)

    def pattern(self) -> str:
        """Return the expression itself where Hudi can read it, else one that finds the same."""
        text = self._pattern.text
        # Hudi trims what it splits as Java does: control characters and blanks.
        if not text or divides(text) or text[0] <= " " or text[-1] <= " ":
            text = write(self._pattern.tree) or "(?:)"
            if len(text) > LONGEST:
                raise InvalidExpression(
                    f"The pattern {abridged(self._pattern.text)} is longer than {LONGEST} "
                    "characters without its commas, which Hudi cannot read.",
                    next_step="Use smaller counts in { }, or * and +.",
                    pattern=self._pattern.text,
                )
        return text
