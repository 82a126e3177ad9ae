"""Commands that take a table back, and keep it able to: rollback, savepoint, restore."""

from collections.abc import Mapping
from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, emit, emit_facts, say
from lakewright.interfaces.cli.plans import (
    Apply,
    As,
    DryRun,
    Path,
    Setting,
    emit_preview,
    is_plan_only,
    say_how,
    settings_of,
)
from lakewright.interfaces.cli.wiring import open_table

app = typer.Typer(
    help="Keep the files of an instant, whatever is cleaned.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Target = Annotated[str, typer.Argument(help="The instant.")]
_SAVED = ("instant", "at", "by", "note", "partitions", "files")


def rollback(
    context: typer.Context,
    path: Path,
    instant: Target,
    option: Setting = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    output: As = Output.table,
) -> None:
    """Take back the newest write, or a plan, for good."""
    table, options = open_table(path), settings_of(option)
    if is_plan_only(dry_run=dry_run, apply=apply, output=output):
        emit_preview(table.plan_rollback(instant, options=options), output)
        say_how(context, output=output)
        return
    done = table.rollback(instant, options=options)
    facts = {"instant": instant, "rollback": done.requested}
    _emit_done("rollback", facts, f"{path}: {instant} rolled back by {done.requested}", output)


def restore(
    context: typer.Context,
    path: Path,
    instant: Target,
    option: Setting = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    output: As = Output.table,
) -> None:
    """Go back to an earlier write: everything that took effect after it is undone for good."""
    table, options = open_table(path), settings_of(option)
    if is_plan_only(dry_run=dry_run, apply=apply, output=output):
        plan = table.plan_restore(instant, options=options)
        emit_preview(plan, output)
        if plan.undone:
            say_how(context, output=output)
        return
    done = table.restore(instant, options=options)
    requested = None if done is None else done.requested
    told = (
        f"{instant} is the newest write already"
        if done is None
        else f"restored to {instant} by {requested}"
    )
    facts = {"instant": instant, "restore": requested}
    _emit_done("restore", facts, f"{path}: {told}", output)


def _emit_done(title: str, facts: Mapping[str, object], told: str, output: Output) -> None:
    """Print what was done: a line for people, facts for programs."""
    if output is Output.table:
        say(told, good=True)
    else:
        emit_facts(facts, output, title=title)


@app.command("make")
def make(
    path: Path,
    instant: Annotated[
        str | None, typer.Argument(help="The write to keep; the newest by default.")
    ] = None,
    note: Annotated[str, typer.Option(help="Why it is kept.")] = "",
    by: Annotated[str | None, typer.Option(help="Who keeps it; by default this user.")] = None,
    dry_run: DryRun = False,
    output: As = Output.table,
) -> None:
    """Keep the files of a write until the savepoint is deleted."""
    table = open_table(path)
    if dry_run:
        emit_preview(table.plan_savepoint(instant, note, by=by), output)
        return
    done = table.savepoint(instant, note, by=by)
    facts = {"instant": done.requested, "note": note, "made": True}
    _emit_done("savepoint", facts, f"{path}: savepoint {done.requested} made", output)


@app.command("list")
def list_(path: Path, output: As = Output.table) -> None:
    """Show the savepoints, newest first."""
    found = open_table(path).savepoints()
    rows = (
        {**{name: getattr(saved, name) for name in _SAVED}, "instant": saved.instant.requested}
        for saved in found
    )
    emit(_SAVED, rows, output)


@app.command("delete")
def delete(
    context: typer.Context,
    path: Path,
    instant: Target,
    dry_run: DryRun = False,
    apply: Apply = False,
    output: As = Output.table,
) -> None:
    """Give the files of a savepoint free again: the next cleaning may take them."""
    table = open_table(path)
    if is_plan_only(dry_run=dry_run, apply=apply, output=output):
        emit_preview(table.plan_delete_savepoint(instant), output)
        say_how(context, output=output)
        return
    table.delete_savepoint(instant)
    facts = {"instant": instant, "deleted": True}
    _emit_done("savepoint", facts, f"{path}: savepoint {instant} deleted", output)
