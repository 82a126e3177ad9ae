"""How the commands of table services print: plans, results, and how a plan is applied."""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Protocol

import typer

from lakewright.actions.services.plan import PlanItem, ServicePlan
from lakewright.actions.services.views import Cleaning, PlannedService
from lakewright.interfaces.cli.output import Output, emit, emit_facts, say
from lakewright.model.errors import InstantNotFound, Invalid
from lakewright.model.services import PartitionServed, ServiceResult

Path = Annotated[str, typer.Argument(help="The table's path or URI.")]
As = Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")]
Limit = Annotated[int | None, typer.Option(min=0, help="Print at most this many rows.")]
Setting = Annotated[
    list[str] | None,
    typer.Option("--option", help="A setting for this call, as hoodie.compaction.target.io=1024."),
]
Partitions = Annotated[
    list[str] | None, typer.Option("--partition", help="Only this partition; may be repeated.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")]
Apply = Annotated[
    bool, typer.Option("--apply", "--yes", help="Do it; without it the plan is shown.")
]
Schedule = Annotated[
    bool, typer.Option("--schedule", help="Put the plan on the timeline, for others to carry out.")
]
PlanAt = Annotated[str | None, typer.Option("--plan", help="The instant of the plan to carry out.")]
At = Annotated[str | None, typer.Option("--instant", help="The instant of a new plan.")]

#: Rows that a person is shown unless more are asked for.
_SHOWN = 50


def settings_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Read ``key=value`` texts."""
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise Invalid(f"{text!r} is no setting.", next_step="Write it as key=value.")
        found[key.strip()] = value.strip()
    return found


def is_plan_only(*, dry_run: bool, apply: bool, output: Output) -> bool:
    """Say whether a command that destroys only plans, and tell a person so, first of all."""
    if dry_run and apply:
        raise Invalid("--dry-run and --apply contradict each other.", next_step="Give one.")
    if not apply and output is Output.table:
        say("this is a plan: nothing is changed", good=True)
    return not apply


def say_how(context: typer.Context, *, output: Output, verb: tuple[str, str] | None = None) -> None:
    """Print the command that applies what was shown: the one that was given, and ``--apply``.

    ``verb`` is the word that was given and the one that stands for it in that command.
    """
    if output is not Output.table:
        return
    words = ["lakewright", *context.command_path.split()[1:]]
    if verb is not None:
        words = [verb[1] if word == verb[0] else word for word in words]
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in ("apply", "dry_run"):
            continue
        value = context.params[name]
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif value is True:
            words.append(parameter.opts[0])
        else:
            for one in value if isinstance(value, list | tuple) else (value,):
                words.extend((parameter.opts[0], str(one)))
    say(shlex.join([*words, "--apply"]), good=True)


def emit_plan(
    plan: ServicePlan | None, output: Output, *, nothing: str, limit: int | None = None
) -> None:
    """Print a plan; None is told as ``nothing``, and is no row or null for programs."""
    columns = PlanItem.__slots__
    if output is Output.json:
        sys.stdout.write(("null" if plan is None else plan.to_json()) + "\n")
        return
    items = () if plan is None else plan.items
    rows = ({name: getattr(item, name) for name in columns} for item in items)
    if output is Output.csv:
        emit(columns, rows, output, limit=limit)
        return
    if plan is None:
        say(nothing, good=True)
        return
    emit(columns, rows, output, title=next(plan.lines(0)), limit=_SHOWN if limit is None else limit)
    for why, count in plan.passed_over:
        say(f"passed over: {count}, {why}", good=True)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a command is asked to do about a plan, and how it prints."""

    plan: str | None
    schedule: bool
    dry_run: bool
    limit: int | None
    output: Output


def serve(
    wish: Wish,
    how: Mapping[str, Any],
    *,
    schedule: Callable[..., ServicePlan | None],
    run: Callable[..., ServiceResult],
    waiting: Callable[[], Iterable[PlannedService | Cleaning]],
    nothing: str,
) -> bool:
    """Show a plan, schedule one or carry one out; say whether there was anything to do.

    ``how`` are the arguments that make a new plan, ``waiting`` gives those that are there.
    """
    if wish.plan is not None and wish.schedule:
        raise Invalid(
            "--plan names a plan that is there, --schedule makes one.", next_step="Give one."
        )
    if wish.dry_run and wish.plan is not None:
        emit_waiting(waiting(), wish.plan, wish.output)
        return True
    if wish.dry_run or wish.schedule:
        made = schedule(**how, dry_run=wish.dry_run)
        emit_plan(made, wish.output, nothing=nothing, limit=wish.limit)
        return made is not None
    result = run(wish.plan, **how)
    emit_result(result, wish.output)
    return result.instant is not None


def emit_waiting(services: Iterable[PlannedService | Cleaning], plan: str, output: Output) -> None:
    """Print a plan that waits on the timeline: the partitions, or files, that it names."""
    found = (s for s in services if s.instant.requested == plan and not s.instant.is_completed)
    waits = next(found, None)
    if waits is None:
        raise InstantNotFound(
            f"no plan {plan} waits.", next_step="See `lakewright timeline`.", instant=plan
        )
    if output is Output.table:
        say(next(waits.lines(0)), good=True)
    if isinstance(waits, Cleaning):
        files = ({"partition": path, "file": name} for path, name in waits.planned)
        emit(("partition", "file"), files, output)
    else:
        emit(("partition",), ({"partition": path} for path in waits.partitions), output)


class Preview(Protocol):
    """What a command that destroys shows first."""

    def lines(self, limit: int | None = ...) -> Iterable[str]:
        """Stream it as lines of text."""
        ...

    def to_json(self) -> str:
        """Return it for programs."""
        ...


def emit_preview(preview: Preview, output: Output) -> None:
    """Print what would be done: lines for people, facts for programs."""
    if output is Output.table:
        for line in preview.lines(_SHOWN):
            say(line, good=True)
    else:
        emit_facts(json.loads(preview.to_json()), output, title="")


def emit_result(result: ServiceResult, output: Output) -> None:
    """Print what a service did, partition by partition."""
    columns = ("partition", *PartitionServed.__slots__)
    rows = [{"partition": path, **asdict(p)} for path, p in sorted(result.partitions.items())]
    if output is Output.json:
        value = {
            "service": result.service.value,
            "instant": None if result.instant is None else result.instant.requested,
            **asdict(result.total),
            "partitions": rows,
        }
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    elif output is Output.csv:
        emit(columns, rows, output)
    else:
        if rows:
            emit(columns, rows, output, limit=_SHOWN)
        say(str(result), good=True)


def emit_json(text: str) -> None:
    """Print a value that is JSON already."""
    emit_facts(json.loads(text), Output.json, title="")
