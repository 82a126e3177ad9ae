"""LIKE patterns taken apart."""

from enum import Enum
from typing import TypeAlias


class Wildcard(Enum):
    """What a pattern leaves open."""

    ANY = "%"
    ONE = "_"


Token: TypeAlias = str | Wildcard

_META = frozenset("\\.+*?()[]{}|^$")


def tokens(pattern: str, escape: str) -> tuple[Token, ...]:
    """Split a pattern into plain pieces and wildcards; neighbouring characters are one piece."""
    found: list[Token] = []
    plain: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            plain.append(next(characters, escape))
        elif character in "%_":
            if plain:
                found.append("".join(plain))
                plain.clear()
            found.append(Wildcard(character))
        else:
            plain.append(character)
    if plain:
        found.append("".join(plain))
    return tuple(found)


def prefix(pattern: str, escape: str) -> str:
    """Return the plain text with which every match begins."""
    first = tokens(pattern, escape)[:1]
    return first[0] if first and isinstance(first[0], str) else ""


def regex(pattern: str, escape: str) -> str:
    r"""Return the regular expression of a pattern, for engines that read RE2's syntax.

    ``(?s)`` lets a wildcard match a line break, ``\A`` and ``\z`` anchor to the whole text.
    """
    opened = {Wildcard.ANY: ".*", Wildcard.ONE: "."}
    parts = (
        opened[token] if isinstance(token, Wildcard) else _quoted(token)
        for token in tokens(pattern, escape)
    )
    return rf"(?s)\A{''.join(parts)}\z"


def _quoted(text: str) -> str:
    return "".join("\\" + c if c in _META else c for c in text)
