"""Patterns of Java in the words of DuckDB: regular expressions, dates, LIKE."""

import re

from lakewright.interfaces.sql.duck_kinds import only_spark

#: A part of a regular expression that means the same in both.
_SAME = re.compile(
    r"\\[dDwW.\\^$|?*+()\[\]{}/_%-]"  # classes, and characters that are escaped
    r"|\[\^?\]?(?:\\[dDwW.\\^$|?*+()\[\]{}/_-]|[^\[\]\\&])+\]"
    r"|\((?:\?:)?(?!\?)|[)|.^]"
    r"|(?:[*+?]|\{\d+(?:,\d*)?\})\??(?![+*?])"
    r"|[^\\\[\](){}*+?|.^$]"
)
_DATE_PARTS = {
    "yyyy": ("%Y", r"\d{4}"),
    "MM": ("%m", r"\d{2}"),
    "dd": ("%d", r"\d{2}"),
    "HH": ("%H", r"\d{2}"),
    "mm": ("%M", r"\d{2}"),
    "ss": ("%S", r"\d{2}"),
    "SSS": ("%g", r"\d{3}"),
    "SSSSSS": ("%f", r"\d{6}"),
    "yy": ("%y", None),
    "d": ("%-d", None),
    "M": ("%-m", None),
    "MMM": ("%b", None),
    "MMMM": ("%B", None),
    "E": ("%a", None),
    "EEE": ("%a", None),
    "EEEE": ("%A", None),
    "hh": ("%I", None),
    "h": ("%-I", None),
    "H": ("%-H", None),
    "a": ("%p", None),
    "D": ("%-j", None),
    "DDD": ("%j", None),
}
_DATE_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z'\[\]{}#]")


def like(pattern: str, escape: str) -> None:
    """Refuse a pattern of LIKE in which something is escaped that needs no escape."""
    rest = re.sub(re.escape(escape) + r"[%_" + re.escape(escape) + "]", "", pattern)
    if escape in rest:
        raise only_spark(
            f"LIKE {pattern!r} (before anything but %, _ and itself {escape!r} escapes nothing)"
        )


def regular(pattern: str, *, ends: bool = False) -> str:
    """Return a regular expression that DuckDB reads as Java does; others are refused.

    With ``ends`` a ``$`` at the end is allowed, which in Java also stands before a last line end.
    """
    body, tail = pattern, ""
    if ends and pattern.endswith("$") and not pattern.endswith("\\$"):
        body, tail = pattern[:-1], r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"
        if "|" in body:
            raise only_spark(f"the pattern {pattern!r}")
    place = 0
    while place < len(body):
        found = _SAME.match(body, place)
        if found is None:
            raise only_spark(f"the pattern {pattern!r}")
        place = found.end()
    # A point stands for any character but the ends of lines, of which Java knows more.
    unescaped = re.sub(r"\\.|\[[^\]]*\]", lambda part: part[0].replace(".", "\0"), body)
    plain = unescaped.replace(".", r"[^\n\r\x{85}\x{2028}\x{2029}]").replace("\0", ".")
    return plain + tail


def may_be_empty(pattern: str) -> bool:
    """Whether a pattern might hold for no character at all."""
    return not pattern or any(sign in pattern for sign in "*?{|^$(")


def replacement(text: str) -> str:
    """Return what a match is replaced by: groups are ``\\1`` and not ``$1``."""
    made, place = "", 0
    for part in re.finditer(r"\\(.)|\$(\d)|\$|\\$", text, re.DOTALL):
        made += text[place : part.start()]
        place = part.end()
        if part[2]:
            made += "\\" + part[2]
        elif part[1]:
            made += "\\\\" if part[1] == "\\" else part[1]
        else:
            raise only_spark(f"the replacement {text!r}")
    return made + text[place:]


def date_format(pattern: str) -> str:
    """Return a date pattern in the words of strftime."""
    return "".join(form for form, _ in _date_parts(pattern))


def date_reading(pattern: str) -> tuple[str, str]:
    """Return a date pattern as strptime has it, and as a regular expression that it holds for."""
    parts = list(_date_parts(pattern))
    if any(shape is None for _, shape in parts):
        raise only_spark(f"reading dates by the pattern {pattern!r}")
    names = [form for form, shape in parts if form.startswith("%") and form != "%%"]
    if "%Y" not in names or "%m" not in names or "%d" not in names or len(set(names)) < len(names):
        raise only_spark(f"reading dates by the pattern {pattern!r}")
    return "".join(form for form, _ in parts), "".join(str(shape) for _, shape in parts)


def _date_parts(pattern: str) -> list[tuple[str, str | None]]:
    parts: list[tuple[str, str | None]] = []
    place = 0
    while place < len(pattern):
        found = _DATE_TOKEN.match(pattern, place)
        if found is None:
            raise only_spark(f"the date pattern {pattern!r}")
        if found[2]:
            if found[0] not in _DATE_PARTS:
                raise only_spark(f"{found[0]!r} in the date pattern {pattern!r}")
            parts.append(_DATE_PARTS[found[0]])
        else:
            plain = found[0]
            if found[1] is not None:
                plain = found[1].replace("''", "'") or "'"
            parts.append((plain.replace("%", "%%"), re.escape(plain)))
        place = found.end()
    return parts
