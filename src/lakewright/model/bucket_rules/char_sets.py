"""Sets of characters as sorted ranges of code points, and the sets that Java patterns name."""

from bisect import bisect_right
from collections.abc import Iterable

#: Sorted, disjoint, not touching; both ends belong to a range.
CharSet = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
EVERYTHING: CharSet = ((0, LAST),)
NOTHING: CharSet = ()
SURROGATES: CharSet = ((0xD800, 0xDFFF),)
#: What Java writes as two characters each.
ASTRAL: CharSet = ((0x10000, LAST),)


def union(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """Return the set of all characters in any of these ranges."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(chars: CharSet) -> CharSet:
    """Return every character that the set does not hold."""
    gaps = []
    start = 0
    for low, high in chars:
        if start < low:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return tuple(gaps)


def intersection(one: CharSet, other: CharSet) -> CharSet:
    """Return the characters that both sets hold."""
    return complement(union(complement(one) + complement(other)))


def holds(chars: CharSet, code: int) -> bool:
    """Say whether the set holds the character with this code point."""
    at = bisect_right(chars, (code, LAST + 1)) - 1
    return at >= 0 and code <= chars[at][1]


def of_text(text: str) -> CharSet:
    """Return the set of the characters of a text."""
    return union((ord(char), ord(char)) for char in text)


def without_case(chars: CharSet) -> CharSet:
    """Add the other case of every ASCII letter: what ``(?i)`` means to Java."""
    ranges = list(chars)
    for first, shift in ((ord("A"), 32), (ord("a"), -32)):
        for low, high in chars:
            low, high = max(low, first), min(high, first + 25)
            if low <= high:
                ranges.append((low + shift, high + shift))
    return union(ranges)


DIGIT = of_text("0123456789")
LOWER: CharSet = ((0x61, 0x7A),)
UPPER: CharSet = ((0x41, 0x5A),)
ALPHA = union(LOWER + UPPER)
ALNUM = union(ALPHA + DIGIT)
WORD = union((*ALNUM, (0x5F, 0x5F)))
SPACE = of_text(" \t\n\x0b\f\r")
HORIZONTAL = union((*of_text(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200A)))
VERTICAL = of_text("\n\x0b\f\r\x85\u2028\u2029")
#: What ends a line: ``.`` does not match these, and ``$`` looks for one at the end.
TERMINATORS = of_text("\n\r\x85\u2028\u2029")
PUNCT: CharSet = ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))

#: The classes after a backslash; the capital letter means the complement.
ESCAPED = {"d": DIGIT, "w": WORD, "s": SPACE, "h": HORIZONTAL, "v": VERTICAL}

#: The classes of ``\p{...}`` that mean the same to every release of Java.
PROPERTIES: dict[str, CharSet] = {
    "Lower": LOWER,
    "Upper": UPPER,
    "ASCII": ((0, 0x7F),),
    "Alpha": ALPHA,
    "Digit": DIGIT,
    "Alnum": ALNUM,
    "Punct": PUNCT,
    "Graph": ((0x21, 0x7E),),
    "Print": ((0x20, 0x7E),),
    "Blank": of_text(" \t"),
    "Cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "XDigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "Space": SPACE,
}
