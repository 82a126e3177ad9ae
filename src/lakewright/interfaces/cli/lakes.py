"""The command ``tables``: what a lake holds."""

from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, emit
from lakewright.interfaces.cli.wiring import connect


def tables(
    lake: Annotated[
        str,
        typer.Option("--lake", "-l", envvar="LAKEWRIGHT_LAKE", help="The lake's folder or URI."),
    ] = ".",
    output: Annotated[
        Output, typer.Option("--output", "-o", help="The form of the output.")
    ] = Output.table,
    limit: Annotated[int | None, typer.Option(min=0, help="Print at most this many rows.")] = None,
) -> None:
    """Show the tables of a lake."""
    names = (name.rpartition(".") for name in connect(lake).tables())
    rows = ({"database": database, "table": name} for database, _, name in names)
    emit(("database", "table"), rows, output, limit=limit)
