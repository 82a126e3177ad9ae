"""Record what Java finds: ``python tests/golden/make_java_finds.py``; needs Java, and no more.

Writes ``tests/unit/model/bucket_rules/java_finds.json``: patterns with the texts that they are
found in, and those that they are not; a pattern with null is one that Java does not compile. Half
of the patterns are written down below, because someone may write them; half are random.
"""

import json
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from support.java_patterns import java_finds, pattern_texts, texts  # noqa: E402

TARGET = HERE.parent / "unit" / "model" / "bucket_rules" / "java_finds.json"

PATTERNS = [
    *(r"\d{4}-(06-(01|17|18)|11-(01|10|11))", r"\d{4}-(11-(24|27)|12-25)", "2026-11", "", "^$"),
    *(
        r"^dt=\d+$",
        r"dt=2026-1[12]-..",
        "(?i)DT=2026",
        r"(?i)[d-t]{2}=\x32",
        "(?i:É)",
        "[a-z&&[^d]]",
    ),
    *(r"\bdt\b", r"\b2026\b", r"\Bt\B", r"\b", r"\B", r"\bé", r"é\b", r"\b\u0301", r"\b中\b"),
    *(".", "^.$", "(?s)^.$", "a$", r"a\Z", r"a\z", "a$\n", "a$\r\n", "(?m)a$", "(?m)^a", "(?m)^"),
    *("(?m)$\n", r"(?m)^\z", "\r$", "\n$", "$\r", "(?m)\r$\n", "(?m)\n^", r"\A\z", r"^(?:$)\Z"),
    *(r"^\w+$", r"^\W+$", r"^\s+$", r"^\S+$", r"^\h+$", r"^\v+$", r"\H", r"\V", r"^\D*$"),
    *(r"^\p{Alpha}+$", r"^\p{Alnum}+$", r"\p{Punct}", r"\P{Graph}", r"^\p{Print}+$", r"\p{Cntrl}"),
    *(r"\p{Blank}", r"^\p{XDigit}+$", r"\p{Lower}", r"\p{Upper}", r"\P{ASCII}", r"\p{Space}"),
    *(r"\Qa.b\E", r"\Q(\E+", r"a\Q", r"\Q\E", r"[\Q]^\E]", r"\x2e", r"\x{2E}", r"\056", r"\0056"),
    *(
        r"\cM",
        r"\e",
        r"\a",
        r"\f",
        r"\uD83D\uDE00",
        "^.😀",
        "^😀+$",
        "[😀-😂]",
        r"[^a]\z",
        r"^[^/]+$",
    ),
    *("[]]", "[]a]", "[^]]", "[a-]", "[-a]", "[--/]", "[a^]", "[&]", "[a&]", "[&&a]", "[a&&&b]"),
    *("[a[b]]", "[a-c&&[b-d]]", "[a-c&&b]", "[^a[b]]", "[a&&[^b]&&[a-z]]", "[[a-c]&&[b]]", "[]"),
    *("a{", "a{1", "a{1,", "a{,1}", "{1}", "a{2,1}", "a{0}b", "a{2}{2}", "a**", "a*+", "a++", "a}"),
    *(
        "(a",
        "a)",
        "(?a)",
        "(?<1>a)",
        "(?<n>a)(?<n>b)",
        "(?<n>a)",
        r"\k<n>",
        r"(a)\1",
        "(?=a)",
        "(?<!a)",
    ),
    *("(?>a)", "(?x) a", "(?u)é", "(?U)\\w", r"\R", r"\X", r"\G", r"\y", "\\", r"\p{L}", r"\pL"),
    *("(a|b)*c", "(a*)*b", "(|a)+b", "(a|)+$", "^(a?){3}$", "^(?:a|ab)(?:c|bcd)$", "^(a|b?)*c$"),
    *("^a{2,3}$", "^a{2,3}?$", "^(ab){1,2}$", "a??b", "^(?:a{1,2}){2}$", r"^(?:\d{2,4}-?)*$"),
    *("(?i)a(?-i)b", "a(?i)b|c", "(a(?i)b)c", "(?i:a)b", "(?is-m)A.", "(?i)[^a]", "(?i)\\p{Lower}"),
    *(
        r"[\d-z]",
        r"[a-\d]",
        r"[\w-]",
        r"[a-\x{63}]",
        r"\é",
        r"\ ",
        r"\-",
        r"\_",
        "[z-a]",
        "^*",
        r"\b+",
    ),
]
TEXTS = [
    *(
        "",
        "a",
        "b",
        "ab",
        "aab",
        "aaa",
        "abc",
        "A",
        "B",
        "aB",
        "AB",
        "c",
        "ac",
        "bcd",
        "abcd",
        "]",
        "&",
    ),
    *(
        "a\n",
        "a\r\n",
        "a\r",
        "a\u2028",
        "\n",
        "\r\n",
        "\r",
        "b\na",
        "\u0085a",
        "a\x85",
        "\t ",
        "\xa0",
    ),
    *("2026-11-01", "2026-06-17", "dt=2026-11-11", "dt=2026", "x/dt=2026/h=1", "2026-12-25", "1x"),
    *(
        "é",
        "É",
        "aé",
        "é a",
        "中",
        "a中b",
        "e\u0301",
        "-\u0301",
        "😀",
        "a😀",
        "😁",
        "_",
        "-",
        "a-b",
        "a.b",
    ),
    *(
        "(",
        "((",
        ".",
        "^",
        "d",
        "D",
        "{",
        "}",
        "a}",
        "\x1b",
        "\x07",
        "\x0c",
        "a b",
        "0",
        "Z9f",
        "12-3456",
    ),
]


def cases() -> list[tuple[str, list[str]]]:
    """Return patterns with texts to look for them in."""
    found = [(pattern, TEXTS) for pattern in PATTERNS]

    @seed(89)
    @settings(max_examples=400, database=None, deadline=None, suppress_health_check=HealthCheck)
    @given(pattern_texts, st.lists(texts, min_size=8, max_size=8, unique=True))
    def collect(pattern: str, given_texts: list[str]) -> None:
        found.append((pattern, given_texts))

    collect()
    return list({pattern: (pattern, texts) for pattern, texts in found}.values())


def main() -> None:
    """Ask Java, and write the answers."""
    asked = cases()
    recorded: dict[str, list[list[str]] | None] = {}
    for (pattern, given_texts), answers in zip(asked, java_finds(asked), strict=True):
        if answers is None:
            recorded[pattern] = None
            continue
        both = list(zip(given_texts, answers, strict=True))
        recorded[pattern] = [
            [text for text, found in both if found is wish] for wish in (True, False)
        ]
    lines = (
        f"{json.dumps(pattern)}: {json.dumps(texts, separators=(',', ':'))}"
        for pattern, texts in recorded.items()
    )
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")


if __name__ == "__main__":
    main()
