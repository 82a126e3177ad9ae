"""Reads the text of a Java pattern; what could mean something else to Java is refused.

Supported are literals, classes with ranges, negation, unions and intersections, the escapes and
ASCII classes of Java, quotes, anchors, groups of every name, choices, greedy and reluctant
quantifiers, and the flags ``i``, ``m`` and ``s``. Not supported, and refused by name, are
back references, look-around, atomic groups, possessive quantifiers, classes that depend on the
release of Unicode, and texts that releases of Java read differently.
"""

from dataclasses import dataclass
from typing import NoReturn

from lakewright.model.bucket_rules import char_sets
from lakewright.model.bucket_rules.char_sets import CharSet
from lakewright.model.bucket_rules.pattern_text import abridged
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
    size,
)
from lakewright.model.errors import InvalidExpression

#: Java counts repetitions in 32 bits.
MOST_REPEATS = 2**31 - 1
DEEPEST = 100
#: With every repetition written out; more would cost memory on each machine that reads rules.
LARGEST = 20_000

_HEX = frozenset("0123456789abcdefABCDEF")
_REFERENCES = tuple("123456789")
_PLAIN = {"t": 0x09, "n": 0x0A, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B}
_LOOKS = {"(?=": "look-ahead", "(?!": "look-ahead", "(?<=": "look-behind", "(?<!": "look-behind"}
_CONTEXT = (
    "Write what the path must hold instead; the first rule that matches decides, so that a rule "
    "for the exceptions can stand in front."
)


@dataclass(frozen=True, slots=True)
class Flags:
    """What ``(?ims)`` has switched on."""

    ignore_case: bool = False
    lines: bool = False
    dot_all: bool = False


