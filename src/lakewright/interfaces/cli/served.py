"""The command ``services list``: what was done for a table, and what waits."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated

import typer

from lakewright.actions.services.views import Cleaning, PlannedService, Rollback, Savepoint
from lakewright.interfaces.cli.output import Output, emit
from lakewright.interfaces.cli.plans import As, Limit, Path
from lakewright.interfaces.cli.wiring import Table, open_table
from lakewright.model.errors import Invalid
from lakewright.model.services import Service

_COLUMNS = ("service", "instant", "state", "completed", "groups", "files", "partitions", "note")

Seen = PlannedService | Cleaning | Rollback | Savepoint
Row = Mapping[str, object]
_VIEWS: Mapping[str, Callable[[Table, bool], Iterable[Seen]]] = {
    "compaction": lambda table, archived: table.compactions(),
    "log-compaction": lambda table, archived: table.log_compactions(),
    "clustering": lambda table, archived: table.clusterings(),
    "cleaning": lambda table, archived: table.cleanings(archived=archived),
    "rollback": lambda table, archived: table.rollbacks(archived=archived),
    "savepoint": lambda table, archived: table.savepoints(),
}


def list_(
    path: Path,
    service: Annotated[
        list[str] | None,
        typer.Option(help=f"Only this one: {', '.join(_VIEWS)}; may be repeated."),
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Cleanings and rollbacks of the history too.")
    ] = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Show what was done for a table, and the plans that wait, newest first."""
    names = service or list(_VIEWS)
    unknown = [name for name in names if name not in _VIEWS]
    if unknown:
        raise Invalid(f"{unknown[0]!r} is no service.", next_step=f"Allowed: {', '.join(_VIEWS)}.")
    table = open_table(path)
    found = list(chain.from_iterable(_VIEWS[name](table, archived) for name in names))
    newest = sorted(found, key=lambda seen: seen.instant.requested, reverse=True)
    emit(_COLUMNS, _rows(newest), output, limit=limit)


def _rows(found: Iterable[Seen]) -> Iterator[Row]:
    for seen in found:
        instant = seen.instant
        yield {
            "instant": instant.requested,
            "state": instant.state.value,
            "completed": instant.completed,
            **_facts(seen),
        }


def _facts(seen: Seen) -> Row:
    match seen:
        case PlannedService(service, _, groups, partitions):
            return {"service": service.value, "groups": groups, "partitions": len(partitions)}
        case Cleaning(_, plan, done):
            policy = "" if plan is None else plan.policy
            shown: dict[str, object] = {"service": Service.CLEANING.value, "note": policy}
            if done is not None:
                counts = {"files": done.total_deleted, "partitions": len(done.partitions)}
                return {**shown, **counts}
            planned = list(seen.planned)
            places = {partition for partition, _ in planned}
            return {**shown, "files": len(planned), "partitions": len(places)}
        case Rollback(_, done):
            return {
                "service": "rollback",
                "files": done.total_deleted,
                "partitions": len(done.partitions),
                "note": f"of {', '.join(done.commits)}",
            }
        case Savepoint():
            return {
                "service": "savepoint",
                "files": seen.files,
                "partitions": seen.partitions,
                "note": seen.note,
            }
