"""The committed reference pages are what the source declares today."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_reference_pages_are_up_to_date() -> None:
    answer = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_page_of_the_site_exists_and_is_listed() -> None:
    listed = [
        line.split(": ", 1)[1].strip()
        for line in (ROOT / "mkdocs.yml").read_text().splitlines()
        if line.lstrip().startswith("- ") and line.rstrip().endswith(".md")
    ]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(pages)
