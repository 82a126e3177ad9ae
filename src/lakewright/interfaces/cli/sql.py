"""The command ``sql``."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from lakewright.interfaces.cli.output import Output, emit
from lakewright.interfaces.cli.wiring import run_sql
from lakewright.model.errors import Invalid, NotFound


def sql(
    text: Annotated[str | None, typer.Argument(help="The statements, with ; between them.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="A file of statements; - for standard input.")
    ] = None,
    lake: Annotated[
        str,
        typer.Option("--lake", "-l", envvar="LAKEWRIGHT_LAKE", help="The lake's folder or URI."),
    ] = ".",
    output: Annotated[
        Output, typer.Option("--output", "-o", help="The form of the output.")
    ] = Output.table,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Print at most this many rows of each answer.")
    ] = None,
) -> None:
    """Run SQL over a lake: create and change tables, query them, call procedures."""
    if limit is None and output is Output.table:
        limit = 1000  # a terminal is for looking; programs ask for JSON or CSV and get all
    for answer in run_sql(lake, _script(text, file)):
        emit(answer.schema.names, _rows(answer), output, limit=limit)


def _script(text: str | None, file: str | None) -> str:
    if (text is None) == (file is None):
        raise Invalid(
            "give statements or a file of them.",
            next_step='Try: lakewright sql --lake ./lake "SHOW TABLES"',
        )
    if text is not None:
        return text
    try:
        return sys.stdin.read() if file == "-" else Path(str(file)).read_text(encoding="utf-8")
    except FileNotFoundError as cause:
        raise NotFound(f"no file {file}.", next_step="Give the path of a file.") from cause
    except UnicodeDecodeError as cause:
        name = "standard input" if file == "-" else file
        raise Invalid(
            f"{name} is not UTF-8 text: byte {cause.object[cause.start]:#04x} at {cause.start}.",
            next_step="Save it as UTF-8.",
            file=name,
        ) from cause
    except OSError as cause:
        raise Invalid(
            f"cannot read {file}: {cause.strerror}.", next_step="Give the path of a file."
        ) from cause


def _rows(answer: pa.Table) -> Iterator[dict[str, object]]:
    for batch in answer.to_batches(max_chunksize=1000):
        yield from batch.to_pylist(maps_as_pydicts="lossy")
