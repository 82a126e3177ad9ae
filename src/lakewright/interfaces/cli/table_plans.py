"""The commands ``lakewright plans …``: plans that are kept with tables, applied and undone."""

import json
import shlex
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lakewright.interfaces.cli.output import Output, emit, emit_facts, say
from lakewright.interfaces.cli.plans import (
    Apply,
    As,
    DryRun,
    Limit,
    Path,
    Setting,
    emit_json,
    emit_preview,
    is_plan_only,
    say_how,
    settings_of,
)
from lakewright.interfaces.cli.wiring import connect, open_table
from lakewright.lifecycle.plans.plan import Plan
from lakewright.lifecycle.plans.records import Applied, PlanRecord, Undone
from lakewright.model.errors import Invalid, NotFound


class _ListsByDefault(TyperGroup):
    """Takes ``plans PATH`` for ``plans list PATH``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer hides it
        """Put the word in that was left out."""
        known = args and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if known or not args else ["list", *args])


app = typer.Typer(
    cls=_ListsByDefault,
    help="Plans that are kept with tables: look at them, apply them, undo them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Id = Annotated[str, typer.Argument(help="The id of a plan, as `plans list` prints it.")]
_SHOWN = 50
_PLANS = ("plan", "table", "state", "items", "files", "bytes", "made", "by", "undo_until", "damage")
_ITEMS = ("target", "files", "bytes", "reason")
_QUARANTINED = ("plan", "until", "files", "bytes", "why")
_RUNS = ("number", "verb", "by", "began", "ended", "result")


@app.command("list")
def list_(
    path: Annotated[str | None, typer.Argument(help="The table's path or URI.")] = None,
    lake: Annotated[
        str | None, typer.Option("--lake", "-l", help="All tables of this lake instead.")
    ] = None,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """List the plans of a table, or of all tables of a lake, newest first."""
    if (path is None) == (lake is None):
        raise Invalid(
            "give a table or a lake, and one of them.",
            next_step="Try: lakewright plans list ./lake/shop/orders",
        )
    found: Iterator[PlanRecord]
    found = connect(lake).plans() if lake is not None else open_table(path or "").plans()
    emit(_PLANS, map(_row, found), output, limit=limit)


@app.command()
def show(path: Path, id: Id, limit: Limit = None, output: As = Output.table) -> None:
    """Show what a plan does and why, and what came of it."""
    record = open_table(path).plan(id).record()
    if output is Output.json:
        emit_json(record.plan.to_json())
        return
    emit_plan_items(record.plan, output, limit)
    if output is Output.table:
        for came in (record.applied, record.undone):
            if came is not None:
                say(next(came.lines(0)), good=True)


@app.command()
def explain(
    path: Path,
    id: Id,
    target: Annotated[str, typer.Argument(help="What the plan is about: a partition, a file.")],
) -> None:
    """Say what a plan does with one partition or file, and why."""
    say(open_table(path).plan(id).explain(target), good=True)


@app.command()
def apply(
    path: Path,
    id: Id,
    strict: Annotated[
        bool, typer.Option("--strict", help="Do nothing where something would be skipped.")
    ] = False,
    option: Setting = None,
    dry_run: DryRun = False,
    output: As = Output.table,
) -> None:
    """Carry out a plan; one that the table has outgrown is refused, and it is told why."""
    plan = open_table(path).plan(id, options=settings_of(option))
    if dry_run:
        emit_plan_items(plan.plan, output)
        return
    done = plan.apply(strict=strict)
    emit_applied(done, output)
    _say_undo(path, done, output)


@app.command()
def undo(
    path: Path, id: Id, option: Setting = None, dry_run: DryRun = False, output: As = Output.table
) -> None:
    """Take back what a plan did; what was written since stays."""
    plan = open_table(path).plan(id, options=settings_of(option))
    if dry_run:
        preview = plan.preview_undo()
        for line in preview.lines(_SHOWN):
            say(line, good=preview.why_not is None)
        if preview.why_not is not None:
            raise typer.Exit(2)
        return
    _emit_undone(plan.undo(), output)


@app.command()
def runs(path: Path, id: Id, output: As = Output.table) -> None:
    """List the runs of a plan: who applied or undid it, when, and how that ended."""
    found = open_table(path).plan(id).runs()
    emit(_RUNS, ({name: getattr(run, name) for name in _RUNS} for run in found), output)


@app.command()
def orphans(
    context: typer.Context,
    path: Path,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", help="Only files that are older: 3d by default, 1h at least."),
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete at once, without quarantine: no undo.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the plan with the table, to apply it later.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Do nothing where something would be skipped.")
    ] = False,
    option: Setting = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Put data files that no instant claims into quarantine; without --apply they are shown."""
    if keep and (apply or dry_run):
        raise Invalid(
            "--keep only keeps the plan.", next_step="Give it without --apply and --dry-run."
        )
    plan_only = is_plan_only(dry_run=dry_run, apply=apply, output=output)
    table, settings = open_table(path), settings_of(option)
    if plan_only and not keep:
        made = table.preview_orphans(older_than, purge=purge, options=settings)
        if output is Output.json:
            emit_json(made.to_json())
            return
        emit_plan_items(made, output, limit)
        if not made.empty:
            say_how(context, output=output)
        return
    plan = table.plan_orphans(older_than, purge=purge, options=settings)
    if plan_only:
        if output is Output.json:
            emit_json(plan.to_json())
            return
        emit_plan_items(plan.plan, output, limit)
        if not plan.empty and output is Output.table:
            say_apply(path, plan.id)
        return
    if plan.empty:
        emit_plan_items(plan.plan, output, limit)
        return
    done = plan.apply(strict=strict)
    emit_applied(done, output)
    _say_undo(path, done, output)


