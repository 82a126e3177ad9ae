"""Intervals as Java patterns: which numbers, digits and texts lie between two ends.

The patterns match whole values and hold no comma and no semicolon.
"""

from lakewright.model.bucket_rules import char_sets
from lakewright.model.bucket_rules.char_sets import CharSet
from lakewright.model.bucket_rules.pattern_text import literal, write
from lakewright.model.bucket_rules.pattern_tree import Chars

#: What Hudi writes as ``%XX`` in a path where URL encoding is on.
ESCAPED = char_sets.union(((0, 0x1F), (0x7F, 0x7F), *char_sets.of_text("\"#%'*/:=?[\\]^{")))
#: Java sees halves of characters beyond U+FFFF only where a set parts them from the whole.
_WIDE = char_sets.union(char_sets.SURROGATES + char_sets.ASTRAL)
_NO_HALVES = char_sets.complement(char_sets.SURROGATES)
#: The pattern of a character that no value holds.
NEVER = write(Chars(char_sets.NOTHING))


def digits_between(low: str, high: str) -> list[str]:
    """Return patterns of the texts of digits from ``low`` to ``high``, both of the same length."""
    if low == high:
        return [low]
    same = 0
    while low[same] == high[same]:
        same += 1
    prefix, rest = low[:same], len(low) - same - 1
    first, last = int(low[same]), int(high[same])
    patterns = []
    if low[same + 1 :].strip("0"):
        patterns += [prefix + low[same] + p for p in digits_between(low[same + 1 :], "9" * rest)]
        first += 1
    above = []
    if high[same + 1 :].strip("9"):
        above = [prefix + high[same] + p for p in digits_between("0" * rest, high[same + 1 :])]
        last -= 1
    if first <= last:
        digit = str(first) if first == last else f"[{first}-{last}]"
        patterns.append(prefix + digit + "[0-9]" * rest)
    return patterns + above


def numbers_between(low: int, high: int | None) -> list[str]:
    """Return patterns of the whole numbers from ``low``, at least 0, to ``high`` or without end.

    Zeros in front are allowed by the caller.
    """
    patterns = []
    if high is None:
        width = len(str(low))
        patterns.append("[1-9]" + "[0-9]" * width + "[0-9]*")
        high = 10**width - 1
    for width in range(len(str(low)), len(str(high)) + 1):
        smallest = max(low, 10 ** (width - 1) if width > 1 else 0)
        largest = min(high, 10**width - 1)
        patterns += digits_between(str(smallest), str(largest))
    return patterns


def texts_between(
    low: str, low_open: bool, high: str | None, high_open: bool, without: str
) -> list[str]:
    """Return patterns of the texts in an interval, by the order of their code points.

    ``without`` are characters that a value must hold escaped.
    """
    writer = _Texts(without)
    if high is None:
        return writer.above("", low, low_open)
    same = 0
    while same < min(len(low), len(high)) and low[same] == high[same]:
        same += 1
    prefix = writer.plain(low[:same])
    if same == len(high):
        return [prefix]  # both ends are equal and belong to the interval
    patterns = [] if low_open or same < len(low) else [prefix]
    start = 0
    if same < len(low):
        patterns += writer.above(prefix + writer.plain(low[same]), low[same + 1 :], low_open)
        start = ord(low[same]) + 1
    patterns += writer.one(prefix, start, ord(high[same]) - 1)
    return patterns + writer.below(prefix + writer.plain(high[same]), high[same + 1 :], high_open)


class _Texts:
    """Writes patterns of texts in which ``%XX`` stands for a character."""

    def __init__(self, without: str) -> None:
        self.raw = char_sets.complement(char_sets.of_text("/%" + without))
        self.any = f"{self.set_of(char_sets.EVERYTHING)}*"

    def plain(self, text: str) -> str:
        """Return the pattern of a text itself."""
        return "".join(self.set_of(((ord(char), ord(char)),)) for char in text)

    def set_of(self, chars: CharSet) -> str:
        """Return the pattern of one character out of a set, escaped or not."""
        options = []
        raw = char_sets.intersection(chars, self.raw)
        if char_sets.intersection(raw, _WIDE) != _WIDE:
            raw = char_sets.intersection(raw, _NO_HALVES)
        if raw:
            options.append(write(Chars(raw)))
        options += _escapes(char_sets.intersection(chars, ESCAPED))
        if not options:
            return NEVER
        return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"

    def one(self, prefix: str, low: int, high: int) -> list[str]:
        """Return what begins with a prefix and a character in a range of code points."""
        one = self.set_of(((low, high),)) if low <= high else NEVER
        return [] if one == NEVER else [prefix + one + self.any]

    def above(self, prefix: str, low: str, open_end: bool) -> list[str]:
        """Return what begins with a prefix, and is ``low`` or greater behind it."""
        patterns = []
        for char in low:
            patterns += self.one(prefix, ord(char) + 1, char_sets.LAST)
            prefix += self.plain(char)
        more = self.one(prefix, 0, char_sets.LAST)
        return patterns + (more if open_end else [prefix + self.any])

    def below(self, prefix: str, high: str, open_end: bool) -> list[str]:
        """Return what begins with a prefix, and is ``high`` or less behind it."""
        patterns = []
        for char in high:
            patterns.append(prefix)
            patterns += self.one(prefix, 0, ord(char) - 1)
            prefix += self.plain(char)
        return patterns if open_end else [*patterns, prefix]


def _escapes(chars: CharSet) -> list[str]:
    """Return patterns of the escapes of a set of ASCII characters."""
    by_tail: dict[str, str] = {}
    for high in range(8):
        tails = "".join(f"{low:X}" for low in range(16) if char_sets.holds(chars, high * 16 + low))
        if tails:
            by_tail[tails] = by_tail.get(tails, "") + str(high)
    return [f"%{_one_of(heads)}{_one_of(tails)}" for tails, heads in by_tail.items()]


def _one_of(chars: str) -> str:
    return literal(chars) if len(chars) == 1 else write(Chars(char_sets.of_text(chars)))
