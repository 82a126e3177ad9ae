"""The command that takes a table's metadata table away."""

from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, emit_facts, say
from lakewright.interfaces.cli.wiring import (
    disable_metadata,
    find_metadata,
    open_storage,
    table_lock,
)

Path = Annotated[str, typer.Argument(help="The table's path or URI.")]
As = Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without it the plan is shown.")]


def disable_metadata_(path: Path, apply: Apply = False, output: As = Output.table) -> None:
    """Take Hudi's metadata table away, so that the table can be written here.

    Nothing is lost: readers list files instead. No Hudi writer may be at work meanwhile; the next
    one makes the metadata table anew unless hoodie.metadata.enable=false is set.
    """
    storage = open_storage(path, {})
    if not apply and output is Output.table:
        say("this is a plan: nothing is changed", good=True)
    found = disable_metadata(storage, table_lock(path, ())) if apply else find_metadata(storage)
    facts: dict[str, object] = {
        "partitions": list(found.partitions),
        "files": found.files,
        "bytes": found.bytes,
        "applied": apply,
    }
    emit_facts(facts, output, title="metadata table")
    if not apply and found and output is Output.table:
        say(f"lakewright table disable-metadata {path} --apply", good=True)
