"""Bucket rules as texts: the JSON of tables' options, and the text that shipped Hudi splits."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from lakewright.model.bucket_rules.compiled import check_number, rule_of
from lakewright.model.bucket_rules.pattern_text import abridged, divides
from lakewright.model.bucket_rules.pins import pin_patterns, pinned_by
from lakewright.model.bucket_rules.rules import DEFAULT_BUCKETS, BucketRule, BucketRules
from lakewright.model.errors import Invalid

#: Found in every path; the pattern of the rule that carries the default.
EVERYWHERE = "\\A"

#: What Java's trim takes away, and the whole numbers that it reads.
_TRIMMED = "".join(map(chr, range(0x21)))
_COUNT = re.compile(r"[+-]?[0-9]{1,10}")

_FORMS = (
    'Give a number, JSON such as {"expressions": [{"expression": "2026-11-.*", "bucketNumber": '
    '64, "rule": "regex"}], "defaultBucketNumber": 8}, or the text pattern,count;pattern,count.'
)


def parse_rules(given: str | int | Mapping[str, object], default: int | None = None) -> BucketRules:
    """Return the rules that a user gave: JSON as text or mapping, ``pattern,count;…``, or a number.

    ``default`` is the number for all other partitions where the text does not say it; the text
    of a hashing config says it by its last rule, which matches everything.
    Raises ``Invalid`` for what cannot be read and for numbers that are none of buckets;
    ``check_rules`` looks at the patterns.
    """
    if isinstance(given, int):
        return BucketRules(default=check_number(given, "all partitions"))
    rest = DEFAULT_BUCKETS if default is None else check_number(default, "the default")
    if isinstance(given, Mapping):
        return _from_mapping(given, rest)
    if not isinstance(given, str):
        _refuse(given, f"a {type(given).__name__} holds no rules")
    text = given.strip()
    if text.startswith("{"):
        return _from_mapping(_from_json(text), rest)
    if text.isascii() and text.isdigit():
        return BucketRules(default=check_number(int(text), "all partitions"))
    if not text.strip(";"):
        _refuse(given, "it is empty")
    pairs = _split(text)
    if pairs[-1][0] == EVERYWHERE and default in (None, pairs[-1][1]):
        rest = check_number(pairs.pop()[1], "the default")
    rules = tuple(
        BucketRule(pattern, check_number(count, f"the rule {abridged(pattern)}"))
        for pattern, count in pairs
    )
    return BucketRules(rules, rest)


def rules_json(rules: BucketRules) -> str:
    """Return rules as the JSON that ``parse_rules`` reads, indented."""
    expressions = [
        {"expression": rule.expression, "bucketNumber": rule.buckets, "rule": rule.kind}
        for rule in rules.rules
    ]
    return json.dumps(
        {"expressions": expressions, "defaultBucketNumber": rules.default},
        indent=2,
        ensure_ascii=False,
    )


def shipped_text(rules: BucketRules, pins: Mapping[str, int]) -> str:
    """Return rules as shipped Hudi reads them, with exact patterns for ``pins`` in front.

    Hudi splits the text at ``;`` and ``,`` and finds in every path the same number as we do.
    The last rule matches everything and gives the default: Hudi keeps what it made of a text for
    all tables of a process, with the default that it saw first.
    """
    pairs = pin_patterns(pins)
    for rule in rules.rules:
        pattern = rule_of(rule).pattern()
        if divides(pattern):
            raise Invalid(
                f"The rule {abridged(rule.expression)} of kind {rule.kind!r} gives the pattern "
                f"{abridged(pattern)}, which Hudi would split at its comma or semicolon.",
                next_step="A kind of rule must write them as \\x2c and \\x3b.",
                kind=rule.kind,
            )
        pairs.append((pattern, rule.buckets))
    pairs.append((EVERYWHERE, rules.default))
    return ";".join(f"{pattern},{number}" for pattern, number in pairs)


def parse_shipped(text: str, default: int) -> tuple[BucketRules, dict[str, int]]:
    """Return the rules of a hashing config, and the pins that stand in front of them.

    A last rule for everything that gives the default is left out, as it is no user's. Nothing but
    the form is checked: what a table has must be read as it is.
    """
    pins: dict[str, int] = {}
    rules: list[BucketRule] = []
    pairs = _split(text)
    if pairs and pairs[-1] == (EVERYWHERE, default):
        pairs.pop()
    for pattern, number in pairs:
        pinned = None if rules else pinned_by(pattern)
        if pinned is None:
            rules.append(BucketRule(pattern, number))
        else:
            for partition in pinned:
                pins.setdefault(partition, number)
    return BucketRules(tuple(rules), default), pins


def _split(text: str) -> list[tuple[str, int]]:
    """Split a text at ``;`` and ``,`` as Hudi does."""
    pairs = []
    pieces = text.split(";")
    while pieces and not pieces[-1]:
        pieces.pop()
    for piece in pieces:
        parts = piece.strip(_TRIMMED).split(",")
        while not parts[-1] and len(parts) > 2:
            parts.pop()
        if len(parts) != 2:
            _refuse(
                text,
                f"{abridged(piece.strip())} is not one pattern and one number divided by a comma "
                "(patterns with , or ; must be given as JSON)",
            )
        pattern, count = (part.strip(_TRIMMED) for part in parts)
        if not _COUNT.fullmatch(count):
            _refuse(text, f"{count!r} of {abridged(piece.strip())} is no number of buckets")
        pairs.append((pattern, int(count)))
    return pairs


def _from_json(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        _refuse(text, f"it is no JSON: {error}", error)
    if not isinstance(found, dict):
        _refuse(text, "it is no JSON object")
    return found


def _from_mapping(given: Mapping[str, object], default: int) -> BucketRules:
    _only(given, given, "expressions", "defaultBucketNumber")
    entries = given.get("expressions") or ()
    if isinstance(entries, str | Mapping) or not isinstance(entries, Sequence):
        _refuse(given, "expressions is no list")
    rules = tuple(_rule(entry, given) for entry in entries)
    number = given.get("defaultBucketNumber")
    return BucketRules(rules, default if number is None else check_number(number, "the default"))


def _rule(entry: object, given: object) -> BucketRule:
    if not isinstance(entry, Mapping):
        _refuse(given, f"{entry!r} is no rule")
    _only(entry, given, "expression", "bucketNumber", "rule")
    expression, kind = entry.get("expression"), entry.get("rule", "regex")
    if not isinstance(expression, str) or not isinstance(kind, str):
        _refuse(given, f"{dict(entry)!r} lacks the text of its expression or of its rule")
    number = check_number(entry.get("bucketNumber"), f"the rule {abridged(expression)}")
    return BucketRule(expression, number, kind.strip().lower())


def _only(entry: Mapping[str, object], given: object, *allowed: str) -> None:
    unknown = sorted(str(key) for key in entry if key not in allowed)
    if unknown:
        _refuse(given, f"{', '.join(unknown)} is not known; {', '.join(allowed)} are")


def _refuse(given: object, why: str, cause: BaseException | None = None) -> NoReturn:
    raise Invalid(
        f"The bucket rules {abridged(str(given))} cannot be read: {why}.",
        next_step=_FORMS,
        given=given,
    ) from cause
