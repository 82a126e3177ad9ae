"""One error tree: the docstring draws it, every code is its own, facts survive a process border."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakewright.model
from lakewright.model import errors
from lakewright.model.errors import LakewrightError


def tree(kind: type[LakewrightError]) -> Iterator[type[LakewrightError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from tree(below)


KINDS = [kind for kind in tree(LakewrightError) if kind.__module__.startswith("lakewright.")]


def drawn() -> dict[str, str | None]:
    """Read the docstring's tree: each name with the name that it is indented under."""
    parents: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for indent, name in re.findall(r"^( *)\* (\w+)", inspect.getdoc(errors) or "", re.MULTILINE):
        while above and above[-1][0] >= len(indent):
            above.pop()
        parents[name] = above[-1][1] if above else None
        above.append((len(indent), name))
    return parents


def test_the_docstring_draws_the_tree_of_classes() -> None:
    here = [kind for kind in KINDS if kind.__module__ == errors.__name__]
    built = {kind.__name__: kind.__mro__[1].__name__ for kind in here}
    assert drawn() == built | {"LakewrightError": None}


def test_every_error_is_declared_in_one_module() -> None:
    for module in pkgutil.walk_packages(lakewright.model.__path__, "lakewright.model."):
        importlib.import_module(module.name)
    strays = [kind for kind in KINDS if kind.__module__ != errors.__name__]
    assert not strays


def test_every_error_has_its_own_code() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)


def test_a_retry_answer_is_inherited_or_given_on_purpose() -> None:
    assert {kind.__name__ for kind in KINDS if kind.retryable} == {
        "Conflict",
        "SnapshotGone",
        "Unavailable",
    }


def made_without_a_next_step(source: str) -> Iterator[tuple[int, str]]:
    """Where errors are made that tell nobody what to do; damaged bytes tell where they lie."""
    names = {kind.__name__ for kind in KINDS} - {"Corrupt", "LakewrightError"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            given = {keyword.arg for keyword in node.keywords}
            if not given & {"next_step", None}:  # None is **more, which may hold it
                yield node.lineno, node.func.id


def test_every_error_says_what_to_do_next() -> None:
    root = Path(lakewright.model.__path__[0]).parent
    silent = [
        f"{path.relative_to(root)}:{line} {name}"
        for path in sorted(root.rglob("*.py"))
        for line, name in made_without_a_next_step(path.read_text())
    ]
    assert not silent
    assert list(made_without_a_next_step('raise Invalid("It broke.")')) == [(1, "Invalid")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_survives_a_process_border(kind: type[LakewrightError]) -> None:
    error = kind("It broke.", next_step="Mend it.", path="a/b", offset=7)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error) == "It broke. Mend it."
    assert again.facts == {"path": "a/b", "offset": 7}
