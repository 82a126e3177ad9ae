"""Each import contract is broken once on purpose, in a copy of the package, and must bite."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINTER = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One forbidden line: what it is, where it goes, and which contract must refuse it."""

    sense: str
    contract: str
    module: str
    line: str
    also: tuple[tuple[str, str], ...] = ()
    """Further modules (with their text) that the line needs to exist."""


MUTATIONS = [
    Mutation(
        "an upward import at the top",
        "rooms",
        "lakewright.storage.zz_mutant",
        "import lakewright.table",
    ),
    Mutation(
        "an upward import inside a function",
        "rooms",
        "lakewright.format.hudi.zz_mutant",
        "def late():\n    from lakewright import actions\n    return actions",
    ),
    Mutation(
        "an upward import for types only",
        "rooms",
        "lakewright.timeline.zz_mutant",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lakewright.engine",
    ),
    Mutation(
        "a room that nobody named",
        "rooms",
        "lakewright.utils",
        "x = 1",
    ),
    Mutation(
        "two modules of one room importing each other",
        "no-sibling-cycles",
        "lakewright.model.zz_mutant",
        "import lakewright.model.zz_partner",
        (("lakewright.model.zz_partner", "import lakewright.model.zz_mutant"),),
    ),
    Mutation(
        "one format importing another",
        "formats-apart",
        "lakewright.format.paimon.zz_mutant",
        "import lakewright.format.hudi",
    ),
    Mutation(
        "arrow conversions knowing a table format",
        "formats-apart",
        "lakewright.format.arrow.zz_mutant",
        "import lakewright.format.hudi",
    ),
    Mutation(
        "one engine importing another",
        "engines-apart",
        "lakewright.engine.local.zz_mutant",
        "import lakewright.engine.spark",
    ),
    Mutation(
        "one interface importing another",
        "interfaces-apart",
        "lakewright.interfaces.cli.zz_mutant",
        "import lakewright.interfaces.spark_source",
    ),
    Mutation(
        "statements knowing who opens the lake",
        "interfaces-apart",
        "lakewright.interfaces.sql.zz_mutant",
        "import lakewright.interfaces.entry",
    ),
    Mutation(
        "pyspark outside its room",
        "spark-one-room",
        "lakewright.actions.zz_mutant",
        "import pyspark.sql",
    ),
    Mutation(
        "pyspark in the user's face, for types only",
        "spark-one-room",
        "lakewright.api.zz_mutant",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyspark.sql",
    ),
    Mutation(
        "py4j outside its room",
        "spark-one-room",
        "lakewright.engine.local.zz_mutant",
        "import py4j",
    ),
    Mutation(
        "lifecycle reaching an engine",
        "no-engine-unasked",
        "lakewright.lifecycle.zz_mutant",
        "import lakewright.engine.local",
    ),
    Mutation(
        "the metastore reaching an engine through a third module",
        "no-engine-unasked",
        "lakewright.metastore.zz_mutant",
        "import lakewright.actions.zz_bridge",
        (("lakewright.actions.zz_bridge", "import lakewright.engine"),),
    ),
    Mutation(
        "our own code importing the shim that Spark looks for",
        "source-shim-is-thin",
        "lakewright.interfaces.spark_source.zz_mutant",
        "import pyspark_lakewright",
    ),
    Mutation(
        "a framework in model",
        "model-is-pure",
        "lakewright.model.zz_mutant",
        "import pyarrow",
    ),
    Mutation(
        "the network in model",
        "model-is-pure",
        "lakewright.model.zz_mutant",
        "def fetch():\n    import socket\n    return socket",
    ),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its contracts, linted once so that the graph is cached."""
    folder = tmp_path_factory.mktemp("house")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def contracts() -> set[str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {contract["id"] for contract in config["tool"]["importlinter"]["contracts"]}


def lint(folder: Path, *contract: str) -> subprocess.CompletedProcess[str]:
    chosen = [argument for name in contract for argument in ("--contract", name)]
    return subprocess.run(
        [sys.executable, "-c", LINTER, *chosen, "--cache-dir", str(folder / "cache")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "500"},
        capture_output=True,
        text=True,
        check=False,
    )


def write_module(source: Path, module: str, text: str) -> Iterator[Path]:
    """Write a module and the packages above it; yield every path that was not there before."""
    path = source.joinpath(*module.split(".")).with_suffix(".py")
    for parent in reversed(path.relative_to(source).parents[:-1]):
        folder = source / parent
        if not folder.exists():
            folder.mkdir()
            yield folder
        if not (folder / "__init__.py").exists():
            (folder / "__init__.py").write_text("")
            yield folder / "__init__.py"
    path.write_text(text + "\n")
    yield path


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.sense)
def test_a_forbidden_import_is_refused_by_its_contract(copy: Path, mutation: Mutation) -> None:
    written: list[Path] = []
    try:
        for module, text in ((mutation.module, mutation.line), *mutation.also):
            written.extend(write_module(copy / "src", module, text))
        answer = lint(copy, mutation.contract)
    finally:
        for path in reversed(written):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "Contracts: 0 kept, 1 broken." in answer.stdout
    assert mutation.module.rpartition(".")[2] in answer.stdout


def test_every_contract_is_broken_once() -> None:
    assert {mutation.contract for mutation in MUTATIONS} == contracts()


def test_the_package_keeps_every_contract(copy: Path) -> None:
    answer = lint(copy)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert f"Contracts: {len(contracts())} kept, 0 broken." in answer.stdout
