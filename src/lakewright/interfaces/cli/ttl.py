"""The commands ``lakewright ttl …``: policies, what has expired and why, runs, statistics."""

import datetime as dt
import json
from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, emit, emit_facts, say
from lakewright.interfaces.cli.plans import (
    Apply,
    As,
    DryRun,
    Limit,
    Path,
    Setting,
    emit_json,
    is_plan_only,
    say_how,
    settings_of,
)
from lakewright.interfaces.cli.table_plans import emit_applied, emit_plan_items, say_apply
from lakewright.interfaces.cli.wiring import open_table
from lakewright.lifecycle.ttl.expiry import Verdict
from lakewright.lifecycle.ttl.looking import parse_clock
from lakewright.model.ttl import PolicyKind, TtlPolicy

app = typer.Typer(help="How long partitions are kept.", no_args_is_help=True, rich_markup_mode=None)

Spec = Annotated[
    str, typer.Argument(help="user_id=1/, user_id=*/ for each of them, or / for the whole table.")
]
Now = Annotated[
    str | None, typer.Option("--now", help="The clock to judge by, e.g. 2026-11-16T07:00:00Z.")
]
_SHOWN = 50
_POLICIES = ("partition_spec", "policy", "value", "settings")
_VERDICTS = ("partition", "expired", "policy", "expires_at", "reason")
_STATISTICS = ("partition", "last_modified", "bytes")


# A negative number is a value that is refused with a reason, and no option.
@app.command(context_settings={"ignore_unknown_options": True})
def add(
    path: Path,
    spec: Spec,
    policy: Annotated[str, typer.Argument(help=f"{', '.join(PolicyKind)}.")],
    value: Annotated[str, typer.Argument(help="The days, partitions or bytes to keep.")],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Of KEEP_BY_EVENT_TIME: format=yyyyMMdd, zone=UTC, …"),
    ] = None,
    dry_run: DryRun = False,
    output: As = Output.table,
) -> None:
    """Set how long partitions are kept; says how many it matches, and how many would go now."""
    ttl = open_table(path).ttl
    done = ttl.add(spec, policy, value, settings=settings_of(setting), dry_run=dry_run)
    if output is Output.table:
        say(str(done), good=True)
    else:
        emit_facts(json.loads(done.to_json()), output, title="policy")


@app.command()
def show(path: Path, output: As = Output.table) -> None:
    """List the policies, those without values first."""
    rows = (
        {
            "partition_spec": policy.spec,
            "policy": str(policy.kind),
            "value": policy.value,
            "settings": _settings(policy, output),
        }
        for policy in open_table(path).ttl.show()
    )
    emit(_POLICIES, rows, output)


def _settings(policy: TtlPolicy, output: Output) -> object:
    if output is Output.json:
        return dict(policy.settings)
    return " ".join(f"{name}={value}" for name, value in policy.settings.items())


@app.command()
def drop(path: Path, spec: Spec, dry_run: DryRun = False, output: As = Output.table) -> None:
    """Remove the policy of a spec; partitions stay."""
    dropped = open_table(path).ttl.drop(spec, dry_run=dry_run)
    if output is Output.table:
        say(f"{'would drop' if dry_run else 'dropped'} {dropped}", good=True)
    else:
        emit_facts(dropped.to_members(), output, title="policy")


@app.command()
def expired(
    path: Path,
    now: Now = None,
    option: Setting = None,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """List the partitions that have expired, the longest overdue first."""
    found = open_table(path).ttl.expired(_clock(now), options=settings_of(option))
    shown = _SHOWN if limit is None and output is Output.table else limit
    emit(_VERDICTS, map(_row, found), output, title=f"{len(found)} expired", limit=shown)


@app.command()
def explain(
    path: Path,
    partition: Annotated[str, typer.Argument(help="The path of a partition.")],
    now: Now = None,
    option: Setting = None,
    output: As = Output.table,
) -> None:
    """Say why a partition is kept or goes, and when it will go."""
    verdict = open_table(path).ttl.explain(partition, _clock(now), options=settings_of(option))
    if output is Output.table:
        say(str(verdict), good=True)
    else:
        emit(_VERDICTS, [_row(verdict)], output)


@app.command()
def plan(
    path: Path,
    now: Now = None,
    option: Setting = None,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Plan to drop what has expired, and keep the plan with the table."""
    if output is Output.table:
        say("this is a plan: nothing is changed", good=True)
    made = open_table(path).ttl.plan(_clock(now), options=settings_of(option))
    if output is Output.json:
        emit_json(made.to_json())
        return
    emit_plan_items(made.plan, output, limit)
    if not made.empty and output is Output.table:
        say_apply(path, made.id)


@app.command()
def run(
    context: typer.Context,
    path: Path,
    now: Now = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Drop nothing where something would be skipped.")
    ] = False,
    option: Setting = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Drop what has expired, by one commit; without --apply it is shown."""
    plan_only = is_plan_only(dry_run=dry_run, apply=apply, output=output)
    ttl = open_table(path).ttl
    if not plan_only:
        ran = ttl.run(_clock(now), strict=strict, options=settings_of(option))
        if ran.applied is None:
            emit_plan_items(ran.plan, output, limit)
        else:
            emit_applied(ran.applied, output)
        for note in ran.notes:
            typer.echo(f"note: {note}", err=True)
        return
    made = ttl.preview(_clock(now), options=settings_of(option))
    if output is Output.json:
        emit_json(made.to_json())
        return
    emit_plan_items(made, output, limit)
    if not made.empty:
        say_how(context, output=output)


@app.command()
def stats(
    path: Path,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="List the table instead of what is new.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare them with a listing; exit code 2 if wrong.")
    ] = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """List when each partition changed last, and its bytes."""
    ttl = open_table(path).ttl
    if verify:
        wrong = ttl.verify_statistics()
        emit(("difference",), ({"difference": line} for line in wrong), output)
        if wrong:
            raise typer.Exit(2)
        return
    found = ttl.statistics(rebuild=rebuild)
    rows = (
        {"partition": stat.path, "last_modified": stat.last_modified, "bytes": stat.bytes}
        for stat in found.partitions.values()
    )
    shown = _SHOWN if limit is None and output is Output.table else limit
    title = f"{len(found.partitions)} partitions as of {found.instant}"
    emit(_STATISTICS, rows, output, title=title, limit=shown)


def _clock(text: str | None) -> dt.datetime | None:
    return None if text is None else parse_clock(text)


def _row(verdict: Verdict) -> dict[str, object]:
    return {
        "partition": verdict.partition,
        "expired": verdict.expired,
        "policy": None if verdict.policy is None else str(verdict.policy),
        "expires_at": verdict.expires_at,
        "reason": verdict.reason,
    }
