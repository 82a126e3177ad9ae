"""Commands that keep a table fast and small: compact, log-compact, cluster, clean, archive."""

from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, emit, say
from lakewright.interfaces.cli.plans import (
    Apply,
    As,
    At,
    DryRun,
    Limit,
    Partitions,
    Path,
    PlanAt,
    Schedule,
    Setting,
    Wish,
    emit_json,
    is_plan_only,
    say_how,
    serve,
    settings_of,
)
from lakewright.interfaces.cli.wiring import open_table


def compact(
    path: Path,
    partition: Partitions = None,
    plan: PlanAt = None,
    instant: At = None,
    strategy: Annotated[
        str | None, typer.Option(help="Which slices are taken: log_file_size, unbounded, …")
    ] = None,
    target_io: Annotated[
        int | None, typer.Option(help="Megabytes that are read and written at most.")
    ] = None,
    option: Setting = None,
    schedule: Schedule = False,
    dry_run: DryRun = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Merge base files with their logs: a plan that waits, or a new one."""
    table = open_table(path)
    serve(
        Wish(plan, schedule, dry_run, limit, output),
        {
            "partitions": partition,
            "instant": instant,
            "strategy": strategy,
            "target_io": target_io,
            "options": settings_of(option),
        },
        schedule=table.schedule_compaction,
        run=table.compact,
        waiting=table.compactions,
        nothing=f"{path}: nothing to compact",
    )


def log_compact(
    path: Path,
    partition: Partitions = None,
    plan: PlanAt = None,
    instant: At = None,
    option: Setting = None,
    schedule: Schedule = False,
    dry_run: DryRun = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Merge many small logs of a file slice into one; base files stay."""
    table = open_table(path)
    serve(
        Wish(plan, schedule, dry_run, limit, output),
        {"partitions": partition, "instant": instant, "options": settings_of(option)},
        schedule=table.schedule_log_compaction,
        run=table.log_compact,
        waiting=table.log_compactions,
        nothing=f"{path}: no slice has logs enough",
    )


def cluster(
    path: Path,
    partition: Partitions = None,
    plan: PlanAt = None,
    instant: At = None,
    sort_by: Annotated[
        str | None, typer.Option("--sort-by", help="Columns to sort rows by, commas between.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="linear, zorder or hilbert.")] = None,
    target_size: Annotated[
        int | None, typer.Option(min=1, help="About how many bytes the new files have.")
    ] = None,
    small_file: Annotated[
        int | None, typer.Option(min=0, help="Below how many bytes a file is taken.")
    ] = None,
    option: Setting = None,
    schedule: Schedule = False,
    dry_run: DryRun = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Put small files together, or sort rows by columns; no row changes."""
    table = open_table(path)
    serve(
        Wish(plan, schedule, dry_run, limit, output),
        {
            "partitions": partition,
            "instant": instant,
            "sort_by": sort_by,
            "layout": layout,
            "target_size": target_size,
            "small_file": small_file,
            "options": settings_of(option),
        },
        schedule=table.schedule_clustering,
        run=table.cluster,
        waiting=table.clusterings,
        nothing=f"{path}: nothing to cluster",
    )


def clean(
    context: typer.Context,
    path: Path,
    policy: Annotated[
        str | None, typer.Option(help="What is kept: the last commits, versions or hours.")
    ] = None,
    retain: Annotated[int | None, typer.Option(min=1, help="How many of them.")] = None,
    grace: Annotated[
        str | None, typer.Option(help="How long files stay that readers may be at: 15m, 2h.")
    ] = None,
    plan: PlanAt = None,
    option: Setting = None,
    schedule: Schedule = False,
    dry_run: DryRun = False,
    apply: Apply = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Delete files that no reader of the retained history needs."""
    table = open_table(path)
    only_put = schedule and not dry_run
    shown = not only_put and is_plan_only(dry_run=dry_run, apply=apply, output=output)
    found = serve(
        Wish(plan, schedule, shown, limit, output),
        {"policy": policy, "retain": retain, "grace": grace, "options": settings_of(option)},
        schedule=table.schedule_cleaning,
        run=table.clean,
        waiting=table.cleanings,
        nothing=f"{path}: nothing to clean",
    )
    if shown and found:
        say_how(context, output=output)


def archive(
    path: Path,
    min_commits: Annotated[
        int | None, typer.Option(min=1, help="Commits that stay on the active timeline.")
    ] = None,
    max_commits: Annotated[
        int | None, typer.Option(min=2, help="Commits from which on the oldest go.")
    ] = None,
    option: Setting = None,
    dry_run: DryRun = False,
    output: As = Output.table,
) -> None:
    """Move the oldest instants into the archived history, where the timeline is too long."""
    table, options = open_table(path), settings_of(option)
    if dry_run:
        plan = table.plan_archive(min_commits=min_commits, max_commits=max_commits, options=options)
        if output is Output.json:
            emit_json(plan.to_json())
            return
        instants, title = plan.instants, next(plan.lines(0))
    else:
        done = table.archive(min_commits=min_commits, max_commits=max_commits, options=options)
        instants, title = done.instants, str(done)
    rows = [{"requested": i.requested, "action": i.action.value} for i in instants]
    if rows or output is not Output.table:
        emit(("requested", "action"), rows, output)
    if output is Output.table:
        say(title, good=True)
