"""The rule ``regex``: partitions whose path a Java pattern is found in."""

from lakewright.model.bucket_rules.java_pattern import pattern_of
from lakewright.model.bucket_rules.pattern_text import divides, write


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
        return text
