"""The shape of the source: sizes, names, what the package loads, what it says in public."""

import ast
import subprocess
import sys
from pathlib import Path

import lakewright

ROOT = Path(__file__).parents[3]
MODULES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_MODULE = 600
LONGEST_CONFTEST = 300
ROOMS_OF_NOBODY = {"util", "utils", "common", "helper", "helpers", "core", "misc"}
HEAVY = ("pyarrow", "pandas", "polars", "pyspark", "py4j", "duckdb", "numpy", "fastavro", "sqlglot")


def test_no_module_is_long_without_saying_why() -> None:
    too_long = []
    for path in MODULES:
        text = path.read_text()
        lines = text.count("\n")
        if lines > LONGEST_MODULE and "lines because" not in (
            ast.get_docstring(ast.parse(text)) or ""
        ):
            too_long.append(f"{path.relative_to(ROOT)}: {lines} lines")
    assert not too_long, "split these, or let the docstring say '… lines because …'"


def test_no_conftest_is_long() -> None:
    sizes = {path: path.read_text().count("\n") for path in (ROOT / "tests").rglob("conftest.py")}
    assert sizes
    assert not [path for path, lines in sizes.items() if lines > LONGEST_CONFTEST]


def test_no_room_is_for_everything_and_nothing() -> None:
    names = {part for path in MODULES for part in path.relative_to(ROOT).with_suffix("").parts}
    assert not names & ROOMS_OF_NOBODY


def test_every_module_and_package_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert not silent


def test_the_public_face_is_the_list() -> None:
    listed = (ROOT / "docs/reference/face.txt").read_text().split()
    assert listed == sorted(listed), "docs/reference/face.txt is sorted"
    assert sorted(lakewright.__all__) == listed, "a change of the face is a line in face.txt"


def test_every_public_name_can_be_had() -> None:
    for name in lakewright.__all__:
        assert getattr(lakewright, name).__doc__, f"{name} has no docstring"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import lakewright, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
