"""Fuzz targets: the texts of bucket rules, and the patterns and intervals in them."""

from collections.abc import Callable

from lakewright.model.bucket_rules.compiled import check_rules, compile_rules
from lakewright.model.bucket_rules.java_pattern import JavaPattern
from lakewright.model.bucket_rules.pattern_text import write
from lakewright.model.bucket_rules.range_rule import RangeRule
from lakewright.model.bucket_rules.text import parse_rules, parse_shipped, shipped_text

PATHS = ("", "dt=2026-11-01", "eu/dt=2026-11-01/h=5", "aaaaaaaaaaaaaaaaaaaaaaaa!", "é\r\n")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def given_rules(data: bytes) -> None:
    rules = parse_rules(_text(data))
    check_rules(rules, partitions=PATHS)
    numbers = compile_rules(rules)
    again, pins = parse_shipped(shipped_text(rules, {"x": 5}), rules.default)
    theirs = compile_rules(again)
    for path in PATHS:
        assert pins.get(path, theirs(path)) == numbers(path)


def shipped_rules(data: bytes) -> None:
    rules, _ = parse_shipped(_text(data), 8)
    numbers = compile_rules(rules)
    for path in PATHS:
        numbers(path)


def java_pattern(data: bytes) -> None:
    pattern = JavaPattern(_text(data))
    again = JavaPattern(write(pattern.tree))
    for path in PATHS:
        assert again.find(path) is pattern.find(path)


def range_rule(data: bytes) -> None:
    rule = RangeRule(_text(data))
    pattern = JavaPattern(rule.pattern())
    for path in PATHS:
        assert pattern.find(path) is rule.matches(path)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "bucket_rules": given_rules,
    "shipped_rules": shipped_rules,
    "java_pattern": java_pattern,
    "range_rule": range_rule,
}

SEEDS: dict[str, list[bytes]] = {
    "bucket_rules": [
        rb'{"expressions":[{"expression":"\\d{4}-(06-(01|17)|11-01)","bucketNumber":256,'
        rb'"rule":"regex"},{"expression":"dt: [2026-11-01, 2026-12-01)","bucketNumber":9,'
        rb'"rule":"range"}],"defaultBucketNumber":10}',
        rb"\d{4}-(11-(24|27)|12-25),128;x+,3",
        b"16",
    ],
    "shipped_rules": [rb"\A(?:dt=1|a\x2fb)\z,4;\d{4}-(11-(24|27)),128;(?i)x{2}[^a-c],3;\A,8"],
    "java_pattern": [
        rb"^(?:a|b{2,3})*?[^\w,;]$",
        rb"(?i)\Qa.\E\x41\u0041\b(?<n>[a-z&&[^c]])|\p{Alpha}+",
        rb"(?m)^dt=\d{4}-.*$",
    ],
    "range_rule": [
        b"dt: [2026-11-01, 2026-12-01)",
        b"(-inf, 5]",
        b'level 2: ["a", "b""c")',
        b"[2026-01, inf)",
    ],
}
