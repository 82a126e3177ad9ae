"""What a command prints: a table for people, JSON or CSV for programs."""

import base64
import csv
import datetime as dt
import decimal
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

Row = Mapping[str, object]


class Output(StrEnum):
    """The forms of output."""

    table = "table"
    json = "json"
    csv = "csv"


def emit(
    columns: Sequence[str],
    rows: Iterable[Row],
    output: Output,
    *,
    title: str | None = None,
    limit: int | None = None,
) -> None:
    """Print rows in the form asked for, streaming; ``limit`` cuts, and a table says that it did."""
    rows = iter(rows)
    if output is Output.table:
        _emit_table(columns, rows, title, limit)
    elif output is Output.json:
        _emit_json(rows if limit is None else islice(rows, limit))
    else:
        _emit_csv(columns, rows if limit is None else islice(rows, limit))


def _emit_table(
    columns: Sequence[str], rows: Iterable[Row], title: str | None, limit: int | None
) -> None:
    grid = Grid(title=title and _text(title), title_justify="left", header_style="bold cyan")
    for column in columns:
        grid.add_column(_text(column), overflow="fold")
    shown, cut = 0, False
    for row in rows:
        if limit is not None and shown == limit:
            cut = True
            break
        grid.add_row(*(_text(_cell(row.get(c))) for c in columns))
        shown += 1
    console = _console()
    console.print(grid)
    more = "; more follow, raise --limit" if cut else ""
    console.print(f"{shown} row{'' if shown == 1 else 's'}{more}", style="dim", highlight=False)


def _emit_json(rows: Iterable[Row]) -> None:
    sys.stdout.write("[")
    for number, row in enumerate(rows):
        sys.stdout.write((",\n " if number else "\n ") + json.dumps(plain(row), ensure_ascii=False))
    sys.stdout.write("\n]\n")


def _emit_csv(columns: Sequence[str], rows: Iterable[Row]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(_csv_cell(row.get(c)) for c in columns)


def emit_facts(facts: Mapping[str, object], output: Output, *, title: str) -> None:
    """Print named facts: two columns for people, one object for programs."""
    if output is Output.json:
        sys.stdout.write(json.dumps(plain(facts), indent=1, ensure_ascii=False) + "\n")
    else:
        rows = ({"fact": k, "value": _cell(v)} for k, v in facts.items())
        if output is Output.csv:
            _emit_csv(("fact", "value"), rows)
        else:
            grid = Grid(title=_text(title), title_justify="left", show_header=False)
            grid.add_column(style="bold cyan")
            grid.add_column(overflow="fold")
            for row in rows:
                grid.add_row(_text(row["fact"]), _text(row["value"]))
            _console().print(grid)


def say(line: str, *, good: bool) -> None:
    """Print a verdict for people, in green or red on a terminal; a line stays one line."""
    style = "green" if good else "red"
    _console().print(printable(line), style=style, highlight=False, markup=False, soft_wrap=True)


def _console() -> Console:
    # A pipe has no width of its own: let the table be as wide as it needs.
    return Console() if sys.stdout.isatty() else Console(width=240, no_color=True)


#: What moves the cursor, changes colours or turns the direction of a line on a terminal.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return text of a table as a terminal may have it: what would steer one is written out."""
    return _STEERING.sub(lambda found: repr(found[0])[1:-1], text)


def _text(value: str) -> Text:
    """Return a value as it is: brackets in it are no markup."""
    return Text(printable(value))


def plain(value: object) -> object:
    """Turn a value into what JSON knows: times as ISO text, decimals as text, bytes as base64."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case Mapping():
            return {str(k): plain(v) for k, v in value.items()}
        case list() | tuple() | frozenset() | set():
            return [plain(v) for v in value]
        case _:
            return str(value)


def _cell(value: object) -> str:
    shown = plain(value)
    if isinstance(shown, dict | list):
        return json.dumps(shown, ensure_ascii=False)
    return "" if shown is None else str(shown)


def _csv_cell(value: object) -> object:
    shown = plain(value)
    return json.dumps(shown, ensure_ascii=False) if isinstance(shown, dict | list) else shown
