"""The command ``lakewright``: one verb set, errors that teach, exit codes that scripts can use."""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.text import Text

from lakewright.interfaces.cli import (
    buckets,
    going_back,
    lakes,
    locks,
    metadata,
    runner,
    served,
    services,
    sql,
    table_plans,
    tables,
    ttl,
    upgrades,
)
from lakewright.interfaces.cli.logs import LogFormat, configure
from lakewright.interfaces.cli.output import plain, printable
from lakewright.model.errors import LakewrightError
from lakewright.model.version import VERSION

app = typer.Typer(
    name="lakewright",
    help="Read and look after lake tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
tables.app.command("disable-metadata")(metadata.disable_metadata_)
tables.app.command("upgrade")(upgrades.upgrade)
tables.app.command("downgrade")(upgrades.downgrade)
app.command("tables")(lakes.tables)
app.add_typer(tables.app, name="table")
for verb in tables.TOP_LEVEL:
    app.command(verb.__name__.rstrip("_"))(verb)
app.command("compact")(services.compact)
app.command("cluster")(services.cluster)
app.command("clean")(services.clean)
app.command("archive")(services.archive)
tables.app.command("log-compact")(services.log_compact)
app.command("rollback")(going_back.rollback)
app.command("restore")(going_back.restore)
app.add_typer(going_back.app, name="savepoint")
app.add_typer(buckets.app, name="buckets")
app.add_typer(ttl.app, name="ttl")
app.add_typer(table_plans.app, name="plans")
runner.app.command("list")(served.list_)
app.add_typer(runner.app, name="services")
app.command("sql")(sql.sql)
app.command("locks")(locks.locks)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"lakewright {VERSION}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # its callback answers
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Log more; twice for debugging.")
    ] = 0,
    log_format: Annotated[LogFormat, typer.Option(help="How log lines look.")] = LogFormat.text,
) -> None:
    """Settings that hold for every command."""
    configure(verbose, log_format)


def run() -> None:
    """Run the command line; an error of ours is one line on standard error and exit code 1."""
    if sys.stdout is None:  # closed by who started us: the work is done, and told to nobody
        sys.stdout = _nowhere()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            try:
                # Run as a module the name would be three words, and printed commands begin with it.
                app(prog_name="lakewright")
            finally:
                sys.stdout.flush()
    except LakewrightError as error:
        if "--output=json" in sys.argv or _follows("--output", "json") or _follows("-o", "json"):
            body = {"error": error.code, "message": str(error), "facts": plain(error.facts)}
            sys.stderr.write(json.dumps(body, ensure_ascii=False) + "\n")
        else:
            line = Text(printable(f"lakewright: {error}"), style="red")
            Console(stderr=True).print(line, soft_wrap=True)
        sys.exit(1)
    except BrokenPipeError:  # `| head` closed the pipe: not an error of ours
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:  # storage has errors of its own: this one is of what was printed
        _say_unwritten(error)
        sys.exit(1)


def _say_unwritten(error: OSError) -> None:
    told = f"lakewright: the output could not be written: {error.strerror or error}."
    Console(stderr=True).print(Text(told, style="red"), soft_wrap=True)
    # What is left in the buffer would fail once more at the end, with a trace of the interpreter.
    sys.stdout = _nowhere()


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line; which line of the program it came from helps nobody here."""
    told = Text(printable(f"lakewright: warning: {message}"), style="yellow")
    Console(stderr=True).print(told, soft_wrap=True)


def _follows(flag: str, value: str) -> bool:
    return any(pair == (flag, value) for pair in zip(sys.argv, sys.argv[1:], strict=False))
