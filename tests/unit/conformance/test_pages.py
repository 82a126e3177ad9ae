"""What the conformance pages name exists: the objects, and the tests that show them."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs" / "conformance").glob("*.md"))
ROW = re.compile(r"^\| (?P<theirs>.+?) \| (?P<ours>.+?) \| (?P<test>.+?) \|$", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")
HEADS = {"specification", "---"}


def rows(page: Path) -> list[tuple[str, str, str]]:
    found = [m.group("theirs", "ours", "test") for m in ROW.finditer(page.read_text())]
    return [row for row in found if row[0] not in HEADS]


def resolve(name: str) -> object:
    """Import the longest prefix that is a module, and follow the attributes after it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            value = getattr(value, attribute)
        return value
    raise AttributeError(name)


def functions_in(path: Path) -> set[str]:
    return {n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_what_exists(page: Path) -> None:
    named = rows(page)
    assert len(named) > 10
    for theirs, ours, test in named:
        for name in QUOTED.findall(ours):
            resolve(name)
        for node in QUOTED.findall(test):
            file, _, function = node.partition("::")
            assert function in functions_in(ROOT / file), f"{theirs}: no test {node}"
        shown = test != "–" or ours in ("*table services*", "Arrow, always")  # noqa: RUF001
        assert shown, f"{theirs} is shown by nothing"


def test_an_invented_name_is_found_out() -> None:
    with pytest.raises(AttributeError):
        resolve("lakewright.model.table.TableIdentity")
