"""Pins: partitions that keep another number of buckets than the rules give, as exact patterns."""

import re
from collections.abc import Mapping

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=")
_PATH = r"(?:[A-Za-z0-9_=-]|\\x[0-9a-fA-F]{2}|\\x\{[0-9a-fA-F]{1,6}\})*"
_PIN = re.compile(rf"\\A\(\?:({_PATH}(?:\|{_PATH})*)\)\\z")
_CODE = re.compile(r"\\x(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2}))")


def pin_pattern(partitions: list[str]) -> str:
    r"""Return the pattern that is found in these paths and in no other: ``\A(?:a|b)\z``."""
    return rf"\A(?:{'|'.join(map(_exact, partitions))})\z"


def pinned_by(pattern: str) -> list[str] | None:
    """Return the paths of a pattern that ``pin_pattern`` could have written, else None."""
    found = _PIN.fullmatch(pattern)
    if found is None:
        return None
    return [_CODE.sub(_char, path) for path in found[1].split("|")]


def pin_patterns(pins: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return patterns with their numbers: one for each number, smaller numbers first."""
    by_number: dict[int, list[str]] = {}
    for partition in sorted(pins):
        by_number.setdefault(pins[partition], []).append(partition)
    return [(pin_pattern(by_number[number]), number) for number in sorted(by_number)]


def _exact(partition: str) -> str:
    return "".join(char if char in _PLAIN else _coded(ord(char)) for char in partition)


def _coded(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\x{{{code:x}}}"


def _char(found: re.Match[str]) -> str:
    return chr(int(found[1] or found[2], 16))
