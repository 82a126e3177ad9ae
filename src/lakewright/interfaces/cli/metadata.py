"""The command that takes a table's metadata table away."""

import typer

from lakewright.interfaces.cli.output import Output, emit_facts, say
from lakewright.interfaces.cli.plans import Apply, As, DryRun, Path, is_plan_only, say_how
from lakewright.interfaces.cli.wiring import (
    disable_metadata,
    find_metadata,
    open_storage,
    table_lock,
)


def disable_metadata_(
    context: typer.Context,
    path: Path,
    dry_run: DryRun = False,
    apply: Apply = False,
    output: As = Output.table,
) -> None:
    """Take Hudi's metadata table away, so that the table can be written here.

    Nothing is lost: readers list files instead. No Hudi writer may be at work meanwhile; the next
    one makes the metadata table anew unless hoodie.metadata.enable=false is set.
    """
    storage = open_storage(path, {})
    shown = is_plan_only(dry_run=dry_run, apply=apply, output=output)
    found = find_metadata(storage) if shown else disable_metadata(storage, table_lock(path, ()))
    facts: dict[str, object] = {
        "partitions": list(found.partitions),
        "files": found.files,
        "bytes": found.bytes,
        "applied": not shown,
    }
    emit_facts(facts, output, title="metadata table")
    if shown and found:
        say_how(context, output=output)
    elif shown and output is Output.table:
        say(f"{path}: there is no metadata table", good=True)
