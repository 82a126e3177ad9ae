"""The commands ``lakewright buckets …``: rules, numbers, rescaling, advice, checks, repair."""

import json
import pathlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from lakewright.actions.buckets.rescale import RescaleResult
from lakewright.interfaces.cli.output import Output, emit, emit_facts, say
from lakewright.interfaces.cli.plans import (
    Apply,
    As,
    DryRun,
    Limit,
    Partitions,
    Path,
    Setting,
    emit_json,
    is_plan_only,
    say_how,
    settings_of,
)
from lakewright.interfaces.cli.wiring import open_table
from lakewright.model.errors import Invalid
from lakewright.model.shown import Shown

app = typer.Typer(
    help="How many buckets partitions have, and by which rules.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Rules = Annotated[
    str,
    typer.Argument(
        help="The rules: JSON, pattern,count;pattern,count, or one number; @FILE reads a file."
    ),
]
NewRules = Annotated[
    str | None, typer.Option("--rules", help="New rules that are set by the same commit.")
]
Default = Annotated[
    int | None,
    typer.Option("--default", min=1, help="Buckets of partitions that match no pattern."),
]
_SHOWN = 50
_PARTITIONS = ("partition", "buckets", "by", "wanted", "groups", "bytes", "largest", "sizes")
_ADVISED = ("partition", "buckets", "advised", "bytes", "largest", "sizes", "why")
_RESCALED = ("partition", "before", "after", "rows", "files", "bytes", "new_files", "why")
_PROBLEMS = ("code", "partition", "message", "rows")
_MENDED = ("partition", "buckets", "mended", "groups", "rows", "bytes", "why")