def parse(text: str) -> Node:
    """Return the tree of a pattern; raise ``InvalidExpression`` where Java would fail or differ."""
    return _Parser(text).whole()


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.quoted = False
        self.flags = Flags()
        self.names: set[str] = set()

    # The parts of a pattern

    def whole(self) -> Node:
        node = self.choice()
        if self.at < len(self.text):
            self.fail("a ) closes nothing", "Write \\) for the character.")
        if size(node) > LARGEST:
            self.fail(
                f"its repetitions come to more than {LARGEST} characters",
                "Use smaller counts in { }, or * and +.",
            )
        return node

    def choice(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"groups are nested deeper than {DEEPEST}", "Write a flatter pattern.")
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        self.depth -= 1
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.text) or self.quoted:
            if not self.quoted and self.text[self.at] in "|)":
                break
            node = self.atom()
            if node is not None:
                parts.append(self.repeated(node))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def atom(self) -> Node | None:
        """Return the next thing that a quantifier can follow; None where there was none."""
        if self.quoted:
            return self.quote()
        char = self.text[self.at]
        if char == "\\":
            return self.escape()
        self.at += 1
        if char in "*+?{":
            self.fail(f"{char} repeats nothing", f"Write \\{char} for the character.")
        match char:
            case "(":
                return self.group()
            case "[":
                return Chars(self.whole_class())
            case ".":
                chars = char_sets.complement(char_sets.TERMINATORS)
                return Chars(char_sets.EVERYTHING if self.flags.dot_all else chars)
            case "^":
                return Assertion(Place.LINE_START if self.flags.lines else Place.START)
            case "$":
                return Assertion(Place.LINE_END if self.flags.lines else Place.TAIL)
            case _:
                return self.literal(ord(char))

    def repeated(self, node: Node) -> Node:
        """Return the node with the quantifier that follows it, if one does."""
        if self.quoted or self.peek() not in ("*", "+", "?", "{"):
            return node
        if isinstance(node, Assertion):
            self.fail("an anchor is repeated", "Take the quantifier away.")
        char = self.text[self.at]
        self.at += 1
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (0, 0)}[char]
        if char == "{":
            least, most = self.bounds()
        if self.take("+"):
            self.fail(
                "possessive quantifiers (a second +) keep what they took, which no automaton can",
                "Leave out the second +.",
            )
        self.take("?")
        if self.peek() in ("*", "+", "?", "{"):
            self.fail("a quantifier follows a quantifier", "Put the first into a group, (?: ).")
        if least > 1 and can_be_empty(node) and not always_empty(node):
            self.fail(
                "what is empty only at an anchor is repeated, which Java ends early",
                "Take the anchor out of the group.",
            )
        return Repeat(node, least, most)

    def bounds(self) -> tuple[int, int | None]:
        """Read the rest of ``{n}``, ``{n,}`` or ``{n,m}``."""
        least = self.number()
        most: int | None = least
        if self.take(","):
            most = None if self.peek() == "}" else self.number()
        if not self.take("}"):
            self.fail("a { is not closed by }", "Write \\{ for the character.")
        if most is not None and most < least:
            self.fail(f"{{{least},{most}}} ends before it begins", "Turn the two numbers round.")
        return least, most

    def number(self) -> int:
        start = self.at
        while self.peek() and self.peek() in "0123456789":
            self.at += 1
        digits = self.text[start : self.at]
        if not digits or len(digits) > 10 or int(digits) > MOST_REPEATS:
            self.fail(
                "a { must be followed by a number",
                "Write \\{ for the character, or {n}, {n,} or {n,m} to repeat.",
            )
        return int(digits)

    def quote(self) -> Node | None:
        """Read one character between ``\\Q`` and ``\\E``, of which the second may be missing."""
        if self.at >= len(self.text) or self.text.startswith("\\E", self.at):
            self.at += 2
            self.quoted = False
            return None
        self.at += 1
        literal = self.literal(ord(self.text[self.at - 1]))
        if self.text.startswith("\\E", self.at) or self.at == len(self.text):
            self.at += 2
            self.quoted = False
        return literal

    def literal(self, code: int) -> Node:
        return Chars(self.in_case(self.whole_character(((code, code),))))

    # Groups

    def group(self) -> Node | None:
        """Read what follows an opening bracket; None where it only sets flags."""
        outer = self.flags
        if self.peek() == "?":
            start = self.at - 1
            for opening, what in _LOOKS.items():
                if self.text.startswith(opening, start):
                    self.fail(f"it uses {what}, {opening}…)", _CONTEXT)
            if self.text.startswith("(?>", start):
                self.fail("it uses an atomic group, (?>…)", "Write (?:…).")
            self.at += 1
            if self.take("<"):
                self.group_name()
            elif not self.take(":") and not self.group_flags():
                return None
        node = self.choice()
        if not self.take(")"):
            self.fail("a ( is not closed", "Add the ), or write \\( for the character.")
        self.flags = outer
        return node

    def group_name(self) -> None:
        end = self.text.find(">", self.at)
        name = self.text[self.at : end] if end > 0 else ""
        if not (name.isascii() and name.isalnum() and name[0].isalpha()) or name in self.names:
            self.fail(
                f"the group name {name!r} is not allowed",
                "Names are ASCII letters and digits, begin with a letter, and occur once.",
            )
        self.names.add(name)
        self.at = end + 1

    def group_flags(self) -> bool:
        """Read ``i-ms`` with its ``:`` or ``)``; say whether a group follows."""
        values = {"i": self.flags.ignore_case, "m": self.flags.lines, "s": self.flags.dot_all}
        on = True
        while self.peek() not in (":", ")"):
            char = self.peek()
            if char == "-" and on:
                on = False
            elif char in values and char:
                values[char] = on
            else:
                self.fail(
                    f"the flag {char!r} after (? is not supported",
                    "The flags i, m and s are; write other patterns without flags.",
                )
            self.at += 1
        self.flags = Flags(values["i"], values["m"], values["s"])
        self.at += 1
        return self.text[self.at - 1] == ":"

    # Escapes

    def escape(self) -> Node | None:
        """Read a backslash and what belongs to it, outside of a class."""
        letter = self.text[self.at + 1 : self.at + 2]
        places = {
            "A": Place.START,
            "z": Place.END,
            "Z": Place.TAIL,
            "b": Place.WORD_EDGE,
        }
        if letter in places and letter:
            self.at += 2
            if letter == "b" and self.peek() == "{":
                self.fail("\\b{…} is not supported", "Write \\b.")
            return Assertion(places[letter])
        if letter == "B":
            self.fail(
                "Java finds \\B within characters beyond U+FFFF", "Write the characters around it."
            )
        if letter == "Q":
            self.at += 2
            self.quoted = True
            return None
        if letter == "k" or letter in _REFERENCES:
            self.fail(f"it uses a back reference, \\{letter}", "Write the alternatives out.")
        found = self.escaped()
        return self.literal(found) if isinstance(found, int) else Chars(found)

    def escaped(self) -> int | CharSet:
        """Read an escape that stands for a character, or for a class of them."""
        self.at += 1
        letter = self.peek()
        if not letter:
            self.fail("it ends in a backslash", "Write \\\\ for the character.")
        self.at += 1
        if letter in _PLAIN:
            return _PLAIN[letter]
        if letter.lower() in char_sets.ESCAPED and letter.isascii():
            chars = char_sets.ESCAPED[letter.lower()]
            return chars if letter.islower() else char_sets.complement(chars)
        match letter:
            case "x":
                return self.hexadecimal()
            case "u":
                return self.unicode()
            case "0":
                return self.octal()
            case "c":
                return self.control()
            case "p" | "P":
                chars = self.property_class()
                return chars if letter == "p" else char_sets.complement(chars)
            case _:
                return self.escaped_itself(letter)

    def escaped_itself(self, letter: str) -> int:
        if letter.isascii() and letter.isalnum():
            self.fail(
                f"the escape \\{letter} is not supported",
                "Letters need no backslash; the escapes of ASCII classes and anchors are known.",
            )
        return ord(letter)

    def hexadecimal(self) -> int:
        if self.take("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at : end] if end > 0 else ""
            self.at = end + 1
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            digits = digits if len(digits) == 2 else ""
        if not digits or len(digits) > 8 or not _HEX.issuperset(digits):
            self.fail("\\x needs two hexadecimal digits", "Write \\xHH or \\x{H…H}.")
        if int(digits, 16) > char_sets.LAST:
            self.fail(f"\\x{{{digits}}} is no character", "The last one is \\x{10FFFF}.")
        return int(digits, 16)

    def unicode(self) -> int:
        code = self.four_digits()
        if 0xD800 <= code <= 0xDBFF and self.text.startswith("\\u", self.at):
            back = self.at
            self.at += 2
            low = self.four_digits()
            if 0xDC00 <= low <= 0xDFFF:
                return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            self.at = back
        return code

    def four_digits(self) -> int:
        digits = self.text[self.at : self.at + 4]
        if len(digits) < 4 or not _HEX.issuperset(digits):
            self.fail("\\u needs four hexadecimal digits", "Write \\uHHHH.")
        self.at += 4
        return int(digits, 16)

    def octal(self) -> int:
        digits = ""
        while len(digits) < (3 if digits[:1] in ("0", "1", "2", "3") else 2):
            char = self.peek()
            if not char or char not in "01234567":
                break
            digits += char
            self.at += 1
        if not digits:
            self.fail("\\0 needs octal digits", "Write \\xHH.")
        return int(digits, 8)

    def control(self) -> int:
        char = self.peek()
        if not char or not char.isascii() or char == "\\":
            self.fail("\\c needs an ASCII character", "Write \\xHH.")
        self.at += 1
        return ord(char) ^ 64

    def property_class(self) -> CharSet:
        """Read the name after ``\\p``."""
        name = self.peek()
        if self.take("{"):
            end = self.text.find("}", self.at)
            name = self.text[self.at : end] if end > 0 else ""
            self.at = end + 1
        else:
            self.at += 1
        if name not in char_sets.PROPERTIES:
            self.fail(
                f"the class \\p{{{name}}} is not supported",
                f"These are: {', '.join(char_sets.PROPERTIES)}; write other classes as ranges.",
            )
        if self.flags.ignore_case and name in ("Lower", "Upper"):
            self.fail(
                f"\\p{{{name}}} after (?i) differs between releases of Java", "Write \\p{Alpha}."
            )
        return char_sets.PROPERTIES[name]

    # Classes

    def whole_class(self) -> CharSet:
        """Read a class after its opening bracket, and check that it splits no character."""
        return self.whole_character(self.char_class())

    def char_class(self) -> CharSet:
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"classes are nested deeper than {DEEPEST}", "Write a flatter pattern.")
        negated = self.take("^")
        first = self.class_union(negated)
        while self.take("&&"):
            if negated:
                self.fail(
                    "[^…&&…] differs between releases of Java", "Write [^…] inside another [ ]."
                )
            if not self.take("["):
                self.fail("&& is not followed by [", "Write […&&[…]].")
            first = char_sets.intersection(first, self.char_class())
            if self.peek() != "]" and not self.text.startswith("&&", self.at):
                self.fail("more follows a class after &&", "Write […&&[…]].")
        if not self.take("]"):
            self.fail("a [ is not closed", "Add the ], or write \\[ for the character.")
        self.depth -= 1
        return char_sets.complement(first) if negated else first

    def class_union(self, negated: bool) -> CharSet:
        """Read the ranges, characters and nested classes up to ``]`` or ``&&``."""
        ranges: list[tuple[int, int]] = []
        begun = False
        while True:
            char = self.peek()
            if not char:
                self.fail("a [ is not closed", "Add the ], or write \\[ for the character.")
            if not self.quoted:
                if char == "]" or self.text.startswith("&&", self.at):
                    break
                if char == "[":
                    if negated:
                        self.fail(
                            "a class inside [^…] differs between releases of Java",
                            "Write its ranges without the inner brackets.",
                        )
                    self.at += 1
                    ranges.extend(self.char_class())
                    begun = True
                    continue
                if self.text.startswith("\\Q", self.at):
                    self.at += 2
                    self.quoted = True
                    continue
            if self.quoted and self.text.startswith("\\E", self.at):
                self.at += 2
                self.quoted = False
                continue
            ranges.extend(self.class_part())
            begun = True
        if not begun:
            self.fail("a class is empty", "Write \\] for the character ] and \\& for &.")
        return char_sets.union(ranges)

    def class_part(self) -> CharSet:
        """Read one character, range or escaped class inside a class."""
        low = self.class_char()
        if isinstance(low, tuple):
            if self.peek() == "-" and not self.quoted and not self.ends_after_dash():
                self.fail("a class begins a range", "Write \\- for the character.")
            return low
        if self.text.startswith("\\E-", self.at):
            self.fail("a quote begins a range", "Put the - first in the class.")
        if self.quoted or self.peek() != "-" or self.ends_after_dash():
            return self.in_case(((low, low),))
        self.at += 1
        if self.text.startswith(("\\Q", "\\E", "&&"), self.at):
            self.fail("a range ends in nothing", "Write \\- for the character.")
        high = self.class_char()
        if isinstance(high, tuple) or high < low:
            self.fail(
                f"the range from {chr(low)!r} ends before it begins, or in a class",
                "Write \\- for the character.",
            )
        return self.in_case(((low, high),))

    def ends_after_dash(self) -> bool:
        return self.text[self.at + 1 : self.at + 2] in ("]", "[", "")

    def class_char(self) -> int | CharSet:
        if self.peek() == "\\" and not self.quoted:
            letter = self.text[self.at + 1 : self.at + 2]
            if letter in ("b", "B", "k") or letter in _REFERENCES:
                self.fail(f"\\{letter} stands inside a class", "Write \\xHH for the character.")
            return self.escaped()
        self.at += 1
        return ord(self.text[self.at - 1])

    # Helps

    def in_case(self, chars: CharSet) -> CharSet:
        return char_sets.without_case(chars) if self.flags.ignore_case else chars

    def whole_character(self, chars: CharSet) -> CharSet:
        """Refuse halves of characters, which Java finds inside of characters beyond U+FFFF."""
        if not chars or chars[-1][1] < char_sets.SURROGATES[0][0]:
            return chars
        halves = char_sets.intersection(chars, char_sets.SURROGATES)
        wide = char_sets.union(char_sets.SURROGATES + char_sets.ASTRAL)
        if halves and char_sets.intersection(chars, wide) != wide:
            self.fail(
                "it parts characters beyond U+FFFF from U+D800 to U+DFFF, which are their halves",
                "End ranges at \\uD7FF, begin the next at \\uE000, and name no character beyond "
                "\\uFFFF in [^…].",
            )
        return chars

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, text: str) -> bool:
        found = self.text.startswith(text, self.at)
        if found:
            self.at += len(text)
        return found

    def fail(self, why: str, next_step: str) -> NoReturn:
        at = min(self.at, len(self.text))
        raise InvalidExpression(
            f"The pattern {abridged(self.text)} cannot be used: {why} (near character {at}).",
            next_step=next_step,
            pattern=self.text,
            at=at,
        )
