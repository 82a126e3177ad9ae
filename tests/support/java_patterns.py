"""Random Java patterns, texts they may be found in, and what Java itself says of them.

The alphabets are small, so that patterns are found about as often as not.
"""

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

LITERALS = ["a", "b", "c", "A", "0", "1", "9", "_", "-", "=", "/", " ", ",", ";", "é", "中", "😀"]
ESCAPES = [
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\h", r"\v", r"\t", r"\n", r"\r", r"\.", r"\-"),
    *(r"\x61", r"\x{1F600}", r"\u0061", r"\uD83D\uDE00", r"\0141", r"\cA", r"\,", r"\;", r"\\"),
    *(r"\p{Digit}", r"\p{Alpha}", r"\P{Alnum}", r"\p{Punct}", r"\p{XDigit}", r"\p{Space}"),
    *(r"\Q.a\E", r"\Q[,;\E", r"\é"),
]
ANCHORS = ["^", "$", r"\A", r"\z", r"\Z", r"\b", "(?m)^", "(?m:$)", "(?m:^)"]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0,1}", "{1,2}", "{1,}", "{2,3}?", "{0}"]
CLASSES = [
    *("[abc]", "[^a]", "[a-c]", "[^a-c0-9]", "[a-]", "[-a]", r"[\d_]", r"[^\w]", r"[\-,;]"),
    *("[a[bc]]", "[a-c&&[bc]]", "[a-z&&[^b]]", r"[\Qa-\E]", r"[\x61-\x63]", "[😀a]", "[^😀]"),
    *("[A-Z]", r"[^\n]", "[.$^*]", r"[\p{Digit}a]", "[a-c[0-9]&&[b1]]", "[é-ü]", r"[\]\[]"),
]
CHARS = "abcABz019_-=/ ,;.é中😀\U0001d49c\n\r\x85\u0301\U0001d167"

atoms = st.one_of(
    st.sampled_from(LITERALS),
    st.sampled_from(LITERALS),
    st.sampled_from(ESCAPES),
    st.sampled_from(CLASSES),
    st.just("."),
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.builds(
        "{}{})".format,
        st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?-i:", "(?i)(", "(?<n>"]),
        inner,
    )
    single = st.one_of(atoms, groups)
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.builds("{}{}".format, single, st.sampled_from(QUANTIFIERS)),
        groups,
        st.builds("{}|{}".format, inner, inner),
    )


#: Texts of patterns; some are refused by Java, and some by us alone.
pattern_texts = st.recursive(
    st.one_of(atoms, atoms, atoms, st.sampled_from(ANCHORS), st.just("")), _larger, max_leaves=8
)
texts = st.text(st.sampled_from(CHARS), max_size=8)


def java_finds(cases: Sequence[tuple[str, Sequence[str]]]) -> list[list[bool] | None]:
    """Ask the Java of this machine which texts each pattern is found in; None: not compiled."""
    lines = [" ".join(map(_coded, (pattern, *texts))) for pattern, texts in cases]
    source = Path(__file__).with_name("JavaFinds.java")
    answer = subprocess.run(
        ["java", str(source)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(answer) == len(cases)
    return [None if line == "x" else [digit == "1" for digit in line] for line in answer]


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
