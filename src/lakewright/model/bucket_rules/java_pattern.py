"""Java patterns: the same answer as Java's ``find``, in time linear in the text."""

from functools import lru_cache

from lakewright.model.bucket_rules.automaton import Finder, Graph, graph_of
from lakewright.model.bucket_rules.pattern_parser import parse
from lakewright.model.bucket_rules.pattern_tree import Node


class JavaPattern:
    """A pattern as ``java.util.regex`` reads it, without flags.

    The classes are ASCII (``\\d``, ``\\w``, ``\\s``, ``\\p{Alpha}``), ``.`` and ``$`` know the
    line terminators of Java, and ``\\b`` sees letters and digits of all scripts as Java 8 to 18
    do. A text that Java would not compile, or that this engine cannot follow exactly
    (look-around, back references, possessive quantifiers), raises ``InvalidExpression``.
    """

    __slots__ = ("_finder", "graph", "text", "tree")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree: Node = parse(text)
        self.graph: Graph = graph_of(self.tree)
        self._finder: Finder | None = None

    def find(self, text: str) -> bool:
        """Say whether the pattern occurs anywhere in the text."""
        if self._finder is None:
            self._finder = Finder((self.graph,))
        return self._finder.first_in(text) == 0

    def __repr__(self) -> str:
        return f"JavaPattern({self.text!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (JavaPattern, (self.text,))


@lru_cache(maxsize=128)
def pattern_of(text: str) -> JavaPattern:
    """Return the pattern of a text, made once."""
    return JavaPattern(text)
