"""Write the reference pages from the declarations in the source.

    python docs/generate.py            # write the pages
    python docs/generate.py --check    # say which pages are out of date; exit code 1 if any is

A page of the reference is never edited by hand: what it says stands beside the code it describes.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import lakewright
from lakewright.interfaces.cli.main import app
from lakewright.model.errors import LakewrightError
from lakewright.model.options import declared, reference

PAGES = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the source; do not edit. -->"


def import_everything() -> None:
    """Load every module, so that each has declared its options."""
    for module in pkgutil.walk_packages(lakewright.__path__, "lakewright."):
        importlib.import_module(module.name)


def page(title: str, *paragraphs: str) -> str:
    """Join paragraphs to a page."""
    return "\n\n".join([NOTE, f"# {title}", *paragraphs]) + "\n"


# --- options -------------------------------------------------------------------------------------


def options_page() -> str:
    """Return the table of every declared option."""
    import_everything()
    return page(
        "Options",
        "An option is given as text, under its own key or under a name of Apache Hudi that is "
        "accepted in its place. Absence gives the default; a value that is not allowed is refused "
        "with the allowed ones. A key of Lakewright's own that does not exist is refused with the "
        "nearest one that does; a setting of Hudi's that is not in this table is accepted, and the "
        "log says once that it has no effect here. Those that say what a table is, or what a write "
        "does, are refused where they say otherwise.",
        reference(declared()),
    )


# --- errors --------------------------------------------------------------------------------------


def _tree(
    kind: type[LakewrightError], depth: int = 0
) -> Iterator[tuple[int, type[LakewrightError]]]:
    yield depth, kind
    for below in sorted(kind.__subclasses__(), key=lambda k: k.__name__):
        if below.__module__.startswith("lakewright."):
            yield from _tree(below, depth + 1)


def errors_page() -> str:
    """Return the error tree as a table."""
    rows = [
        f"| {'&emsp;' * depth}`{kind.__name__}` | `{kind.code}` | "
        f"{'yes' if kind.retryable else 'no'} | {_first_paragraph(kind)} |"
        for depth, kind in _tree(LakewrightError)
    ]
    return page(
        "Errors",
        "Every error that Lakewright raises on purpose is a `LakewrightError`: one `except` "
        "clause catches all. Each has a `code` for programs, `facts` (the names, paths and "
        "offsets it speaks of), a `next_step` for people, and says whether the same call may "
        "simply be tried again.",
        "\n".join(["| Error | Code | Retry | Meaning |", "| --- | --- | --- | --- |", *rows]),
    )


def _first_paragraph(thing: object) -> str:
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


# --- command line --------------------------------------------------------------------------------


def _commands(command: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield names, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(below, (*names, name))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _parameters(command: Any, context: typer.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in parameter.opts:
            yield f"| `{_cell(record[0])}` | {_cell(record[1])} |"


def cli_page() -> str:
    """Return the help of every command."""
    parts: list[str] = []
    for names, command in _commands(typer.main.get_command(app), ("lakewright",)):
        context = typer.Context(command, info_name=" ".join(names))
        usage = " ".join([*names, *command.collect_usage_pieces(context)])
        parts += [f"## {' '.join(names)}", f"`{usage}`", inspect.cleandoc(command.help or "")]
        rows = list(_parameters(command, context))
        if rows:
            parts.append("\n".join(["| Parameter | Meaning |", "| --- | --- |", *rows]))
    return page("Command line", *(part for part in parts if part))


# --- all of them ---------------------------------------------------------------------------------

GENERATED = {"options.md": options_page, "errors.md": errors_page, "cli.md": cli_page}


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` only compare them."""
    stale = [
        name
        for name, render in GENERATED.items()
        if not (PAGES / name).is_file() or (PAGES / name).read_text() != render()
    ]
    if arguments == ["--check"]:
        for name in stale:
            print(f"docs/reference/{name} is out of date; run ./dev docs")
        return 1 if stale else 0
    for name in stale:
        (PAGES / name).write_text(GENERATED[name]())
        print(f"wrote docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
