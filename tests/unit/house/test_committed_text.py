"""What is committed speaks of the project alone: no machine, no registry, no workplace."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# Written in pieces, so that this file does not refuse itself.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.~/{}-])/(?:wor" r"k|roo" r"t|home/\w+|tmp/f" r"x)/",
    "a registry's address": r"(?:pyp"
    r"i\.org|pythonho"
    r"sted|mav"
    r"en\.org|mave"
    r"n\.apache"
    r"|npm"
    r"js\.|dock"
    r"er\.io|gh"
    r"cr\.io|quay"
    r"\.io)",
    "a private index": r"--(?:extra-)?index" r"-url(?<!no-emit-index" r"-url)",
}


def committed() -> list[Path]:
    answer = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in answer.stdout.split("\0") if name]


@pytest.mark.parametrize("sense", FORBIDDEN)
def test_committed_files_hold_none_of(sense: str) -> None:
    pattern = re.compile(FORBIDDEN[sense])
    found = []
    for path in committed():
        if path.is_file() and path != Path(__file__):
            text = path.read_bytes().decode("utf-8", "replace")
            found += [
                f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}"
                for hit in pattern.finditer(text)
            ]
    assert not found


@pytest.mark.parametrize(
    ("sense", "text"),
    [
        ("a path of one machine", "see /" + "root/notes"),
        ("a path of one machine", "open('/" + "work/x')"),
        ("a registry's address", "https://" + "pyp" + "i.org/simple"),
        ("a private index", "--index" + "-url https://x"),
    ],
)
def test_the_patterns_bite(sense: str, text: str) -> None:
    assert re.search(FORBIDDEN[sense], text)


def test_requirements_are_pinned_and_hashed() -> None:
    for name in ("dev", "interop"):
        lines = (ROOT / f"requirements/{name}.txt").read_text().splitlines()
        entries = [line for line in lines if line and not line.startswith(("#", " "))]
        assert entries
        assert all(re.match(r"[a-z0-9._\[\],-]+==\S+.*\\$", line) for line in entries)
