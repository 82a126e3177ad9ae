"""The command that shows who holds a table's lock."""

from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, emit_facts, say
from lakewright.interfaces.cli.wiring import table_lock

Path = Annotated[str, typer.Argument(help="The table's path or URI.")]
As = Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")]
Setting = Annotated[
    list[str] | None,
    typer.Option("--option", help="A setting of the lock, as hoodie.write.lock.provider=storage."),
]


def locks(path: Path, option: Setting = None, output: As = Output.table) -> None:
    """Show who holds the table's lock, since when, and for how long it holds."""
    status = table_lock(path, option or ()).describe()
    if status is None:
        if output is Output.table:
            say(f"{path}: nobody holds the lock", good=True)
        else:
            emit_facts({"held": False}, output, title="lock")
        return
    facts: dict[str, object] = {
        "held": True,
        "kind": status.kind,
        "place": status.place,
        "owner": status.owner,
        "host": status.host,
        "pid": status.pid,
        "age in seconds": None if status.age is None else round(status.age, 1),
        "holds for seconds": None if status.valid_for is None else round(status.valid_for, 1),
        "holder is alive": status.alive,
    }
    emit_facts(facts, output, title="lock")
    if output is Output.table and not status.alive:
        say("its holder has ended: the next writer takes the lock over", good=True)
