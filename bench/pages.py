"""Where figures are put: the parts of ``docs/benchmarks.md`` that benchmarks write."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def machine() -> str:
    """Say on what the figures were taken."""
    return (
        f"Machine: {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}, pyarrow {version('pyarrow')}. Seconds hold for that machine "
        "only; ratios travel better."
    )


def put(name: str, text: str, part: str = "") -> None:
    """Put the text of the benchmark ``name``, or of a part of it, into its place on the page."""
    place = f"bench/{name}.py {part}".strip()
    begin, end = f"<!-- {place} begin -->", f"<!-- {place} end -->"
    stored = PAGE.read_text()
    if begin not in stored:
        raise SystemExit(f"{PAGE} has no place for the figures of {place}")
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", stored))
