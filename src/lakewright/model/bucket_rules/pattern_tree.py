"""Java patterns as trees of values, without the text that they were read from."""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from lakewright.model.bucket_rules.char_sets import CharSet


class Place(Enum):
    """Where in a text an assertion of no length holds."""

    START = "\\A"
    END = "\\z"
    #: The end, or before a line terminator that ends the text.
    TAIL = "\\Z"
    LINE_START = "(?m:^)"
    LINE_END = "(?m:$)"
    WORD_EDGE = "\\b"


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Assertion:
    """A place, and no characters."""

    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; none is the empty text."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of these."""

    options: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least and at most so often; ``most`` is None where nothing bounds it."""

    body: "Node"
    least: int
    most: int | None


Node = Chars | Assertion | Sequence | Choice | Repeat

EMPTY = Sequence(())


def can_be_empty(node: Node) -> bool:
    """Say whether the node matches the empty text somewhere."""
    match node:
        case Chars():
            return False
        case Assertion():
            return True
        case Sequence(parts):
            return all(can_be_empty(part) for part in parts)
        case Choice(options):
            return any(can_be_empty(option) for option in options)
        case Repeat(body, least, _):
            return least == 0 or can_be_empty(body)
        case _:
            assert_never(node)


def always_empty(node: Node) -> bool:
    """Say whether the node matches the empty text at every place, whatever stands around it."""
    match node:
        case Chars() | Assertion():
            return False
        case Sequence(parts):
            return all(always_empty(part) for part in parts)
        case Choice(options):
            return any(always_empty(option) for option in options)
        case Repeat(body, least, _):
            return least == 0 or always_empty(body)
        case _:
            assert_never(node)


def size(node: Node) -> int:
    """Count the characters and assertions of the node with all repetitions written out."""
    match node:
        case Chars() | Assertion():
            return 1
        case Sequence(parts):
            return 1 + sum(size(part) for part in parts)
        case Choice(options):
            return 1 + sum(size(option) for option in options)
        case Repeat(body, least, most):
            return 1 + size(body) * max(1, least if most is None else most)
        case _:
            assert_never(node)
