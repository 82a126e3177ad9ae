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
    emit_json,
    emit_plan,
    emit_result,
    is_plan_only,
    say_how,
    settings_of,
)
from lakewright.interfaces.cli.wiring import Table, open_table
from lakewright.model.errors import InstantNotFound


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
    table, options = open_table(path), settings_of(option)
    if dry_run or schedule:
        made = table.schedule_compaction(
            partitions=partition,
            instant=instant,
            strategy=strategy,
            target_io=target_io,
            dry_run=dry_run,
            options=options,
        )
        emit_plan(made, output, nothing=f"{path}: nothing to compact", limit=limit)
        return
    result = table.compact(
        plan,
        partitions=partition,
        instant=instant,
        strategy=strategy,
        target_io=target_io,
        options=options,
    )
    emit_result(result, output)


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
    table, options = open_table(path), settings_of(option)
    if dry_run or schedule:
        made = table.schedule_log_compaction(
            partitions=partition, instant=instant, dry_run=dry_run, options=options
        )
        emit_plan(made, output, nothing=f"{path}: no slice has logs enough", limit=limit)
        return
    result = table.log_compact(plan, partitions=partition, instant=instant, options=options)
    emit_result(result, output)


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
    table, options = open_table(path), settings_of(option)
    if dry_run or schedule:
        made = table.schedule_clustering(
            partitions=partition,
            instant=instant,
            sort_by=sort_by,
            layout=layout,
            target_size=target_size,
            small_file=small_file,
            dry_run=dry_run,
            options=options,
        )
        emit_plan(made, output, nothing=f"{path}: nothing to cluster", limit=limit)
        return
    result = table.cluster(
        plan,
        partitions=partition,
        instant=instant,
        sort_by=sort_by,
        layout=layout,
        target_size=target_size,
        small_file=small_file,
        options=options,
    )
    emit_result(result, output)


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
    table, options = open_table(path), settings_of(option)
    nothing = f"{path}: nothing to clean"
    if schedule and not dry_run:
        made = table.schedule_cleaning(policy=policy, retain=retain, grace=grace, options=options)
        emit_plan(made, output, nothing=nothing, limit=limit)
    elif is_plan_only(dry_run=dry_run, apply=apply, output=output):
        if plan is not None:
            _show_waiting(table, plan, output)
            say_how(context, output=output)
            return
        made = table.schedule_cleaning(
            policy=policy, retain=retain, grace=grace, dry_run=True, options=options
        )
        emit_plan(made, output, nothing=nothing, limit=limit)
        if made is not None:
            say_how(context, output=output)
    else:
        result = table.clean(plan, policy=policy, retain=retain, grace=grace, options=options)
        emit_result(result, output)


def _show_waiting(table: Table, plan: str, output: Output) -> None:
    """Print a plan that waits on the timeline: the files that it deletes."""
    found = (c.plan for c in table.cleanings() if c.instant.requested == plan and c.done is None)
    waiting = next(found, None)
    if waiting is None:
        raise InstantNotFound(
            f"no cleaning {plan} waits.", next_step="See `lakewright timeline`.", instant=plan
        )
    files = ((path, file) for path, some in sorted(waiting.files.items()) for file in some)
    rows = ({"partition": path, "file": (f.path or "").rpartition("/")[2]} for path, f in files)
    emit(("partition", "file"), rows, output, title=f"cleaning {plan}, {waiting.policy}")


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
        instants, title = plan.instants, str(plan)
    else:
        done = table.archive(min_commits=min_commits, max_commits=max_commits, options=options)
        instants, title = done.instants, str(done)
    rows = [{"requested": i.requested, "action": i.action.value} for i in instants]
    if rows or output is not Output.table:
        emit(("requested", "action"), rows, output)
    if output is Output.table:
        say(title, good=True)
