"""Writes trees as text that Java reads alike, without the commas and semicolons that divide rules.

Hudi splits its rules at ``;`` and each of them at ``,``, without a way to escape either. So
literals are written as ``\\x2c`` and ``\\x3b``, and ``a{2,5}`` by repetitions of one number each.
"""

from typing import assert_never

from lakewright.model.bucket_rules import char_sets
from lakewright.model.bucket_rules.char_sets import CharSet
from lakewright.model.bucket_rules.pattern_tree import (
    Assertion,
    Chars,
    Choice,
    Node,
    Place,
    Repeat,
    Sequence,
    always_empty,
    can_be_empty,
)

_AS_IS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=/:%")
_KNOWN: dict[CharSet, str] = {
    char_sets.DIGIT: "[0-9]",
    char_sets.EVERYTHING: "(?s:.)",
    char_sets.complement(char_sets.TERMINATORS): ".",
}


def literal(char: str) -> str:
    """Write one character so that it stands for itself, inside and outside of classes."""
    if char in _AS_IS and char != "-":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\x{{{code:x}}}"


def abridged(text: str, most: int = 200) -> str:
    """Quote a text for a message; a long one without its middle."""
    return repr(text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}")


def divides(text: str) -> bool:
    """Say whether Hudi would take something in the text for the end of a pattern."""
    return "," in text or ";" in text


def write(node: Node) -> str:
    """Return a text whose tree finds the same; it holds no comma and no semicolon."""
    match node:
        case Chars(chars):
            return _write_chars(chars)
        case Assertion(Place.START):
            return "^"
        case Assertion(Place.TAIL):
            return "$"
        case Assertion(place):
            return place.value
        case Sequence(parts):
            return "".join(
                f"(?:{write(part)})" if isinstance(part, Choice) else write(part) for part in parts
            )
        case Choice(options):
            return "|".join(write(option) for option in options)
        case Repeat(body, least, most):
            return _write_repeat(body, least, most)
        case _:
            assert_never(node)


def _write_chars(chars: CharSet) -> str:
    if chars in _KNOWN:
        return _KNOWN[chars]
    if len(chars) == 1 and chars[0][0] == chars[0][1]:
        char = chr(chars[0][0])
        return "-" if char == "-" else literal(char)
    if not chars:
        return "[^\\x{0}-\\x{10ffff}]"
    negated = char_sets.complement(chars)
    if negated and chars[-1][1] == char_sets.LAST:
        return f"[^{_write_ranges(negated)}]"
    return f"[{_write_ranges(chars)}]"


def _write_ranges(chars: CharSet) -> str:
    pieces = []
    for low, high in chars:
        pieces.append(literal(chr(low)))
        if high > low:
            pieces.append(("-" if high > low + 1 else "") + literal(chr(high)))
    return "".join(pieces)


def _write_repeat(body: Node, least: int, most: int | None) -> str:
    text = write(body)
    one = text if isinstance(body, Chars) else f"(?:{text})"
    if most == 0:
        return ""
    if most is None:
        if least < 2:
            return one + "*+"[least]
        return f"{one}{{{least}}}{one}*"
    if can_be_empty(body) and not always_empty(body):
        # Java ends a repetition at the first empty one, which numbers above one would show.
        return one * least + _nested(one, most - least)
    return _times(one, least) + _up_to(one, most - least)


def _times(one: str, count: int) -> str:
    return "" if count == 0 else one if count == 1 else f"{one}{{{count}}}"


def _nested(one: str, count: int) -> str:
    return "" if count == 0 else f"(?:{one}" * count + ")?" * count


def _up_to(one: str, most: int) -> str:
    """Return none to ``most`` of a thing, in a text whose length is about the square of the log.

    Every count has one way through it, so that it adds nothing to the work of a backtracker.
    """
    if most == 0:
        return ""
    if most == 1:
        return f"{one}?"
    whole = 1 << (most.bit_length() - 1)
    halves = f"(?:{_times(one, whole)})?"
    if most == 2 * whole - 1:
        return halves + _up_to(one, whole - 1)
    above = _times(one, whole) + _up_to(one, most - whole)
    return f"(?:{above}|{_up_to(one, whole - 1)})"
