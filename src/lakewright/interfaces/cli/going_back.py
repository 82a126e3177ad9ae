"""Commands that take a table back, and keep it able to: rollback, savepoint, restore."""

from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, emit, emit_facts, say
from lakewright.interfaces.cli.plans import (
    Apply,
    As,
    DryRun,
    Path,
    Setting,
    emit_json,
    is_plan_only,
    say_how,
    settings_of,
)
from lakewright.interfaces.cli.wiring import open_table
from lakewright.model.errors import InstantNotFound

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
        plan = table.plan_rollback(instant, options=options)
        if output is Output.table:
            say(str(plan), good=True)
        else:
            gone = plan.undone
            facts = {"instant": instant, "operation": gone.operation, "files": gone.files}
            emit_facts({**facts, "bytes": gone.bytes}, output, title="rollback")
        say_how(context, output=output)
        return
    done = table.rollback(instant, options=options)
    if output is Output.table:
        say(f"{path}: {instant} rolled back by {done.requested}", good=True)
    else:
        emit_facts({"instant": instant, "rollback": done.requested}, output, title="rollback")


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
        if output is Output.json:
            emit_json(plan.to_json())
            return
        rows = (
            {
                "instant": gone.instant.requested,
                "operation": gone.operation,
                "files": gone.files,
                "bytes": gone.bytes,
            }
            for gone in plan.undone
        )
        emit(("instant", "operation", "files", "bytes"), rows, output, title=next(plan.lines(0)))
        if plan.undone:
            say_how(context, output=output)
        return
    done = table.restore(instant, options=options)
    requested = None if done is None else done.requested
    if output is not Output.table:
        emit_facts({"instant": instant, "restore": requested}, output, title="restore")
    elif done is None:
        say(f"{path}: {instant} is the newest write already", good=True)
    else:
        say(f"{path}: restored to {instant} by {requested}", good=True)


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
        view = table.timeline
        target = view.latest_data() if instant is None else view.instant(instant)
        wanted = None if target is None else target.requested
        emit_facts({"instant": wanted, "note": note, "made": False}, output, title="savepoint")
        return
    done = table.savepoint(instant, note, by=by)
    if output is Output.table:
        say(f"{path}: savepoint {done.requested} made", good=True)
    else:
        facts = {"instant": done.requested, "note": note, "made": True}
        emit_facts(facts, output, title="savepoint")


@app.command("list")
def list_(path: Path, output: As = Output.table) -> None:
    """Show the savepoints, newest first."""
    found = open_table(path).savepoints()
    rows = ({name: getattr(savepoint, name) for name in _SAVED} for savepoint in found)
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
    plan_only = is_plan_only(dry_run=dry_run, apply=apply, output=output)
    found = [saved for saved in table.savepoints() if saved.instant == instant]
    rows = [{name: getattr(saved, name) for name in _SAVED} for saved in found]
    if plan_only and not found:
        raise InstantNotFound(
            f"There is no savepoint {instant}.",
            next_step="See `lakewright savepoint list` for those that are.",
            instant=instant,
        )
    if not plan_only:
        table.delete_savepoint(instant)
    if output is not Output.table or plan_only:
        emit(_SAVED, rows, output)
    else:
        say(f"{path}: savepoint {instant} deleted", good=True)
    if plan_only:
        say_how(context, output=output)