@app.command()
def quarantine(path: Path, limit: Limit = None, output: As = Output.table) -> None:
    """List what lies in quarantine, by plan, and until when."""
    rows = (
        {
            "plan": found.plan,
            "until": found.until,
            "files": len(found.files),
            "bytes": found.bytes,
            "why": found.damage or found.why,
        }
        for found in open_table(path).quarantined()
    )
    emit(_QUARANTINED, rows, output, limit=limit)


@app.command()
def purge(path: Path, id: Id, dry_run: DryRun = False, output: As = Output.table) -> None:
    """Delete what a plan has in quarantine for good, before its time there is over."""
    plan = open_table(path).plan(id)
    if not dry_run:
        gone = plan.purge()
        if output is Output.table:
            say(f"purged {len(gone.files)} files of {gone.bytes} bytes of {id}", good=True)
        else:
            emit_facts(json.loads(gone.to_json()), output, title="purged")
        return
    found = plan.quarantined()
    if found is None:
        raise NotFound(
            f"the plan {id} has no files in quarantine.",
            next_step=f"See {shlex.join(['lakewright', 'plans', 'quarantine', path])}.",
            plan=id,
        )
    emit_preview(found, output)


def emit_plan_items(plan: Plan, output: Output, limit: int | None = None) -> None:
    """Print what a plan does, and what it leaves out."""
    rows = ({name: getattr(item, name) for name in _ITEMS} for item in plan.items)
    shown = _SHOWN if limit is None and output is Output.table else limit
    emit(_ITEMS, rows, output, title=next(plan.lines(0)), limit=shown)
    if output is Output.table:
        for left in plan.skipped[:_SHOWN]:
            say(f"left out {left.target}: {left.reason}", good=True)


def say_apply(path: str, id: str) -> None:
    """Print the command that applies a plan."""
    say(shlex.join(["lakewright", "plans", "apply", path, id]), good=True)


def _say_undo(path: str, applied: Applied, output: Output) -> None:
    if output is Output.table and applied.undo_until is not None:
        say(shlex.join(["lakewright", "plans", "undo", path, applied.plan]), good=True)


def emit_applied(applied: Applied, output: Output) -> None:
    """Print what came of applying a plan."""
    if output is Output.table:
        for line in applied.lines(_SHOWN):
            say(line, good=True)
    else:
        emit_facts(json.loads(applied.to_json()), output, title="applied")


def _emit_undone(undone: Undone, output: Output) -> None:
    if output is Output.table:
        for line in undone.lines(_SHOWN):
            say(line, good=True)
    else:
        emit_facts(json.loads(undone.to_json()), output, title="undone")


def _row(record: PlanRecord) -> dict[str, object]:
    plan, applied = record.plan, record.applied
    return {
        "plan": plan.id,
        "table": plan.table,
        "state": str(record.state),
        "items": len(plan.items),
        "files": plan.files,
        "bytes": plan.bytes,
        "made": plan.created_at,
        "by": plan.created_by,
        "undo_until": None if applied is None else applied.undo_until,
        "damage": record.damage,
    }
