"""Procedures of orphan files and of the quarantine in which plans put them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewright.interfaces.sql.procedures.registry import Arguments, Kind, Parameter, procedure
from lakewright.interfaces.sql.procedures.tables import (
    LONG,
    OPTIONS,
    PATH,
    TABLE,
    TEXT,
    Row,
    limited,
    named_table,
    required,
    settings_of,
    text_of,
)
from lakewright.model.errors import NotFound
from lakewright.model.shown import Shown

if TYPE_CHECKING:
    from lakewright.api.lake import Lake

PLAN = Parameter("plan", default=None, doc="The id of a plan.")
_MICROS = pa.timestamp("us", tz="UTC")


@procedure(
    "plan_orphans",
    pa.schema(
        [
            ("file", TEXT),
            ("bytes", LONG),
            ("status", TEXT),
            ("reason", TEXT),
            ("plan", TEXT),
        ]
    ),
    TABLE,
    Parameter("older_than", default=None, doc="Only files that are older, such as '3d'."),
    Parameter("purge", Kind.FLAG, False, doc="Delete at once, without quarantine: no undo."),
    Parameter("dry_run", Kind.FLAG, True, doc="Say which files would go, and stop."),
    Parameter("strict", Kind.FLAG, False, doc="Move nothing where something is skipped."),
    OPTIONS,
    PATH,
    aliases=("remove_orphan_files",),
    writes=True,
)
def plan_orphans(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Put data files that no instant claims into quarantine; by default only say which."""
    table, options = named_table(lake, arguments), settings_of(arguments)
    age, purge = text_of(arguments, "older_than"), bool(arguments["purge"])
    verb = "deleted" if purge else "put into quarantine"
    if arguments["dry_run"]:
        made = table.preview_orphans(age, purge=purge, options=options)
        would = f"would be {verb}: dry_run => false does it"
        for item in made.items:
            yield _row(item.target, item.bytes, would, item.reason)
        yield from (_row(left.target, None, "kept", left.reason) for left in made.skipped)
        return
    plan = table.plan_orphans(age, purge=purge, options=options)
    applied = None if plan.empty else plan.apply(strict=bool(arguments["strict"]))
    items = {item.target: item for item in plan.items}
    for target in () if applied is None else applied.done:
        yield _row(target, items[target].bytes, verb, items[target].reason, plan.id)
    for left in (*plan.plan.skipped, *(() if applied is None else applied.skipped)):
        yield _row(left.target, None, "kept", left.reason, None if applied is None else plan.id)


def _row(file: str, size: int | None, status: str, reason: str, plan: str | None = None) -> Row:
    return {"file": file, "bytes": size, "status": status, "reason": reason, "plan": plan}


@procedure(
    "show_quarantine",
    pa.schema(
        [("plan", TEXT), ("until", _MICROS), ("files", LONG), ("bytes", LONG), ("why", TEXT)]
    ),
    TABLE,
    PATH,
    Parameter("limit", Kind.WHOLE, None, doc="At most so many rows.", least=0),
)
def show_quarantine(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Show what lies in the quarantine of a table, by plan, and until when."""
    rows = (
        {
            "plan": found.plan,
            "until": found.until,
            "files": len(found.files),
            "bytes": found.bytes,
            "why": found.damage or found.why,
        }
        for found in named_table(lake, arguments).quarantined()
    )
    return limited(rows, arguments)


def _plan_purging(lake: "Lake", arguments: Arguments) -> Iterator[Shown]:
    id = required(arguments, "plan", "purge_plan")
    found = named_table(lake, arguments).plan(id).quarantined()
    if found is None:
        raise NotFound(
            f"the plan {id} has no files in quarantine.",
            next_step="CALL show_quarantine shows what has.",
            plan=id,
        )
    yield found


@procedure(
    "purge_plan",
    pa.schema([("file", TEXT), ("bytes", LONG)]),
    TABLE,
    PLAN,
    PATH,
    writes=True,
    plan=_plan_purging,
)
def purge_plan(lake: "Lake", arguments: Arguments) -> Iterator[Row]:
    """Delete what a plan has in quarantine for good, before its time there is over."""
    id = required(arguments, "plan", "purge_plan")
    for path, size in named_table(lake, arguments).plan(id).purge().files:
        yield {"file": path, "bytes": size}