@app.command()
def show(
    path: Path,
    partition: Partitions = None,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Show the rules, their versions, and the number and sizes of every partition."""
    shown = open_table(path).buckets.show(partitions=partition)
    if output is Output.json:
        emit_json(shown.to_json())
        return
    rows = (
        {
            "partition": one.partition,
            "buckets": one.buckets,
            "by": one.by,
            "wanted": one.wanted,
            "groups": one.size.groups,
            "bytes": one.size.bytes,
            "largest": one.size.largest,
            "sizes": one.size.strip,
        }
        for one in shown.partitions
    )
    if output is Output.csv:
        emit(_PARTITIONS, rows, output, limit=limit)
        return
    title, *told = shown.lines(0)
    emit(_PARTITIONS, rows, output, title=title, limit=_SHOWN if limit is None else limit)
    for line in told:
        if not line.startswith("  …"):
            say(line.strip(), good=True)


@app.command("set")
def set_(
    path: Path,
    rules: Rules,
    default: Default = None,
    option: Setting = None,
    output: As = Output.table,
) -> None:
    """Make rules the table's; partitions keep their numbers until they are rescaled."""
    done = open_table(path).buckets.set(_text(rules), default=default, options=settings_of(option))
    if output is Output.table:
        say(str(done), good=not done.warnings)
        return
    facts = {
        "instant": done.instant,
        "changed": done.changed,
        "pinned": len(done.pins),
        "warnings": list(done.warnings),
    }
    emit_facts(facts, output, title="rules")


@app.command()
def plan(
    context: typer.Context,
    path: Path,
    partition: Partitions = None,
    rules: NewRules = None,
    default: Default = None,
    option: Setting = None,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Show what a rescale would do; nothing is changed."""
    _plan_rescale(path, partition, rules, default, settings_of(option), limit, output)
    if output is Output.table:
        say_how(context, output=output, verb=("plan", "rescale"))


@app.command()
def rescale(
    context: typer.Context,
    path: Path,
    partition: Partitions = None,
    rules: NewRules = None,
    default: Default = None,
    option: Setting = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Give partitions the number of buckets that the rules say, rows and rules in one commit."""
    options = settings_of(option)
    if is_plan_only(dry_run=dry_run, apply=apply, output=output):
        _plan_rescale(path, partition, rules, default, options, limit, output)
        say_how(context, output=output)
        return
    text = None if rules is None else _text(rules)
    made = open_table(path).buckets.plan_rescale(
        partition, rules=text, default=default, options=options
    )
    _say_result(made.apply(), output)


def _plan_rescale(
    path: str,
    partitions: list[str] | None,
    rules: str | None,
    default: int | None,
    options: Mapping[str, str],
    limit: int | None,
    output: Output,
) -> None:
    text = None if rules is None else _text(rules)
    made = open_table(path).buckets.plan_rescale(
        partitions, rules=text, default=default, options=options
    )
    if output is Output.json:
        emit_json(made.to_json())
        return
    rows = ({name: getattr(item, name) for name in _RESCALED} for item in made.items)
    if output is Output.csv:
        emit(_RESCALED, rows, output, limit=limit)
        return
    title, *told = made.lines(0)
    emit(_RESCALED, rows, output, title=title, limit=_SHOWN if limit is None else limit)
    for line in told:
        if not line.startswith("  …"):
            say(line.strip(), good=True)


@app.command()
def undo(
    context: typer.Context,
    path: Path,
    steps: Annotated[int, typer.Option(min=1, help="How many rescales are undone.")] = 1,
    to: Annotated[
        str | None, typer.Option("--to", help="Back to the rules of this instant instead.")
    ] = None,
    option: Setting = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    output: As = Output.table,
) -> None:
    """Take back rescales, rows and rules together; rows that were written since stay."""
    buckets, options = open_table(path).buckets, settings_of(option)
    if is_plan_only(dry_run=dry_run, apply=apply, output=output):
        made = buckets.plan_undo(steps=steps, to=to, options=options)
        _say_shown(made, made.to_json(), output)
        say_how(context, output=output)
        return
    _say_result(buckets.undo(steps=steps, to=to, options=options), output)


@app.command()
def advise(
    path: Path,
    partition: Partitions = None,
    target_bytes: Annotated[
        int | None,
        typer.Option("--target-bytes", min=1, help="About how large a bucket should be."),
    ] = None,
    most: Annotated[
        int | None, typer.Option("--most", min=1, help="Buckets that a partition gets at most.")
    ] = None,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Say how many buckets partitions should have, and the rules that give them."""
    advice = open_table(path).buckets.advise(
        partitions=partition, target_bytes=target_bytes, most=most
    )
    if output is Output.json:
        emit_json(advice.to_json())
        return
    rows = (
        {
            "partition": one.partition,
            "buckets": one.buckets,
            "advised": one.advised,
            "bytes": one.size.bytes,
            "largest": one.size.largest,
            "sizes": one.size.strip,
            "why": one.why,
        }
        for one in advice.partitions
    )
    if output is Output.csv:
        emit(_ADVISED, rows, output, limit=limit)
        return
    title = next(advice.lines(0))
    emit(_ADVISED, rows, output, title=title, limit=_SHOWN if limit is None else limit)
    say(f"rules: {advice.rules_json}", good=True)


@app.command()
def check(
    path: Path,
    partition: Partitions = None,
    names_only: Annotated[
        bool, typer.Option("--names-only", help="Judge files by their names, and open none.")
    ] = False,
    option: Setting = None,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Find buckets with two file groups and rows in wrong buckets; exit code 2 where there are."""
    report = open_table(path).buckets.check(
        partitions=partition, rows=not names_only, options=settings_of(option)
    )
    if output is Output.json:
        emit_json(report.to_json())
    else:
        rows = ({name: getattr(p, name) for name in _PROBLEMS} for p in report.problems)
        if report.problems or output is Output.csv:
            shown = _SHOWN if limit is None and output is Output.table else limit
            emit(_PROBLEMS, rows, output, limit=shown)
        if output is Output.table:
            say(next(report.lines(0)), good=report.ok)
    if not report.ok:
        raise typer.Exit(2)


@app.command()
def repair(
    context: typer.Context,
    path: Path,
    partition: Partitions = None,
    option: Setting = None,
    dry_run: DryRun = False,
    apply: Apply = False,
    limit: Limit = None,
    output: As = Output.table,
) -> None:
    """Put rows into the buckets of their keys, one file group per bucket."""
    plan_only = is_plan_only(dry_run=dry_run, apply=apply, output=output)
    made = open_table(path).buckets.repair(partitions=partition, options=settings_of(option))
    if not plan_only:
        done = made.apply()
        if output is Output.table:
            say(str(done), good=True)
        else:
            instant = None if done.instant is None else done.instant.requested
            emit_facts({**asdict(done), "instant": instant}, output, title="repair")
        return
    if output is Output.json:
        emit_json(made.to_json())
        return
    rows = ({name: getattr(item, name) for name in _MENDED} for item in made.plan.items)
    shown = _SHOWN if limit is None and output is Output.table else limit
    emit(_MENDED, rows, output, title=next(made.lines(0)), limit=shown)
    if not made.plan.empty:
        say_how(context, output=output)


def _text(rules: str) -> str:
    """Return the rules; ``@file`` is read, so that a shell need not quote them."""
    if not rules.startswith("@"):
        return rules
    try:
        return pathlib.Path(rules[1:]).read_text()
    except (OSError, UnicodeDecodeError) as cause:
        raise Invalid(
            f"the rules cannot be read from {rules[1:]!r}: {cause}.",
            next_step="Give the path of a text file after the @.",
        ) from cause


def _say_shown(value: Shown, text: str, output: Output) -> None:
    if output is Output.table:
        for line in value.lines():
            say(line, good=True)
    else:
        emit_facts(json.loads(text), output, title="")


def _say_result(result: RescaleResult, output: Output) -> None:
    _say_shown(result, result.to_json(), output)
