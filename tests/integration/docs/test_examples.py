"""The examples of the documentation are executed.

A fenced ``python`` block after a line ``<!-- run -->`` is run; the marked blocks of a page share
their names and run in order, in an empty folder. The mark may say more:

* ``<!-- run orders=orders_mor -->`` puts that golden table into the folder as ``orders``;
* ``<!-- run spark -->`` runs with a session called ``spark``, among the Spark tests.

A block after ``<!-- output -->`` is what the block before it prints. Every other ``python`` block
must at least be Python. On a page with Spark examples, the others do not depend on them.
"""

import ast
import contextlib
import io
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>run|output)(?P<words>[^\n]*?) -->\n\s*)?"
    r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block, and what its mark asks for."""

    page: str
    line: int
    mark: str
    words: tuple[str, ...]
    language: str
    text: str

    @property
    def needs_spark(self) -> bool:
        return "spark" in self.words

    @property
    def tables(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.words if "=" in word)


def examples(path: Path) -> Iterator[Example]:
    text = path.read_text()
    for found in BLOCK.finditer(text):
        yield Example(
            page=str(path.relative_to(ROOT)),
            line=text.count("\n", 0, found.start("text")) + 1,
            mark=found["mark"] or "",
            words=tuple((found["words"] or "").split()),
            language=found["language"],
            text=found["text"],
        )


def runnable(path: Path) -> list[Example]:
    return [example for example in examples(path) if example.mark]


def run(
    blocks: list[Example], folder: Path, names: dict[str, object], table: Callable[[str], Path]
) -> None:
    printed = ""
    for block in blocks:
        if block.mark == "output":
            assert printed.split("\n") == block.text.split("\n"), f"{block.page}:{block.line}"
            continue
        for name, golden in block.tables.items():
            if not (folder / name).exists():
                shutil.copytree(table(golden), folder / name)
        code = compile("\n" * (block.line - 1) + block.text, str(ROOT / block.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, names)
        printed = output.getvalue()


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_python_block_is_python(path: Path) -> None:
    for block in examples(path):
        if block.language == "python":
            ast.parse(block.text, f"{block.page}:{block.line}")


@pytest.fixture
def table(own_table: Callable[[str], Path]) -> Callable[[str], Path]:
    """The golden tables that an example may name: those of the repository."""
    return own_table


PLAIN = [path for path in PAGES if not all(block.needs_spark for block in runnable(path))]
SPARK = [path for path in PAGES if any(block.needs_spark for block in runnable(path))]


@pytest.mark.parametrize("path", PLAIN, ids=name)
def test_the_examples_of_a_page_run(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: Callable[[str], Path],
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in runnable(path) if not block.needs_spark]
    run(blocks, tmp_path, {"__name__": "example"}, table)


@pytest.mark.spark
@pytest.mark.parametrize("path", SPARK, ids=name)
def test_the_examples_of_a_page_run_with_spark(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: Callable[[str], Path],
    spark: object,
) -> None:
    monkeypatch.chdir(tmp_path)
    run(runnable(path), tmp_path, {"__name__": "example", "spark": spark}, table)


PAGE = """
<!-- run -->
```python
x = 20
print(x + 1)
```

<!-- output -->
```text
{}
```

<!-- run spark orders=cow_basic_v9 -->
```python
y = 1
```
"""


def test_marks_are_read_and_outputs_compared(tmp_path: Path) -> None:
    page = ROOT / "docs" / "unwritten.md"
    first, output, third = (
        Example(name(page), 0, found["mark"], tuple(found["words"].split()), "", found["text"])
        for found in BLOCK.finditer(PAGE.format(21))
    )
    assert third.needs_spark
    assert third.tables == {"orders": "cow_basic_v9"}
    run([first, output], tmp_path, {}, lambda golden: tmp_path / golden)
    wrong = Example(output.page, 0, "output", (), "", "22\n")
    with pytest.raises(AssertionError):
        run([first, wrong], tmp_path, {}, lambda golden: tmp_path / golden)
