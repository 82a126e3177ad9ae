"""The commands that change a table's version."""

from dataclasses import asdict
from typing import Annotated

import typer

from lakewright.actions.services.upgrade_plan import UpgradePlan, UpgradeResult
from lakewright.interfaces.cli.output import Output, emit_facts, say
from lakewright.interfaces.cli.plans import (
    Apply,
    As,
    DryRun,
    Path,
    emit_json,
    is_plan_only,
    say_how,
)
from lakewright.interfaces.cli.wiring import open_table

To = Annotated[int, typer.Option("--to", help="The version: 6, 8 or 9.")]


def upgrade(
    context: typer.Context,
    path: Path,
    to: To = 9,
    dry_run: DryRun = False,
    apply: Apply = False,
    output: As = Output.table,
) -> None:
    """Give a table a newer version; rows and history stay.

    Writers that are at work meanwhile must open the table again.
    """
    table = open_table(path)
    if is_plan_only(dry_run=dry_run, apply=apply, output=output):
        _planned(context, table.upgrade(to, dry_run=True), output)
    else:
        _done(table.upgrade(to), output)


def downgrade(
    context: typer.Context,
    path: Path,
    to: Annotated[int, typer.Option("--to", help="The version: 6 or 8.")],
    dry_run: DryRun = False,
    apply: Apply = False,
    output: As = Output.table,
) -> None:
    """Give a table an older version, for software that does not read its own.

    Rows and history stay; what the older version cannot express is refused by name.
    """
    table = open_table(path)
    if is_plan_only(dry_run=dry_run, apply=apply, output=output):
        _planned(context, table.downgrade(to, dry_run=True), output)
    else:
        _done(table.downgrade(to), output)


def _planned(context: typer.Context, plan: UpgradePlan, output: Output) -> None:
    if output is Output.json:
        emit_json(plan.to_json())
        return
    for line in plan.lines():
        say(line, good=not plan.obstacles)
    if plan.steps and not plan.obstacles:
        say_how(context, output=output)


def _done(result: UpgradeResult, output: Output) -> None:
    if output is Output.table:
        say(str(result), good=True)
    else:
        emit_facts(asdict(result), output, title=result.table)
