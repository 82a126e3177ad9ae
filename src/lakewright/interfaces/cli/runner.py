"""The command ``services run``: looks after tables until it is told to stop."""

import csv
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from lakewright.interfaces.cli.output import Output, say
from lakewright.interfaces.cli.plans import DryRun, Setting, settings_of
from lakewright.interfaces.cli.wiring import ServicesRunner, connect
from lakewright.model.errors import Invalid, NotFound
from lakewright.model.services import Outcome, ServiceRun

app = typer.Typer(
    help="Look after tables, and see what was done.", no_args_is_help=True, rich_markup_mode=None
)
_COLUMNS = ("table", "service", "outcome", "instant", "seconds", "did", "why")


@app.callback()
def services() -> None:
    """Look after tables, and see what was done."""


@app.command()
def run(
    table: Annotated[list[str] | None, typer.Argument(help="Paths or URIs of tables.")] = None,
    lake: Annotated[
        str | None, typer.Option("--lake", "-l", help="All tables of this lake instead.")
    ] = None,
    every: Annotated[str, typer.Option(help="How often: 90s, 5m, 1h.")] = "5m",
    once: Annotated[bool, typer.Option("--once", help="One round, then stop.")] = False,
    dry_run: DryRun = False,
    option: Setting = None,
    settings: Annotated[
        str | None,
        typer.Option(help="A TOML file: one section per table, by path or name, with its options."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Tell only of what was done or failed.")
    ] = False,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="Lines of text, of JSON, or of CSV.")
    ] = Output.table,
) -> None:
    """Finish what others deserted, then compact, cluster, clean and archive what is due; again.

    Each table says which services by its property lakewright.services. A signal (Ctrl-C, TERM)
    ends it after the service under way, a second one at once; either leaves a sound table. With
    --once the exit code is 2 when something failed. --dry-run tells in one round what is due.
    """
    if (lake is None) == (not table):
        raise Invalid(
            "give tables or a lake, and one of them.",
            next_step="Try: lakewright services run --lake ./lake --every 5m",
        )
    runner = ServicesRunner(
        connect(lake) if lake is not None else table or (),
        settings=settings_of(option),
        table_settings=_sections(settings),
    )
    failed = False
    tell = _teller(output)

    def told(ran: ServiceRun) -> None:
        nonlocal failed
        failed = failed or ran.outcome is Outcome.FAILED
        if not (quiet and ran.outcome in (Outcome.NOT_DUE, Outcome.NOTHING, Outcome.LEFT)):
            tell(ran)

    with _stopping(runner.stop):
        runner.run(every, told, rounds=1 if once or dry_run else None, dry_run=dry_run)
    if (once or dry_run) and failed:
        raise typer.Exit(2)


def _teller(output: Output) -> Callable[[ServiceRun], None]:
    """Return what prints one line for each service, at once: a runner's output is a log."""
    if output is Output.json:
        return lambda ran: _line(ran.to_json())
    if output is Output.table:
        return lambda ran: say(str(ran), good=ran.outcome is not Outcome.FAILED)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_COLUMNS)
    return lambda ran: _row(writer.writerow, ran)


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _row(write: Callable[[list[object]], object], ran: ServiceRun) -> None:
    facts = ran.facts()
    write([facts[name] for name in _COLUMNS])
    sys.stdout.flush()


def _sections(file: str | None) -> dict[str, dict[str, str]]:
    if file is None:
        return {}
    try:
        found = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError as cause:
        raise NotFound(f"no file {file}.", next_step="Give the path of a file.") from cause
    except tomllib.TOMLDecodeError as cause:
        raise Invalid(
            f"{file} is not TOML: {cause}.", next_step="Mend it at the line that is named."
        ) from cause
    wrong = [name for name, section in found.items() if not isinstance(section, dict)]
    if wrong:
        raise Invalid(
            f"{file}: {wrong[0]!r} stands outside a section.",
            next_step='Begin with the table: ["path/of/table"], and quote the option\'s name.',
        )
    return {name: {key: _text(v) for key, v in own.items()} for name, own in found.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Let the first signal end the work after the service under way, and the second one now."""
    heard = 0

    def hear(number: int, _frame: FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if heard > 1:
            raise KeyboardInterrupt
        stop()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
